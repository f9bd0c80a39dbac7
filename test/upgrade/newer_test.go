package upgrade

import (
	"encoding/json"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// keyID is the kid of the key that signs assertions.
const keyID = "first"

// newer is what versions since v0.3.0 leave: clients of documents, with keys, and
// of machines, and a secret beside a newer one.
type newer struct {
	// Document holds a connection; its host is gone.
	Document client
	// Signer holds one, and signs assertions.
	Signer client
	// Machine has client_credentials.
	Machine client
	// Blocked may do nothing more.
	Blocked client
	// OldSecret is the first client's before the rotation.
	OldSecret string
	// Asker is the credential of an MCP server, since v0.4.0; its id is "" before.
	Asker client
}

// documentHost serves one metadata document.
type documentHost struct{ doc atomic.Pointer[[]byte] }

// ServeHTTP serves the document, 404 before there is one.
func (h *documentHost) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	doc := h.doc.Load()
	if doc == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(*doc)
}

func (w *world) makeNewer(rotated *client, host *documentHost, documentURL string) *newer {
	w.t.Helper()
	n := &newer{OldSecret: rotated.Secret}
	n.Document = client{ID: documentURL, Method: registration.AuthNone, Redirect: "http://127.0.0.1/cb"}
	doc, err := json.Marshal(map[string]any{"client_id": documentURL, "client_name": "Borealis", "redirect_uris": []string{n.Document.Redirect},
		"token_endpoint_auth_method": "none"})
	if err != nil {
		w.t.Fatal(err)
	}
	host.doc.Store(&doc)
	w.connect(&n.Document)

	key := testkit.NewClientKey(w.t, "ES256", keyID)
	n.Signer = client{Method: registration.AuthPrivateKeyJWT, Redirect: "https://signer.example.net/cb", Key: key.PrivateJWK(w.t)}
	n.Signer.ID, _ = w.addNewer(registration.AddOptions{Name: "Signer", RedirectURIs: []string{n.Signer.Redirect},
		AuthMethod: n.Signer.Method, JWKS: testkit.JWKS(w.t, key)})
	w.connect(&n.Signer)

	n.Machine.Method = registration.AuthClientSecretBasic
	n.Machine.ID, n.Machine.Secret = w.addNewer(registration.AddOptions{Name: "Nightly job", AuthMethod: n.Machine.Method,
		GrantTypes: []string{registration.GrantClientCredentials}, Resources: []string{testkit.Resource}, Scope: "files:read"})

	n.Blocked = w.add(registration.AuthNone)
	w.connect(&n.Blocked)
	if _, err := w.App.Clients.Block(w.t.Context(), n.Blocked.ID); err != nil {
		w.t.Fatal(err)
	}
	_, secret, err := w.App.Clients.RotateSecret(w.t.Context(), rotated.ID, registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: w.Clock.Now().Add(24 * time.Hour)}})
	if err != nil {
		w.t.Fatal(err)
	}
	rotated.Secret = secret.Reveal()
	r, asks, err := w.App.Resources.AddCredential(w.t.Context(), testkit.Resource)
	if err != nil {
		w.t.Fatal(err)
	}
	n.Asker = client{ID: r.Credential.ID, Secret: asks.Reveal(), Method: registration.AuthClientSecretBasic}
	return n
}

func (w *world) addNewer(o registration.AddOptions) (id, secret string) {
	w.t.Helper()
	c, s, err := w.App.Clients.Add(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return c.ID, s.Reveal()
}

// goesOn is fixture.goesOn for what is newer; rotated has its new secret.
func (n *newer) goesOn(t *testing.T, w *world, rotated client) {
	t.Helper()
	for _, c := range []client{n.Document, n.Signer} {
		got := w.form("/token", c, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.Refresh}})
		if got.status != http.StatusOK || got.RefreshToken == c.Refresh || got.Scope != "files:read files:write" {
			t.Errorf("%s, %s: refresh %d %s %q", c.ID, c.Method, got.status, got.Error, got.Scope)
		}
	}
	if n.Asker.ID != "" {
		if got := w.form("/introspect", n.Asker, url.Values{"token": {n.Document.Access}}); !got.Active {
			t.Errorf("an MCP server asks about a token from before: %d, active %t", got.status, got.Active)
		}
	}
	machine := url.Values{"grant_type": {"client_credentials"}}
	if got := w.form("/token", n.Machine, machine); got.status != http.StatusOK || got.Scope != "files:read" {
		t.Errorf("machine: %d %s %q", got.status, got.Error, got.Scope)
	}
	if got := w.form("/token", n.Blocked, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {n.Blocked.Refresh}}); got.status == http.StatusOK {
		t.Error("the blocked client got a token")
	}
	rotated.Secret = n.OldSecret
	probe := func() int { return w.form("/revoke", rotated, url.Values{"token": {"nothing"}}).status }
	if got := probe(); got != http.StatusOK {
		t.Errorf("the secret from before the rotation: %d", got)
	}
	// the document's client is a row: its host is gone, and it is allowed again
	if code := w.code(n.Document); code == "" {
		t.Error("no code for the client of a document whose host is gone")
	}
}
