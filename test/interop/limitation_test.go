package interop

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// limitation is something that a client cannot do against any server, in words.
// An empty factor stands for all of them, several are separated by |.
type limitation struct {
	client, form, kind, situation string
	words                         string
	// after is the last step that the client passes, and sees what its error says
	// then; the cell fails when the client gets further or says something else.
	// Without sees the client has no such option and is not run.
	after string
	sees  string
}

// limitations is as narrow as the truth; at most one row fits a cell.
var limitations = []limitation{
	{client: "sdk-v1", situation: "wider", after: "tool", sees: "Server returned 403 after trying upscoping",
		words: "1.32.2 answers 403 insufficient_scope with a refresh when it has a refresh token, which cannot widen the scope, and then gives up"},
	{client: "go-sdk", kind: "private_key_jwt",
		words: "1.8.0 has no private_key_jwt for the authorization code grant"},
	{client: "go-sdk", kind: "dcr|cimd", situation: "deleted", after: "deleted", sees: "invalid_client",
		words: "1.8.0 returns the refresh's invalid_client to its caller; it neither registers nor asks for authorization again"},
	{client: "mcp-remote", kind: "private_key_jwt",
		words: "0.15.1 leaves private_key_jwt out deliberately: it cannot be given a key"},
	{client: "inspector", kind: "private_key_jwt",
		words: "2.12.0 can be given a client_id and a secret, no key"},
	{client: "inspector", kind: "dcr", situation: "wider", after: "tool", sees: "Unexpected: auth\\(\\) returned AUTHORIZED without authorization code",
		words: "2.12.0, started with nothing but a URL, answers 403 insufficient_scope with a refresh, which cannot widen the scope; with a client_id or a document it steps up"},
}

// limitationOf returns the row that fits the cell, or nil.
func limitationOf(c cell) *limitation {
	for i := range limitations {
		if limitations[i].fits(c) {
			return &limitations[i]
		}
	}
	return nil
}

func (l *limitation) fits(c cell) bool {
	for i, want := range []string{l.client, l.form, l.kind, l.situation} {
		if want != "" && !slices.Contains(strings.Split(want, "|"), c.factors()[i]) {
			return false
		}
	}
	return true
}

// runs reports whether the client can be run at all.
func (l *limitation) runs() bool { return l == nil || l.sees != "" }

// differs tells how what the client did differs from the limitation, "" when it
// failed as that says.
func (l *limitation) differs(c cell, got result) string {
	var want []string
	if l.after != "" {
		want = c.steps()[:slices.Index(c.steps(), l.after)+1]
	}
	if d := cmp.Diff(want, got.steps); d != "" {
		return fmt.Sprintf("steps (-want +got):\n%s%s", d, got.said)
	}
	if !regexp.MustCompile(l.sees).MatchString(got.said) {
		return fmt.Sprintf("the client said %q, want %q", got.said, l.sees)
	}
	return ""
}

func TestLimitationMustShow(t *testing.T) {
	t.Parallel()
	c := cell{"sdk-v1", "root", "dcr", "wider"}
	l := limitation{client: "sdk-v1", after: "tool", sees: "403 after"}
	for _, tt := range []struct {
		name  string
		got   result
		shows bool
	}{
		{"as it says", result{steps: []string{"login", "tool"}, said: "Error: 403 after trying"}, true},
		{"the client passes", result{steps: []string{"login", "tool", "wider"}}, false},
		{"it fails earlier", result{steps: []string{"login"}, said: "403 after"}, false},
		{"it says something else", result{steps: []string{"login", "tool"}, said: "500"}, false},
	} {
		if d := l.differs(c, tt.got); (d == "") != tt.shows {
			t.Errorf("%s: %q", tt.name, d)
		}
	}
}

func TestLimitations(t *testing.T) {
	t.Parallel()
	used := map[*limitation]bool{}
	for _, c := range wholeMatrix() {
		l := limitationOf(c)
		used[l] = true
		for i := range limitations {
			if other := &limitations[i]; other != l && other.fits(c) {
				t.Errorf("%s: two limitations fit: %q and %q", c, l.words, other.words)
			}
		}
		if l != nil && l.after != "" && !slices.Contains(c.steps(), l.after) {
			t.Errorf("%s has no step %q after which %q could show", c, l.after, l.words)
		}
	}
	for i := range limitations {
		if !used[&limitations[i]] {
			t.Errorf("limitation %q fits no cell", limitations[i].words)
		}
	}
}
