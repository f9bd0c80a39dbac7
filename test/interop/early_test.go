package interop

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// TestM9_EarlySDK has the TypeScript SDK of 2025-03-26 log in through a protected
// server: it takes that server's origin for the authorization server, and never
// says for which resource its tokens are.
func TestM9_EarlySDK(t *testing.T) {
	t.Parallel()
	o := launch.ServeOstiary(t, "")
	o.AddUser(t, email, password)
	mcpURL := o.ServeNotes(t)
	o.Run(t, "", "resource", "add", mcpURL, "--name", "Notes", "--default", "--scope", "notes:read=Read your notes;default", "--scope", "notes:write=Add notes for you")
	visits := drive(t, nodeDriver("sdk-2025-03-26.mjs"), order{Kind: "dcr", Situation: "refresh", MCPURL: mcpURL, Issuer: o.Issuer}, email,
		[]string{"login", "tool", "refresh"})
	if len(visits) != 1 {
		t.Fatalf("the person was asked %d times, want once", len(visits))
	}
	var names []string
	for _, name := range []string{"resource", "scope", "state"} {
		if visits[0].Has(name) {
			names = append(names, name)
		}
	}
	if d := cmp.Diff([]string(nil), names); d != "" {
		t.Errorf("this is no early client: its authorization request has (-want +got):\n%s", d)
	}
}
