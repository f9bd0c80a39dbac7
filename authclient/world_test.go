package authclient

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is an MCP server and its authorization server on loopback, with a clock of
// their own. Tests break them by changing documents and hooks.
type world struct {
	t       *testing.T
	mcp, as *httptest.Server

	mu  sync.Mutex
	now time.Time
	// resource and server are the documents; nil serves none.
	resource, server map[string]any
	// challenge follows "Bearer " in the 401 of the MCP server; "" sends no header.
	challenge string
	// hooks answer instead of what stands at "METHOD /path" of either server.
	hooks map[string]http.HandlerFunc
	// authorizations, tokens, registrations and revocations are what was asked.
	authorizations, tokens, revocations []url.Values
	tokenHeaders                        []http.Header
	registrations                       []map[string]any
	seen                                []string // "host METHOD /path" of every request
	codes                               map[string]url.Values
	access                              map[string][]string // live tokens and their scopes
	refresh                             map[string][]string
	n                                   int
	life                                int                     // expires_in; 0 leaves it out
	grants                              func([]string) []string // what the person allows
	mcpRequests                         []string                // bodies with a good token
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), hooks: map[string]http.HandlerFunc{},
		codes: map[string]url.Values{}, access: map[string][]string{}, refresh: map[string][]string{}, life: 600}
	w.mcp = httptest.NewServer(w.route(http.HandlerFunc(w.serveMCP)))
	w.as = httptest.NewServer(w.route(http.HandlerFunc(w.serveAS)))
	t.Cleanup(w.mcp.Close)
	t.Cleanup(w.as.Close)
	w.resource = map[string]any{"resource": w.url(), "authorization_servers": []string{w.as.URL}, "scopes_supported": []string{"read"}}
	w.server = w.document(w.as.URL)
	w.challenge = `resource_metadata="` + w.mcp.URL + `/.well-known/oauth-protected-resource/mcp"`
	return w
}

// document is an authorization server's at this URL.
func (w *world) document(issuer string) map[string]any {
	return map[string]any{
		"issuer": issuer, "authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token",
		"registration_endpoint": issuer + "/register", "revocation_endpoint": issuer + "/revoke",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic", "client_secret_post"},
		"authorization_response_iss_parameter_supported": true,
	}
}

// url is the MCP server's.
func (w *world) url() string { return w.mcp.URL + "/mcp" }

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// locked runs fn while no request is answered.
func (w *world) locked(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

func (w *world) hook(pattern string, h http.HandlerFunc) { w.locked(func() { w.hooks[pattern] = h }) }

// answer is a hook that always answers so.
func answerJSON(status int, body string, header ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}
}

// route notes each request and lets hooks answer it.
func (w *world) route(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + r.URL.Path
		w.mu.Lock()
		w.seen = append(w.seen, r.Host+" "+key)
		hook := w.hooks[key]
		w.mu.Unlock()
		if hook != nil {
			hook(rw, r)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

func (w *world) serveMCP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource/") && w.resource != nil {
		_ = json.NewEncoder(rw).Encode(w.resource)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		http.NotFound(rw, r)
		return
	}
	scopes, ok := w.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	need := r.Header.Get("Need") // the scope that this request needs
	switch {
	case !ok:
		if w.challenge != "" {
			rw.Header().Set("WWW-Authenticate", "Bearer "+w.challenge)
		}
		rw.WriteHeader(http.StatusUnauthorized)
	case need != "" && !slices.Contains(scopes, need):
		rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+need+`", `+w.challenge)
		rw.WriteHeader(http.StatusForbidden)
	default:
		body, _ := io.ReadAll(r.Body)
		w.mcpRequests = append(w.mcpRequests, string(body))
		_, _ = fmt.Fprintf(rw, "done: %s", body)
	}
}

func (w *world) serveAS(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = r.ParseForm()
	rw.Header().Set("Content-Type", "application/json")
	switch r.Method + " " + r.URL.Path {
	case "GET /.well-known/oauth-authorization-server":
		if w.server == nil {
			http.NotFound(rw, r)
			return
		}
		_ = json.NewEncoder(rw).Encode(w.server)
	case "POST /register":
		body := map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.registrations = append(w.registrations, body)
		body["client_id"] = fmt.Sprintf("client-%d", len(w.registrations))
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(body)
	case "GET /authorize":
		w.serveAuthorize(rw, r)
	case "POST /token":
		w.serveToken(rw, r)
	case "POST /revoke":
		w.revocations = append(w.revocations, r.PostForm)
		delete(w.refresh, r.PostForm.Get("token"))
	default:
		http.NotFound(rw, r)
	}
}

