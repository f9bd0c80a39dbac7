package doctor

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/internal/doctor"
)

var update = flag.Bool("update", false, "write what docs/doctor.md shows")

const document = "../../docs/doctor.md"

// TestDocument: what docs/doctor.md shows is what comes, and its list of findings is
// the list of checks.
func TestDocument(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	have := string(b)
	want := have
	proxy := nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer resource_metadata="http://mcp.example.com/.well-known/oauth-protected-resource/files"$invalid' always;` +
		rewrite(`https://mcp.example.com/files"`, `http://mcp.example.com/files"`)}
	for name, text := range map[string]string{
		"healthy":  s.transcript(t, nginx{}, "", nil),
		"login":    s.transcript(t, nginx{}, " --write", s.logIn),
		"broken":   s.transcript(t, proxy, "", nil),
		"as":       s.transcript(t, proxy, " --as vscode", func(o *doctor.Options) { o.As = "vscode" }),
		"findings": findingsTable(),
	} {
		want = between(t, want, name, text)
	}
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		have = want
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("docs/doctor.md is not current; run make docs (-want +got):\n%s", d)
	}
}

// transcript is a command and what it prints.
func (s *setup) transcript(t *testing.T, n nginx, flags string, change func(*doctor.Options)) string {
	t.Helper()
	var b bytes.Buffer
	r := s.examine(t, n, change)
	_, _ = fmt.Fprintf(&b, "$ ostiary doctor %s%s\n", r.URL, flags)
	if err := r.WriteText(&b, doctor.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return "```\n" + b.String() + "```\n"
}

// between replaces what stands between two marks.
func between(t *testing.T, doc, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+": made by make docs -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(doc, begin)
	_, after, found2 := strings.Cut(rest, end)
	if !found || !found2 {
		t.Fatalf("docs/doctor.md has no place for %s", name)
	}
	return before + begin + text + end + after
}

// findingsTable lists the checks.
func findingsTable() string {
	var b strings.Builder
	b.WriteString("| Finding | True when nothing is wrong | Where it is asked for |\n| --- | --- | --- |\n")
	hop := doctor.Hop("")
	for _, c := range doctor.Checks() {
		if c.Hop != hop {
			hop = c.Hop
			_, _ = fmt.Fprintf(&b, "| **%s** | | |\n", hop)
		}
		_, _ = fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.ID, c.Title, c.Reference)
	}
	return b.String()
}
