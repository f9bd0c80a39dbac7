package authserver_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const (
	appRedirect      = "https://app.example.net/cb"
	loopbackRedirect = "http://127.0.0.1/cb"
	verifier         = "verifier-verifier-verifier-verifier-verifier-1"
)

func challenge(v string) string {
	sum := sha256.Sum256([]byte(v))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// kit is one server with the helpers of these tests.
type kit struct {
	*testkit.Server
	t      *testing.T
	ctx    context.Context
	person *testkit.Person
	remote string // whence clients ask, "" for the usual address
	// publish, when set, makes register publish metadata documents instead.
	publish func(redirects ...string) app
}

func newKit(t *testing.T, db *sqlstore.Store, opts ...testkit.ServerOption) *kit {
	t.Helper()
	s := testkit.NewServer(t, db, opts...)
	return &kit{Server: s, t: t, ctx: t.Context(), person: s.Person()}
}

// each runs fn on a server on each database.
func each(t *testing.T, fn func(t *testing.T, k *kit)) {
	t.Helper()
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) { fn(t, newKit(t, db)) })
}

// eachKind runs fn with clients that registered themselves, and again with
// clients of metadata documents, each on both databases.
func eachKind(t *testing.T, fn func(t *testing.T, k *kit)) {
	t.Helper()
	t.Parallel()
	t.Run("registered", func(t *testing.T) { each(t, fn) })
	t.Run("document", func(t *testing.T) {
		eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
			w.kit.publish = w.introduce
			fn(t, w.kit)
		}, roomForDocuments)
	})
}

// app is a client as its developer sees it.
type app struct{ id, secret, method, redirect string }

// register registers a public client by RFC 7591: each time another one, since a
// version of its own makes it no repetition. In the second run of eachKind it
// makes one of a metadata document.
func (k *kit) register(redirects ...string) app {
	k.t.Helper()
	if k.publish != nil {
		return k.publish(redirects...)
	}
	body, _ := json.Marshal(map[string]any{"client_name": "Quill", "redirect_uris": redirects,
		"token_endpoint_auth_method": "none", "software_version": rand.Text()})
	resp, err := k.Client().Post(k.URL("/register"), "application/json", strings.NewReader(string(body)))
	if err != nil {
		k.t.Fatal(err)
	}
	var out struct {
		ClientID string `json:"client_id"`
	}
	raw := testkit.Body(k.t, resp)
	if err := json.Unmarshal([]byte(raw), &out); err != nil || resp.StatusCode != http.StatusCreated {
		k.t.Fatalf("register: %d %s", resp.StatusCode, raw)
	}
	return app{id: out.ClientID, method: registration.AuthNone, redirect: redirects[0]}
}

// operatorApp adds a client as the operator does.
func (k *kit) operatorApp(method string, redirects ...string) app {
	k.t.Helper()
	c, secret, err := k.App.Clients.Add(k.ctx, registration.AddOptions{Name: "Atlas", RedirectURIs: redirects, AuthMethod: method})
	if err != nil {
		k.t.Fatal(err)
	}
	return app{id: c.ID, secret: secret.Reveal(), method: method, redirect: redirects[0]}
}

// trustedApp makes a public client that the operator vouches for: added by
// them, or, in the second run of eachKind, verified.
func (k *kit) trustedApp(redirects ...string) app {
	k.t.Helper()
	if k.publish == nil {
		return k.operatorApp(registration.AuthNone, redirects...)
	}
	a := k.publish(redirects...)
	k.verify(a)
	return a
}

