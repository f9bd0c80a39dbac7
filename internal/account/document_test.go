package account_test

import (
	"testing"

	"github.com/ostiary-auth/ostiary/registration"
)

// An app that is known by its metadata document is listed by the host of it, and
// not as if the host had been proved.
func TestConnectedAppsOfDocuments(t *testing.T) {
	each(t, "", func(t *testing.T, w *world) {
		for id, c := range map[string]struct{ client, redirectURI, want string }{
			"g1": {"https://quill.example/client.json", "http://127.0.0.1:53682/cb",
				`<b>quill.example</b></span><span class="sub">on a computer (<b class="exact">127.0.0.1</b>), which cannot prove this</span>`},
			"g2": {"https://pocket.example/client.json", "com.example.pocket:/cb",
				`<b>pocket.example</b></span><span class="sub">an app on a device (<b class="exact">com.example.pocket:</b>), which cannot prove this</span>`},
			"g3": {"https://borealis.example/client.json", "https://login.aurora.example/cb",
				`<b>borealis.example</b></span><span class="sub">access goes to <b class="exact">login.aurora.example</b></span>`},
			"g4": {"https://atlas.example/client.json", "https://atlas.example/cb", `<b>atlas.example</b></span></p>`},
		} {
			if err := w.db.CreateClient(t.Context(), registration.Client{ID: c.client, Kind: registration.KindCIMD, CreatedAt: w.now, UpdatedAt: w.now,
				Metadata: registration.ClientMetadata{ClientName: "App " + id, RedirectURIs: []string{c.redirectURI}, TokenEndpointAuthMethod: "none"}}); err != nil {
				t.Fatal(err)
			}
			w.allowAt(id, "ada", c.client, calendar, c.redirectURI, "read")
			wantWords(t, w.signedIn("ada", "").page("/account"), c.want)
		}
	})
}
