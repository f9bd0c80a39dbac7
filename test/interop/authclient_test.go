package interop

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// stranger is an MCP server that trusts node-oidc-provider, and a person of its.
type stranger struct {
	t      *testing.T
	issuer *otherIssuer
	url    string
	jar    http.CookieJar

	mu sync.Mutex
	// refused are tokens that are no longer let in.
	refused map[string]bool
	// asked counts logins; schemes are those of Authorization; grants are grant_type of
	// the requests for tokens; refresh is the last refresh token.
	asked   int
	schemes map[string]int
	grants  []string
	refresh string
	last    string // the access token that came last
}

// newStranger serves an MCP server behind protect.
func newStranger(t *testing.T, issuer *otherIssuer, protect func(s *stranger) http.Handler) *stranger {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &stranger{t: t, issuer: issuer, jar: jar, refused: map[string]bool{}, schemes: map[string]int{}}
	var door http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		s.mu.Lock()
		s.last = token
		s.schemes[scheme]++
		refused := s.refused[token]
		s.mu.Unlock()
		if refused {
			r.Header.Set("Authorization", scheme+" refused")
		}
		door.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + "/mcp"
	door = protect(s)
	return s
}

// bearerDoor is the middleware of this module.
func bearerDoor(s *stranger) http.Handler {
	rs, err := resourceserver.New(resourceserver.Options{Resource: s.url, Issuers: []resourceserver.Issuer{{Identifier: s.issuer.url}},
		Scopes: []string{"notes:read"}, Operations: resourceserver.Tools(map[string][]string{"greet": {"notes:read"}, "add_note": {"notes:write"}})})
	if err != nil {
		s.t.Fatal(err)
	}
	return rs.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("welcome")) }))
}

// refuse lets the token that came last in no more.
func (s *stranger) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[s.last] = true
}