// verify vouches for a client as it is.
func (k *kit) verify(a app) {
	k.t.Helper()
	c, err := k.App.Clients.Show(k.ctx, a.id)
	if err == nil {
		_, err = k.App.Clients.Verify(k.ctx, a.id, c.DocumentHash)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// authorizeURL is an authorization request with changes: nil removes.
func (k *kit) authorizeURL(a app, changes url.Values) string {
	return k.URL("/authorize?" + changed(url.Values{"response_type": {"code"}, "client_id": {a.id},
		"redirect_uri": {a.redirect}, "state": {"st/ate="}, "code_challenge": {challenge(verifier)},
		"code_challenge_method": {"S256"}, "resource": {testkit.Resource}, "scope": {"files:read files:write"}}, changes).Encode())
}

func changed(v, changes url.Values) url.Values {
	for name, values := range changes {
		if v.Del(name); values != nil {
			v[name] = values
		}
	}
	return v
}

// code walks the pages to a code.
func (k *kit) code(a app, changes url.Values, scopes ...string) string {
	k.t.Helper()
	left, err := k.person.Authorize(k.ctx, k.authorizeURL(a, changes), scopes...)
	if err != nil {
		k.t.Fatal(err)
	}
	code := left.Query().Get("code")
	if code == "" {
		k.t.Fatalf("no code in %s", left)
	}
	return code
}

// answer is a JSON answer.
type answer struct {
	status int
	header http.Header
	raw    string
	body   struct {
		AccessToken  string  `json:"access_token"`
		TokenType    string  `json:"token_type"`
		ExpiresIn    float64 `json:"expires_in"`
		RefreshToken string  `json:"refresh_token"`
		Scope        string  `json:"scope"`
		Error        string  `json:"error"`
	}
}

// post sends a form to an endpoint as the app, with its credential.
func (k *kit) post(path string, a app, form url.Values) answer {
	k.t.Helper()
	got, err := k.tryPost(path, a, form)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// tryPost is post for other goroutines than the test's.
func (k *kit) tryPost(path string, a app, form url.Values) (answer, error) {
	if a.method == registration.AuthNone || a.method == registration.AuthClientSecretPost {
		form = changed(url.Values{"client_id": {a.id}}, form)
	}
	if a.method == registration.AuthClientSecretPost {
		form.Set("client_secret", a.secret)
	}
	req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.URL(path), strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if a.method == registration.AuthClientSecretBasic {
		req.SetBasicAuth(a.id, a.secret)
	}
	return k.send(req)
}

func (k *kit) send(req *http.Request) (answer, error) {
	req.RemoteAddr = k.remote
	resp, err := k.Client().Do(req)
	if err != nil {
		return answer{}, err
	}
	got := answer{status: resp.StatusCode, header: resp.Header, raw: testkit.Body(k.t, resp)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && got.raw != "" {
		if err := json.Unmarshal([]byte(got.raw), &got.body); err != nil {
			return got, err
		}
	}
	return got, nil
}

func (k *kit) redeem(a app, code string, changes url.Values) answer {
	k.t.Helper()
	return k.post("/token", a, changed(url.Values{"grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {a.redirect}, "code_verifier": {verifier}}, changes))
}

func (k *kit) refresh(a app, token string, changes url.Values) answer {
	k.t.Helper()
	return k.post("/token", a, changed(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}, changes))
}

// connect walks a client through to its first tokens.
func (k *kit) connect(a app, changes url.Values, scopes ...string) answer {
	k.t.Helper()
	got := k.redeem(a, k.code(a, changes, scopes...), nil)
	want(k.t, got, 200, "")
	return got
}

// want checks status and error code, and the headers of every OAuth answer (TK-11, A21).
func want(t *testing.T, got answer, status int, code string) {
	t.Helper()
	if got.status != status || got.body.Error != code {
		t.Fatalf("answer %d %q, want %d %q: %s", got.status, got.body.Error, status, code, got.raw)
	}
	if cc := got.header.Get("Cache-Control"); cc != "no-store" {
		t.Errorf("Cache-Control = %q, want no-store", cc)
	}
}

func (k *kit) grants() []grant.Grant {
	k.t.Helper()
	list, err := k.DB.ListGrants(k.ctx, grant.Filter{})
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

// live returns the grants that are redeemed and live.
func (k *kit) live() []grant.Grant {
	k.t.Helper()
	list, err := k.DB.ListGrants(k.ctx, grant.Filter{LiveAt: k.Clock.Now()})
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

// claims returns an access token's payload.
func claims(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("access token has %d parts", len(parts))
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
