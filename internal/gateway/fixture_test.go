package gateway_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/ostiary-auth/ostiary/internal/gateway"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

const testResource = "https://mcp.example.com/mcp"

// issuer is an authorization server reduced to metadata, keys and signatures.
type issuer struct {
	*httptest.Server
	mu   sync.Mutex
	keys map[string]*ecdsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{keys: map[string]*ecdsa.PrivateKey{}}
	i.add(t, "k1")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/jwks"})
	})
	mux.HandleFunc("GET /jwks", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]any{"keys": i.public(t)}) })
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (i *issuer) add(t testing.TB, kid string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[kid] = k
}

func (i *issuer) remove(kid string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.keys, kid)
}

func (i *issuer) public(t testing.TB) []jwk.Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	var list []jwk.Key
	for kid, k := range i.keys {
		p, err := jwk.FromRaw(k.Public())
		if err == nil {
			err = p.Set(jwk.KeyIDKey, kid)
		}
		if err != nil {
			t.Error(err)
		}
		list = append(list, p)
	}
	return list
}

func (i *issuer) sign(t testing.TB, kid string, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	must(t, err)
	h := jws.NewHeaders()
	must(t, h.Set(jws.TypeKey, "at+jwt"))
	must(t, h.Set(jws.KeyIDKey, kid))
	i.mu.Lock()
	defer i.mu.Unlock()
	signed, err := jws.Sign(payload, jws.WithKey(jwa.ES256, i.keys[kid], jws.WithProtectedHeaders(h)))
	must(t, err)
	return string(signed)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fixture is a gateway on a socket, what stands before it and behind it.
type fixture struct {
	issuer   *issuer
	upstream *httptest.Server
	gateway  *gateway.Gateway
	front    *httptest.Server
	key      *gateway.Key
	log      *buffer
	mu       sync.Mutex
	now      time.Time // zero: the real clock
	seen     []*seen
	answer   http.HandlerFunc // of the upstream
}

// seen is a request that reached the upstream.
type seen struct {
	*http.Request
	body string
}

type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newFixture(t testing.TB, change ...func(*fixture, *gateway.Options)) *fixture {
	t.Helper()
	f := &fixture{issuer: newIssuer(t), log: &buffer{}}
	f.answer = func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{}})
	}
	f.upstream = httptest.NewServer(http.HandlerFunc(f.serveUpstream))
	t.Cleanup(f.upstream.Close)
	var err error
	f.key, err = gateway.NewKey()
	must(t, err)
	o := gateway.Options{Upstream: f.upstream.URL + "/inner", Key: f.key, Now: f.clock,
		Log:            slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		ResourceServer: resourceserver.Options{Issuer: f.issuer.URL, Resource: testResource, ClockSkew: -1}}
	for _, c := range change {
		c(f, &o)
	}
	f.gateway, err = gateway.New(o)
	must(t, err)
	f.front = httptest.NewServer(f.gateway)
	t.Cleanup(f.front.Close)
	return f
}

func (f *fixture) serveUpstream(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.seen = append(f.seen, &seen{Request: r, body: string(body)})
	answer := f.answer
	f.mu.Unlock()
	answer(w, r)
}

func (f *fixture) answers(h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = h
}

func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.IsZero() {
		return time.Now()
	}
	return f.now
}

func (f *fixture) set(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = now
}

func (f *fixture) requests() []*seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*seen(nil), f.seen...)
}

// last is the one request that reached the upstream since the fixture was made.
func (f *fixture) only(t testing.TB) *seen {
	t.Helper()
	list := f.requests()
	if len(list) != 1 {
		t.Fatalf("%d requests reached the upstream, want 1", len(list))
	}
	return list[0]
}

// claims are those of a good token.
func (f *fixture) claims(more ...map[string]any) map[string]any {
	now := f.clock()
	c := map[string]any{"iss": f.issuer.URL, "aud": testResource, "sub": "u_1", "client_id": "c_1", "jti": rand.Text(),
		"exp": now.Add(10 * time.Minute).Unix(), "iat": now.Unix(), "scope": "notes:read"}
	for _, m := range more {
		for k, v := range m {
			c[k] = v
		}
	}
	return c
}

func (f *fixture) token(t testing.TB, more ...map[string]any) string {
	t.Helper()
	return f.issuer.sign(t, "k1", f.claims(more...))
}

const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_notes","arguments":{}}}`

// post sends body to the resource's path with a good token.
func (f *fixture) post(t testing.TB, body string, headers ...string) *http.Response {
	t.Helper()
	return f.do(t, http.MethodPost, "/mcp", body, append([]string{"Authorization", "Bearer " + f.token(t)}, headers...)...)
}

// do sends a request with headers as name, value, name, value.
func (f *fixture) do(t testing.TB, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.front.URL+path, strings.NewReader(body))
	must(t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := noRedirects.Do(r)
	must(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

var noRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func text(t testing.TB, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	must(t, err)
	return string(b)
}

// raw writes bytes to the gateway's socket, and behind them a request that ends
// the connection. It returns the answers' statuses without that one's.
func (f *fixture) raw(t testing.TB, request string) []int {
	t.Helper()
	conn, err := net.Dial("tcp", f.front.Listener.Addr().String())
	must(t, err)
	defer func() { _ = conn.Close() }()
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second))) // never reached
	_, err = io.WriteString(conn, request+"GET /end HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	must(t, err)
	var statuses []int
	for br := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if res.StatusCode == http.StatusNotFound {
			return statuses
		}
		statuses = append(statuses, res.StatusCode)
	}
}