func (s *stranger) client(change ...func(*authclient.Options)) *authclient.Client {
	s.t.Helper()
	o := authclient.Options{Server: s.url, Authorizer: &authclient.Loopback{Open: s.browse}, Transport: s}
	for _, fn := range change {
		fn(&o)
	}
	c, err := authclient.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// browse is the person's browser, whose pages ask nothing.
func (s *stranger) browse(ctx context.Context, authorizationURL string) error {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, authorizationURL, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Jar: s.jar}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// xsrf is in the page on which a person confirms the code of a device.
var xsrf = regexp.MustCompile(`name="xsrf" value="([^"]+)"`)

// confirm is the person at another machine, who finds the code in the address.
func (s *stranger) confirm(ctx context.Context, code authclient.DeviceCode) error {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	browser := &http.Client{Jar: s.jar}
	resp, err := browser.Get(code.VerificationURIComplete)
	if err != nil {
		return err
	}
	page := readAll(s.t, resp)
	m := xsrf.FindSubmatch(page)
	if m == nil {
		return fmt.Errorf("%s: %s", resp.Status, page)
	}
	if resp, err = browser.PostForm(s.issuer.url+"/device", url.Values{"xsrf": {string(m[1])}, "user_code": {code.UserCode}, "confirm": {"yes"}}); err != nil {
		return err
	}
	page = readAll(s.t, resp)
	if resp.StatusCode != http.StatusOK || ctx.Err() != nil {
		return fmt.Errorf("%s: %s", resp.Status, page)
	}
	return nil
}

// RoundTrip sends the client's requests, and notes what is asked of the token endpoint
// and the refresh token that comes.
func (s *stranger) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/token" {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	raw := readAll(s.t, &http.Response{Body: body})
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer := readAll(s.t, resp)
	var tokens struct {
		RefreshToken string `json:"refresh_token"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = append(s.grants, form.Get("grant_type"))
	if json.Unmarshal(answer, &tokens) == nil && tokens.RefreshToken != "" {
		s.refresh = tokens.RefreshToken
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

// call calls a tool and demands that it is let in.
func (s *stranger) call(c *authclient.Client, tool string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.RoundTrip(req)
	if err != nil {
		s.t.Fatalf("%s: %v", tool, err)
	}
	if got := string(readAll(s.t, resp)); resp.StatusCode != http.StatusOK || got != "welcome" {
		s.t.Fatalf("%s: %s %s", tool, resp.Status, got)
	}
}

// want compares how often the person was asked, and the last grant.
func (s *stranger) want(step string, asked int, grant string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked != asked || s.grants[len(s.grants)-1] != grant {
		s.t.Errorf("%s: asked %d times, want %d; grants %v, want %s last", step, s.asked, asked, s.grants, grant)
	}
}

// live is the life of a login: register, log in, step up, refresh, revoke.
func (s *stranger) live(c *authclient.Client) {
	s.t.Helper()
	s.call(c, "greet")
	s.want("login", 1, "authorization_code")
	s.call(c, "add_note")
	s.want("step-up", 2, "authorization_code")
	s.refuse()
	s.call(c, "add_note")
	s.want("refresh", 2, "refresh_token")
	s.mu.Lock()
	old := s.refresh
	s.mu.Unlock()
	if err := c.Logout(s.t.Context()); err != nil {
		s.t.Errorf("Logout: %v", err)
	}
	s.wantDead(old)
	s.call(c, "greet")
	s.want("login after the logout", 3, "authorization_code")
}

// wantDead demands that the issuer no longer knows a token.
func (s *stranger) wantDead(refresh string) {
	s.t.Helper()
	var answer struct {
		Active bool `json:"active"`
	}
	resp, err := http.PostForm(s.issuer.url+"/token/introspection", url.Values{"token": {refresh}, "client_id": {"resource"},
		"client_secret": {"a secret of the resource server"}})
	if err != nil {
		s.t.Fatal(err)
	}
	if body := readAll(s.t, resp); json.Unmarshal(body, &answer) != nil || resp.StatusCode != http.StatusOK || answer.Active || refresh == "" {
		s.t.Errorf("introspection of the revoked refresh token: %s %s", resp.Status, body)
	}
}

// TestAuthclientAtOtherIssuer: authclient with node-oidc-provider.
func TestAuthclientAtOtherIssuer(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	jobKeys := "JOB_JWKS=" + publicSet(t, &key.PublicKey)
	t.Run("bearer", func(t *testing.T) {
		t.Parallel()
		s := newStranger(t, serveOIDCProvider(t), bearerDoor)
		s.live(s.client())
		if s.schemes["Bearer"] == 0 || s.schemes["DPoP"] > 0 {
			t.Errorf("schemes %v", s.schemes)
		}
	})
	for name, env := range map[string]string{"DPoP": "DPOP_NONCE=0", "DPoP with nonces": "DPOP_NONCE=1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &dpopDoor{nonces: strings.HasSuffix(env, "1")}
			s := newStranger(t, serveOIDCProvider(t, env), d.serve)
			s.live(s.client(func(o *authclient.Options) { o.RequireDPoP = true }))
			if s.schemes["Bearer"] > 0 || d.passed == 0 {
				t.Errorf("schemes %v, %d proofs passed", s.schemes, d.passed)
			}
		})
	}
	t.Run("device with DPoP", func(t *testing.T) {
		t.Parallel()
		d := &dpopDoor{nonces: true}
		s := newStranger(t, serveOIDCProvider(t, "DPOP_NONCE=1"), d.serve)
		c := s.client(func(o *authclient.Options) {
			o.Authorizer, o.RequireDPoP = &authclient.Device{Show: s.confirm}, true
		})
		s.call(c, "greet")
		s.want("device", 1, "urn:ietf:params:oauth:grant-type:device_code")
		s.refuse()
		s.call(c, "greet")
		s.want("refresh", 1, "refresh_token")
	})
	for name, bound := range map[string]bool{"job with a key": false, "job with a key and DPoP": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer, protect := serveOIDCProvider(t, jobKeys, "DPOP_NONCE=1"), bearerDoor
			if bound {
				protect = (&dpopDoor{nonces: true}).serve
			}
			s := newStranger(t, issuer, protect)
			c := s.client(func(o *authclient.Options) {
				o.Authorizer, o.RequireDPoP = nil, bound
				o.Machine = &authclient.ClientCredentials{Client: authclient.RegisteredClient{Issuer: issuer.url, ClientID: "job",
					Key: &authclient.SigningKey{ID: "k1", Signer: key}}}
			})
			s.call(c, "greet")
			s.refuse()
			s.call(c, "greet")
			s.want("job", 0, "client_credentials")
		})
	}
}

// publicSet is the JWK set of one public key.
func publicSet(t *testing.T, public *ecdsa.PublicKey) string {
	t.Helper()
	k, err := jwk.FromRaw(public)
	if err == nil {
		err = k.Set(jwk.KeyIDKey, "k1")
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"keys": []jwk.Key{k}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
