package e2e

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

const (
	email    = "maria.lindqvist@fernhill.example"
	password = "correct horse battery staple"
	verifier = "e2e-e2e-e2e-e2e-e2e-e2e-e2e-e2e-e2e-e2e-e2e-1"
	state    = "st-2f6e0c"
)

// calendar are the scopes of the usual MCP server.
var calendar = []string{
	"calendar.read=See your calendars;detail=Titles, times and guests of your events;required",
	"calendar.write=Add and change events;detail=Guests get the usual invitations",
	"calendar.delete=Delete events;risk=permanent;detail=Deleted events cannot be brought back",
}

// site is a running `ostiary serve` with one MCP server.
type site struct {
	*launch.Ostiary
	resource string
}

// newSite starts a server with an account and one MCP server of these scopes.
func newSite(t *testing.T, name string, scopes []string) *site {
	t.Helper()
	s := &site{Ostiary: launch.ServeOstiary(t, "")}
	s.AddUser(t, email, password)
	s.addResource(t, fmt.Sprintf("http://127.0.0.1:%d/mcp", launch.FreePort(t)), name, scopes)
	return s
}

func (s *site) addResource(t *testing.T, identifier, name string, scopes []string) {
	t.Helper()
	args := []string{"resource", "add", identifier, "--name", name, "--offline", "--default"}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	s.Run(t, "", args...)
	s.resource = identifier
}

var setupLink = regexp.MustCompile(`http://\S+/setup\?link=\S+`)

// setupLink reads the link that a server without an account prints.
func (s *site) setupLink(t *testing.T) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if link := setupLink.FindString(s.Output()); link != "" {
			return link
		}
	}
	t.Fatalf("no set-up link was printed:\n%s", s.Output())
	return ""
}

// listener is a client's redirect URI, with somebody behind it.
type listener struct {
	// uri is the redirect URI.
	uri string
	// arrived gets every request for it.
	arrived chan *http.Request
	// stay lets the callback answer 204, which leaves the return page on the
	// screen. (While an answer is outstanding Chromium answers no question.)
	stay atomic.Bool
}

// listen answers at uri's host; then, when it is not empty, is where the
// callback sends the browser with 307.
func listen(t *testing.T, network, address, host, then string, secure bool) *listener {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{arrived: make(chan *http.Request, 8)}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(w, r, then) }))
	_ = srv.Listener.Close()
	srv.Listener = ln
	scheme := "http"
	if secure {
		scheme = "https"
		srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	l.uri = fmt.Sprintf("%s://%s/oauth/callback", scheme, net.JoinHostPort(host, fmt.Sprint(ln.Addr().(*net.TCPAddr).Port)))
	return l
}

// loopback listens as a program on this computer does.
func loopback(t *testing.T, host string) *listener {
	t.Helper()
	if host == "::1" {
		return listen(t, "tcp6", "[::1]:0", host, "", false)
	}
	return listen(t, "tcp4", "127.0.0.1:0", host, "", false)
}

// website listens as the server of a web client does.
func website(t *testing.T, host, then string) *listener {
	t.Helper()
	return listen(t, "tcp4", "127.0.0.1:0", host, then, true)
}

func (l *listener) serve(w http.ResponseWriter, r *http.Request, then string) {
	if r.URL.Path != "/oauth/callback" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	l.arrived <- r
	if l.stay.Load() {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if then != "" {
		http.Redirect(w, r, then, http.StatusTemporaryRedirect)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!doctype html><html lang="en"><title>Client</title><link rel="icon" href="data:,"><h1>Back at the client</h1>`)
}

// response waits for the authorization response and returns its parameters.
// LG-04: nothing tells the client what page the person came from.
func (l *listener) response(t *testing.T) url.Values {
	t.Helper()
	select {
	case r := <-l.arrived:
		if got := r.Header.Get("Referer"); got != "" {
			t.Errorf("LG-04: the client sees Referer %q", got)
		}
		if r.Method != http.MethodGet {
			t.Errorf("the client is asked with %s, want GET", r.Method)
		}
		return r.URL.Query()
	case <-time.After(patience):
		t.Fatalf("nobody came to %s", l.uri)
		return nil
	}
}

// asked reports whether anybody came since the last response.
func (l *listener) asked() bool { return len(l.arrived) > 0 }

// app is a registered MCP client.
type app struct {
	t           *testing.T
	site        *site
	id          string
	redirectURI string
}

// register registers a public client as MCP clients do.
func (s *site) register(t *testing.T, name, redirectURI string) *app {
	t.Helper()
	body, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirectURI},
		"token_endpoint_auth_method": "none", "grant_types": []string{"authorization_code", "refresh_token"}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(s.Issuer+"/register", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a := &app{t: t, site: s, redirectURI: redirectURI}
	var reply struct {
		ClientID    string `json:"client_id"`
		Description string `json:"error_description"`
	}
	a.decode(resp, &reply)
	if a.id = reply.ClientID; a.id == "" {
		t.Fatalf("register %s: %s: %s", name, resp.Status, reply.Description)
	}
	return a
}

// authorizeURL is the address that a client opens in the browser.
func (a *app) authorizeURL(changes ...string) string {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {a.redirectURI}, "state": {state},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {a.site.resource}}
	for i := 0; i < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
	}
	return a.site.Issuer + "/authorize?" + q.Encode()
}

// tokens is an answer of the token endpoint.
type tokens struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	Error        string `json:"error"`
}

func (a *app) redeem(code string) tokens {
	return a.token(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.redirectURI}, "code_verifier": {verifier}})
}

func (a *app) refresh(token string) tokens {
	return a.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
}

func (a *app) token(form url.Values) (reply tokens) {
	a.t.Helper()
	form.Set("client_id", a.id)
	form.Set("resource", a.site.resource)
	resp, err := http.PostForm(a.site.Issuer+"/token", form)
	if err != nil {
		a.t.Fatal(err)
	}
	a.decode(resp, &reply)
	return reply
}

func (a *app) decode(resp *http.Response, to any) {
	a.t.Helper()
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
		a.t.Fatalf("%s: %s: %v", resp.Request.URL.Path, resp.Status, err)
	}
}

// checkResponse holds an authorization response to RFC 6749 §4.1.2 and RFC 9207.
func (a *app) checkResponse(got url.Values, wantError string) {
	a.t.Helper()
	if got.Get("state") != state || got.Get("iss") != a.site.Issuer || got.Get("error") != wantError || got.Has("code") != (wantError == "") {
		keys := make([]string, 0, len(got))
		for k := range got {
			keys = append(keys, k)
		}
		a.t.Errorf("response has %s, error %q, state %q, iss %q; want error %q, state %q, iss %q", strings.Join(keys, " "),
			got.Get("error"), got.Get("state"), got.Get("iss"), wantError, state, a.site.Issuer)
	}
}
