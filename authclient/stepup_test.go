package authclient

import (
	"net/http"
	"strings"
	"testing"
)

// TestMM13_C7_StepUpAfterAMove: another authorization server is not told which scopes
// the one before had granted.
func TestMM13_C7_StepUpAfterAMove(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	c := w.client()
	at := w.challenge
	w.locked(func() { w.challenge = at + `, scope="payroll:secret-project"` })
	wantCall(t, c, "", http.StatusOK)
	w.locked(func() {
		w.challenge = at
		w.resource["authorization_servers"] = []string{other.as.URL}
	})
	// the new tokens are the other server's, which this MCP server does not take
	_, _ = call(t.Context(), c, "more")
	if len(other.authorizations) == 0 {
		t.Fatal("the other authorization server was not asked")
	}
	for _, q := range other.authorizations {
		if scope := q.Get("scope"); strings.Contains(scope, "payroll") || !strings.Contains(scope, "more") {
			t.Errorf("asked for scope %q", scope)
		}
	}
}
