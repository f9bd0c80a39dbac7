package upgrade

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const verifier = "verifier-verifier-verifier-verifier-verifier-1"

// world is a server and those who use it.
type world struct {
	*testkit.Server
	t      *testing.T
	person *testkit.Person
}

// makeFixture lets this version live a little and returns what is left.
func makeFixture(t *testing.T, version string) *fixture {
	t.Helper()
	path := testkit.SQLitePath(t)
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: path})
	if err != nil {
		t.Fatal(err)
	}
	var documents documentHost
	host := testkit.NewHTTPSHost(t, &documents)
	s := testkit.NewServerWithHosts(t, db, []*testkit.HTTPSHost{host})
	w := &world{Server: s, t: t, person: s.Person()}
	f := &fixture{Version: version, Issuer: testkit.Issuer, Secret: s.Config.Secret.Reveal(), Migrations: fileSums(t)}

	f.Idle = w.register("https://idle.example.net/cb")
	f.Clients = []client{
		w.add(registration.AuthClientSecretBasic),
		w.add(registration.AuthClientSecretPost),
		w.add(registration.AuthNone),
		{ID: w.register("https://app.example.net/cb"), Method: registration.AuthNone, Redirect: "https://app.example.net/cb"},
		{ID: w.register("http://127.0.0.1/cb"), Method: registration.AuthNone, Redirect: "http://127.0.0.1:40321/cb"},
	}
	first := f.Clients[0]
	w.connect(&first)
	w.form("/revoke", first, url.Values{"token": {first.Refresh}})
	f.Ended = first.Refresh
	for i := range f.Clients {
		w.connect(&f.Clients[i])
	}
	f.Disabled = w.add(registration.AuthNone)
	w.connect(&f.Disabled)
	if _, err := s.App.Clients.Disable(t.Context(), f.Disabled.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.App.Keys.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	f.Newer = w.makeNewer(&f.Clients[0], &documents, host.URL+"/client.json")
	f.Code = w.code(f.Clients[0])
	page, err := w.person.ToConsent(t.Context(), w.authorizeURL(f.Clients[3]))
	if err != nil || page.Form("/consent") == nil {
		t.Fatalf("no consent page: %v", err)
	}
	f.Consent, f.Cookies = page.URL.String(), map[string]string{}
	for _, c := range w.person.Jar().Cookies(page.URL) {
		f.Cookies[c.Name] = c.Value
	}
	f.At = s.Clock.Now()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f.Rows = readRows(t.Context(), t, openRaw(t, path))
	return f
}

// register registers a public client by RFC 7591.
func (w *world) register(redirect string) string {
	w.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": "Quill", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none"})
	resp, err := w.Client().Post(w.URL("/register"), "application/json", strings.NewReader(string(body)))
	if err != nil {
		w.t.Fatal(err)
	}
	var out struct {
		ClientID string `json:"client_id"`
	}
	raw := testkit.Body(w.t, resp)
	if err := json.Unmarshal([]byte(raw), &out); err != nil || resp.StatusCode != http.StatusCreated {
		w.t.Fatalf("register: %d %s", resp.StatusCode, raw)
	}
	return out.ClientID
}

// add adds a client as the operator does.
func (w *world) add(method string) client {
	w.t.Helper()
	const redirect = "https://atlas.example.net/cb"
	c, secret, err := w.App.Clients.Add(w.t.Context(), registration.AddOptions{Name: "Atlas", RedirectURIs: []string{redirect}, AuthMethod: method})
	if err != nil {
		w.t.Fatal(err)
	}
	return client{ID: c.ID, Secret: secret.Reveal(), Method: method, Redirect: redirect}
}

func (w *world) authorizeURL(c client) string {
	sum := sha256.Sum256([]byte(verifier))
	return w.URL("/authorize?" + url.Values{"response_type": {"code"}, "client_id": {c.ID}, "redirect_uri": {c.Redirect},
		"state": {"s"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"resource": {testkit.Resource}, "scope": {"files:read files:write"}}.Encode())
}

// code walks the pages to a code.
func (w *world) code(c client) string {
	w.t.Helper()
	left, err := w.person.Authorize(w.t.Context(), w.authorizeURL(c))
	if err != nil {
		w.t.Fatal(err)
	}
	return left.Query().Get("code")
}

// connect gets the client's first tokens, and refreshes once.
func (w *world) connect(c *client) {
	w.t.Helper()
	got := w.redeem(*c, w.code(*c))
	c.Previous = got.RefreshToken
	got = w.form("/token", *c, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.Previous}})
	c.Access, c.Refresh = got.AccessToken, got.RefreshToken
	if got.status != http.StatusOK || c.Refresh == "" {
		w.t.Fatalf("refresh: %+v", got)
	}
}

func (w *world) redeem(c client, code string) answer {
	w.t.Helper()
	return w.form("/token", c, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {c.Redirect},
		"code_verifier": {verifier}})
}

// answer is what an endpoint answers.
type answer struct {
	status       int
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	Error        string `json:"error"`
	Active       bool   `json:"active"`
}

// form sends a form as the client, with its credential.
func (w *world) form(path string, c client, form url.Values) answer {
	w.t.Helper()
	if c.Method != registration.AuthClientSecretBasic {
		form.Set("client_id", c.ID)
	}
	switch c.Method {
	case registration.AuthClientSecretPost:
		form.Set("client_secret", c.Secret)
	case registration.AuthPrivateKeyJWT:
		form.Set("client_assertion_type", testkit.AssertionType)
		form.Set("client_assertion", testkit.ParseClientKey(w.t, "ES256", keyID, c.Key).Sign(w.t, nil,
			testkit.AssertionClaims(c.ID, w.Config.Issuer, w.Clock.Now())))
	}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL(path), strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if c.Method == registration.AuthClientSecretBasic {
		req.SetBasicAuth(c.ID, c.Secret)
	}
	resp, err := w.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	got := answer{status: resp.StatusCode}
	if raw := testkit.Body(w.t, resp); raw != "" {
		if err := json.Unmarshal([]byte(raw), &got); err != nil {
			w.t.Fatalf("%s: %v in %s", path, err, raw)
		}
	}
	return got
}