func (w *world) serveAuthorize(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.authorizations = append(w.authorizations, q)
	w.n++
	code := fmt.Sprintf("code-%d", w.n)
	w.codes[code] = q
	to := q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {w.as.URL}}.Encode()
	http.Redirect(rw, r, to, http.StatusFound)
}

func (w *world) serveToken(rw http.ResponseWriter, r *http.Request) {
	f := r.PostForm
	w.tokens = append(w.tokens, f)
	w.tokenHeaders = append(w.tokenHeaders, r.Header.Clone())
	var scopes []string
	switch f.Get("grant_type") {
	case "authorization_code":
		q, ok := w.codes[f.Get("code")]
		delete(w.codes, f.Get("code"))
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || f.Get("redirect_uri") != q.Get("redirect_uri") {
			answerJSON(400, `{"error":"invalid_grant"}`)(rw, r)
			return
		}
		scopes = strings.Fields(q.Get("scope"))
		if w.grants != nil {
			scopes = w.grants(scopes)
		}
	case "refresh_token":
		var ok bool
		scopes, ok = w.refresh[f.Get("refresh_token")]
		delete(w.refresh, f.Get("refresh_token"))
		if !ok {
			answerJSON(400, `{"error":"invalid_grant"}`)(rw, r)
			return
		}
	default:
		answerJSON(400, `{"error":"unsupported_grant_type"}`)(rw, r)
		return
	}
	_ = json.NewEncoder(rw).Encode(w.issue(scopes))
}

// issue makes tokens.
func (w *world) issue(scopes []string) map[string]any {
	w.n++
	access, refresh := fmt.Sprintf("access-%d", w.n), fmt.Sprintf("refresh-%d", w.n)
	w.access[access], w.refresh[refresh] = scopes, scopes
	answer := map[string]any{"access_token": access, "token_type": "bearer", "refresh_token": refresh, "scope": strings.Join(scopes, " ")}
	if w.life > 0 {
		answer["expires_in"] = w.life
	}
	return answer
}

// expire ends all access tokens.
func (w *world) expire() { w.locked(func() { clear(w.access) }) }

// asked counts the requests whose line ends so.
func (w *world) asked(suffix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, line := range w.seen {
		if strings.HasSuffix(line, suffix) {
			n++
		}
	}
	return n
}

// browse is a browser whose person allows everything.
func browse(ctx context.Context, rawURL string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// direct is a person without a listener, whose redirect URI is always the same: for
// tests in which a registration has to be found again.
type direct struct{ answer func(location *url.URL) error }

func (d *direct) Begin(context.Context) (Attempt, error) { return d, nil }
func (d *direct) RedirectURI() string                    { return "http://127.0.0.1/callback" }
func (d *direct) Close() error                           { return nil }

func (d *direct) Authorize(ctx context.Context, rawURL string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	to, err := resp.Location()
	if err == nil && d.answer != nil {
		err = d.answer(to)
	}
	if err != nil {
		return nil, err
	}
	return to.Query(), nil
}

// options are those of a client of the world, changed by each of change.
func (w *world) options(change ...func(*Options)) Options {
	o := Options{Server: w.url(), Authorizer: &Loopback{Open: browse, Timeout: 10 * time.Second}, Now: w.clock}
	for _, fn := range change {
		fn(&o)
	}
	return o
}

func (w *world) client(change ...func(*Options)) *Client {
	w.t.Helper()
	c, err := New(w.options(change...))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// call sends one request that needs a scope, "" for none, and returns its status.
func call(ctx context.Context, c *Client, need string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.Server, strings.NewReader("ping"))
	if err != nil {
		return 0, err
	}
	if need != "" {
		req.Header.Set("Need", need)
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// wantCall fails the test unless the call is answered so.
func wantCall(t *testing.T, c *Client, need string, want int) {
	t.Helper()
	if got, err := call(t.Context(), c, need); err != nil || got != want {
		t.Fatalf("call answered %d, %v; want %d", got, err, want)
	}
}

// without returns a copy of a document without a member.
func without(doc map[string]any, member string) map[string]any {
	out := maps.Clone(doc)
	delete(out, member)
	return out
}

// with returns a copy of a document with a member.
func with(doc map[string]any, member string, value any) map[string]any {
	out := maps.Clone(doc)
	out[member] = value
	return out
}
