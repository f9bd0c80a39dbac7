package consent_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/test/testkit"
)

// A client that changes behind the page: allowing it is asked again, and the page
// says why. A refusal stands.
func TestCI17_ChangedWhileThePageWasOpen(t *testing.T) {
	t.Parallel()
	const told = "This app’s details changed while you looked at them."
	for decision, again := range map[string]bool{"allow": true, "deny": false} {
		t.Run("CI-17 "+decision, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, testkit.OpenSQLite(t), document)
			page := d.get("/consent?request=req-1").Body.String()
			d.now = d.now.Add(time.Minute)
			d.client.Metadata.ClientName = "Another"
			d.client.DocumentHash = d.client.Metadata.Hash()
			if err := d.db.UpdateClient(t.Context(), d.client); err != nil {
				t.Fatal(err)
			}
			d.now = d.now.Add(time.Minute)
			_, rest, _ := strings.Cut(page, `name="txn" value="`)
			txn, _, _ := strings.Cut(rest, `"`)
			w := d.post(url.Values{"request": {"req-1"}, "txn": {txn}, "decision": {decision}})
			body := w.Body.String()
			if shown := w.Code == http.StatusOK && strings.Contains(body, told) && strings.Contains(body, "“Another”"); shown != again {
				t.Errorf("%d, the page again: %t, want %t\n%s", w.Code, shown, again, body)
			}
			if !again && w.Code != http.StatusSeeOther {
				t.Errorf("%d, want the refusal recorded", w.Code)
			}
		})
	}
}
