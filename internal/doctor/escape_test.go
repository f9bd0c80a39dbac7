package doctor

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestClean(t *testing.T) {
	t.Parallel()
	var r redactor
	r.add("s3cret-value-of-the-run", "short")
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "401 Unauthorized", "401 Unauthorized"},
		{"known secret", "came s3cret-value-of-the-run.", "came [redacted]."},
		{"a word too short to be one", "a short word", "a short word"},
		{"code in a URL", "https://a.example/cb?code=abc&iss=x", "https://a.example/cb?code=[redacted]&iss=x"},
		{"token in JSON", `{"access_token":"abc","n":1}`, `{"access_token":[redacted],"n":1}`},
		{"token in JSON that was cut off", `{"refresh_token": "abc`, `{"refresh_token": [redacted]`},
		{"bearer", "Authorization: Bearer abcdefghijklmnopqrstuv, x", "Authorization: Bearer [redacted], x"},
		{"a challenge is none", `Bearer resource_metadata="https://a.example"`, `Bearer resource_metadata="https://a.example"`},
		{"JWT", "got eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln", "got [redacted]"},
		{"cookie", "Set-Cookie: sid=abc; Path=/", "Set-Cookie: sid=[redacted]; Path=/"},
		{"terminal's title", "a\x1b]0;owned\x07b", `a\u{1b}]0;owned\u{7}b`},
		{"bidi", "a\u202eb", `a\u{202e}b`},
		{"invisible", "a\u200bb", `a\u{200b}b`},
		{"C1 control", "a\u009bb", `a\u{9b}b`},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"several lines", "a\r\nb", "a  b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := r.clean(tt.text); got != tt.want {
				t.Errorf("clean(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
	if got := r.clean(strings.Repeat("x", 10_000)); len(got) > maxText+8 {
		t.Errorf("%d bytes are left", len(got))
	}
}

// A long text is cut before it is searched, and no secret is halved into sight.
func TestC09_LongTexts(t *testing.T) {
	t.Parallel()
	known := strings.Repeat("known-", maxRead)
	r := redactor{known: []oauth.Secret{oauth.Secret(known)}}
	hidden := func(n int) string { return `{"access_token":"` + strings.Repeat("x", n) + `"}` } // short when it is redacted
	for name, text := range map[string]string{
		"a known secret longer than what is searched": "came " + known + " end",
		"a known secret across the cut":               hidden(maxRead-40) + known + " end",
		"a JWT across the cut":                        hidden(maxRead-40) + " eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln end",
		"a JSON secret across the cut":                hidden(maxRead-60) + ` {"client_secret":"known-known-known-known"}`,
	} {
		if got := r.clean(text); strings.Contains(got, "known-") || strings.Contains(got, "eyJ") || !strings.Contains(got, "[redacted]") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := r.clean(strings.Repeat("a ", maxRead)); !strings.HasPrefix(got, "a a a ") || len(got) < maxText {
		t.Errorf("%q", got)
	}
	e := &exchange{status: 502, body: []byte("<html><title>Bad</title>" + strings.Repeat(" ", maxRead) + "<title>late</title>")}
	if got := e.excerpt(); got != `a page titled "Bad"` {
		t.Errorf("%q", got)
	}
	e.body = []byte("<html>" + strings.Repeat(" ", maxRead) + "<title>late</title>")
	if got := e.excerpt(); got != "" {
		t.Errorf("a title was looked for beyond the cut: %q", got)
	}
}

// Whatever a server sends: no secret of this run, nothing that a terminal obeys.
func FuzzClean(f *testing.F) {
	const secret = "s3cret-value-of-the-run"
	for _, s := range []string{"", "\x1b[31m", secret, "x" + secret + "\u2066", `{"access_token":"` + secret, "Bearer " + secret, "\xf0\x90"} {
		f.Add(s)
	}
	r := redactor{known: []oauth.Secret{secret}}
	f.Fuzz(func(t *testing.T, text string) {
		got := r.clean(text)
		if strings.Contains(got, secret) || !utf8.ValidString(got) {
			t.Errorf("clean(%q) = %q", text, got)
		}
		for _, c := range got {
			if !unicode.IsPrint(c) {
				t.Errorf("clean(%q) leaves %U", text, c)
			}
		}
	})
}
