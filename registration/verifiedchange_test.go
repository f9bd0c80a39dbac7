package registration_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// CI-17: who verified a client vouched for the name and the addresses that they
// saw. A document that says others is shown as not verified until they look
// again; where the operator must verify first, it still is the app they let in.
func TestCI17_VerifiedDocumentChanges(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		r := newReader(t, db, func(o *registration.DocumentOptions) {
			o.Policy = registration.HostPolicy{{Host: "*", Trust: registration.TrustAsk}}
		})
		a := &registration.Admin{Clients: db, Documents: db, Tx: db, Audit: db, Grants: db, Consents: db, Now: r.clock.Now}
		says := func(members string) registration.Client {
			t.Helper()
			r.clock.Advance(25 * time.Hour)
			r.answer = func(url string, _ netguard.GetOptions) (*netguard.Response, error) {
				body := fmt.Sprintf(`{"client_id":%q,"token_endpoint_auth_method":"none",%s}`, url, members)
				return &netguard.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
			}
			return *r.get(t)
		}
		const seen = `"client_name":"Quill","redirect_uris":["http://127.0.0.1/cb"]`
		if got := r.refused(t, "192.0.2.1", docURL); got != registration.ProblemWaiting {
			t.Fatalf("before it is verified: %q", got)
		}
		verify := func() registration.Client {
			t.Helper()
			c, err := db.GetClient(t.Context(), docURL)
			if err != nil {
				t.Fatal(err)
			}
			if c, err = a.Verify(t.Context(), docURL, c.DocumentHash); err != nil || !c.Trusted() || !c.VerifiedUntil.IsZero() {
				t.Fatalf("Verify: %+v, %v", c, err)
			}
			return c
		}
		first := verify()
		if c := says(seen + `,"software_version":"2"`); !c.Trusted() || c.DocumentHash == first.DocumentHash {
			t.Errorf("a new version: %+v", c)
		}
		for name, members := range map[string]string{
			"name":         `"client_name":"Claude","redirect_uris":["http://127.0.0.1/cb"]`,
			"redirect URI": `"client_name":"Quill","redirect_uris":["http://127.0.0.1/cb","https://evil.example/cb"]`,
		} {
			if c := says(seen); !c.Trusted() {
				t.Fatalf("%s: not verified at the beginning: %+v", name, c)
			}
			c := says(members)
			if changed := r.clock.Now(); c.Trusted() || c.VerifiedAt.IsZero() || !c.VerifiedUntil.Equal(changed) {
				t.Errorf("another %s: %+v, want it verified until %v", name, c, changed)
			}
			list, err := db.ListEvents(t.Context(), 1)
			if err != nil || len(list) != 1 || list[0].Name != "client.changed" || list[0].Detail["verified"] != "ended" {
				t.Errorf("D35 another %s: %+v, %v", name, list, err)
			}
			until := c.VerifiedUntil
			if c := says(seen); c.Trusted() || !c.VerifiedUntil.Equal(until) {
				t.Errorf("%s as before, which nobody looked at: %+v", name, c)
			}
			if c := verify(); !c.VerifiedAt.Equal(r.clock.Now()) {
				t.Errorf("verified again at %v", c.VerifiedAt)
			}
		}
		says(`"client_name":"Claude","redirect_uris":["http://127.0.0.1/cb"]`)
		if _, err := a.Block(t.Context(), docURL); err != nil {
			t.Fatal(err)
		}
		if c, err := a.Unblock(t.Context(), docURL); err != nil || c.Trusted() || !c.VerifiedAt.IsZero() || !c.VerifiedUntil.IsZero() {
			t.Errorf("after Block: %+v, %v", c, err)
		}
	})
}
