package consent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// CI-17: what a verified app's page warns of where access goes to another website,
// and of details that changed since, does not depend on who verified it; not even
// where the person allowed it for another redirect URI.
func TestCI17_WarningsOfVerifiedApps(t *testing.T) {
	t.Parallel()
	const elsewhere, since = "a different website than the app’s", "details changed since you last allowed it"
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		d := newDesk(t, db, func(d *desk) {
			document(d)
			d.client.VerifiedAt = d.now
			d.req.RedirectURI = "https://borealis.example/cb"
		})
		if body := d.get("/consent?request=req-1").Body.String(); !strings.Contains(body, elsewhere) || strings.Contains(body, since) {
			t.Errorf("nothing allowed before: want %q alone\n%s", elsewhere, body)
		}
		allow := func(redirectURI, hash string, at time.Time) {
			t.Helper()
			if err := db.PutConsent(t.Context(), consent.Consent{Subject: "mina", ClientID: d.client.ID, RedirectURI: redirectURI,
				Resource: d.res.Canonical, DocumentHash: hash, CreatedAt: at, UpdatedAt: at}); err != nil {
				t.Fatal(err)
			}
		}
		allow("http://127.0.0.1/cb", "what it was", d.now.Add(-2*time.Hour))
		body := d.get("/consent?request=req-1").Body.String()
		for _, want := range []string{"Verified by Fernhill", elsewhere, since} {
			if !strings.Contains(body, want) {
				t.Errorf("allowed at another address before: the page lacks %q\n%s", want, body)
			}
		}
		allow("http://localhost/cb", d.client.DocumentHash, d.now.Add(-time.Hour))
		if body := d.get("/consent?request=req-1").Body.String(); strings.Contains(body, since) {
			t.Errorf("allowed as it is now: the page says %q\n%s", since, body)
		}
	})
}
