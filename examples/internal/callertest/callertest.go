// Package callertest holds every example of a client to the same test: whatever SDK it
// is built on, its person is asked as often and for as much.
package callertest

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/test/testkit/site"
)

// Run tests an example, which calls a tool and prints what it says.
func Run(t *testing.T, run func(ctx context.Context, out io.Writer, o authclient.Options, tokens, tool string) error) {
	t.Helper()
	s := site.Start(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	for _, step := range []struct {
		name, tool string
		after      time.Duration
		asked      int // how often the person was asked until then
	}{
		{name: "a login", tool: "greet", asked: 1},
		{name: "nothing, it is stored", tool: "greet", asked: 1},
		{name: "a step-up", tool: "add_note", asked: 2},
		{name: "a refresh", tool: "add_note", after: 11 * time.Minute, asked: 2},
	} {
		s.Server.Clock.Advance(step.after)
		var out strings.Builder
		o := authclient.Options{Server: s.URL, Authorizer: s.Authorizer(), Now: s.Server.Clock.Now}
		if err := run(t.Context(), &out, o, tokens, step.tool); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := out.String(); !strings.HasPrefix(got, `"`+step.tool+" for ") || s.Asked() != step.asked {
			t.Errorf("%s: it prints %s after the person was asked %d times, want %d", step.name, got, s.Asked(), step.asked)
		}
	}
}
