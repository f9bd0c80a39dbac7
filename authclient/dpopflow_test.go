package authclient

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/ostiary-auth/ostiary/internal/jose"
)

// dpopWorld is a world whose servers demand DPoP and, when they have one, a nonce.
type dpopWorld struct {
	*world
	mu               sync.Mutex
	asNonce, rsNonce string
	jtis             map[string]bool
	keys             map[string]string // access token: thumbprint
	problems         []string
	mcpProofs        int
}

func newDPoPWorld(t *testing.T) *dpopWorld {
	t.Helper()
	d := &dpopWorld{world: newWorld(t), jtis: map[string]bool{}, keys: map[string]string{}}
	d.server = with(d.server, "dpop_signing_alg_values_supported", []string{"ES256", "EdDSA"})
	d.hook("POST /token", d.serveBoundToken)
	d.hook("POST /mcp", d.serveBoundMCP)
	return d
}

// check verifies a proof by RFC 9449 §4.3 and returns the key's thumbprint and the
// nonce.
func (d *dpopWorld) check(r *http.Request, url, token string) (jkt, nonce string) {
	problem := func(format string, args ...any) {
		d.problems = append(d.problems, r.Method+" "+r.URL.Path+": "+fmt.Sprintf(format, args...))
	}
	proofs := r.Header.Values("DPoP")
	if len(proofs) != 1 {
		problem("%d proofs", len(proofs))
		return "", ""
	}
	var j jose.JWS
	if err := j.Split(proofs[0]); err != nil {
		problem("%v", err)
		return "", ""
	}
	k, err := jose.ReadKey(j.Header.Get("jwk"), []jose.Algorithm{jose.ES256})
	if err != nil || k.Verify(jose.ES256, j.Signed, j.Signature) != nil || !j.Header.Is("typ", "dpop+jwt") || !j.Header.Is("alg", "ES256") {
		problem("signature or header %s: %v", j.Header.Get("typ"), err)
		return "", ""
	}
	jti, _ := j.Claims.Str("jti")
	iat, _ := j.Claims.Seconds("iat")
	if d.jtis[jti] || !j.Claims.Is("htm", r.Method) || !j.Claims.Is("htu", url) || !iat.Equal(d.clock().Truncate(time.Second)) {
		problem("claims %v", j.Claims)
	}
	d.jtis[jti] = true
	digest := sha256.Sum256([]byte(token))
	if ath := base64.RawURLEncoding.EncodeToString(digest[:]); j.Claims.Has("ath") != (token != "") || token != "" && !j.Claims.Is("ath", ath) {
		problem("ath %s", j.Claims.Get("ath"))
	}
	nonce, _ = j.Claims.Str("nonce")
	return thumbprintOf(d.t, j.Header.Get("jwk")), nonce
}

// thumbprintOf is RFC 7638 by another hand.
func thumbprintOf(t testing.TB, raw []byte) string {
	k, err := jwk.ParseKey(raw)
	if err != nil {
		t.Error(err)
		return ""
	}
	sum, err := k.Thumbprint(crypto.SHA256)
	if err != nil {
		t.Error(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

func (d *dpopWorld) serveBoundToken(rw http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	jkt, nonce := d.check(r, d.as.URL+"/token", "")
	if nonce != d.asNonce {
		answerJSON(400, `{"error":"use_dpop_nonce"}`, "DPoP-Nonce", d.asNonce)(rw, r)
		return
	}
	rec := httptest.NewRecorder()
	d.serveAS(rec, r)
	var tokens map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &tokens); err != nil || rec.Code != 200 {
		answerJSON(rec.Code, rec.Body.String())(rw, r)
		return
	}
	tokens["token_type"] = "DPoP"
	d.keys[tokens["access_token"].(string)] = jkt
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(tokens)
}

func (d *dpopWorld) serveBoundMCP(rw http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP ")
	if !ok {
		if r.Header.Get("Authorization") != "" {
			d.problems = append(d.problems, "Authorization "+r.Header.Get("Authorization"))
		}
		d.serveMCP(rw, r)
		return
	}
	d.mcpProofs++
	jkt, nonce := d.check(r, d.url(), token)
	if jkt != d.keys[token] {
		d.problems = append(d.problems, "the proof is of another key than the token")
	}
	if nonce != d.rsNonce {
		rw.Header().Set("DPoP-Nonce", d.rsNonce)
		rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce", `+d.challenge)
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.Header.Set("Authorization", "Bearer "+token)
	d.serveMCP(rw, r)
}

// wantNoProblems fails the test for what the servers found.
func (d *dpopWorld) wantNoProblems() {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.problems {
		d.t.Error(p)
	}
}

// jkts are the thumbprints that tokens are bound to.
func (d *dpopWorld) jkts() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	set := map[string]bool{}
	for _, jkt := range d.keys {
		set[jkt] = true
	}
	return set
}

func withDPoP(o *Options) { o.DPoP = true }

// TestDPoP_Flow: login, call, refresh, and another process with the same store: one
// key; another login: another key.
func TestDPoP_Flow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, as, rs string }{{"without nonces", "", ""}, {"with nonces", "as-1", "rs-1"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDPoPWorld(t)
			d.asNonce, d.rsNonce = tt.as, tt.rs
			store := NewMemoryStore()
			withStore := func(o *Options) { o.Store = store }
			c := d.client(withDPoP, withStore)
			wantCall(t, c, "", http.StatusOK)
			d.advance(time.Hour)
			d.expire()
			wantCall(t, c, "", http.StatusOK)
			wantCall(t, d.client(withDPoP, withStore), "", http.StatusOK)
			if n := len(d.jkts()); n != 1 || len(d.authorizations) != 1 || d.tokens[1].Get("grant_type") != "refresh_token" {
				t.Errorf("%d keys, %d authorizations, then %v", n, len(d.authorizations), d.tokens[1])
			}
			if jkt := d.authorizations[0].Get("dpop_jkt"); !d.jkts()[jkt] {
				t.Errorf("dpop_jkt %q, keys %v", jkt, d.jkts())
			}
			if err := c.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantCall(t, c, "", http.StatusOK)
			if n := len(d.jkts()); n != 2 {
				t.Errorf("%d keys after another login, want 2", n)
			}
			d.wantNoProblems()
		})
	}
}

// TestDPoP_NonceRotates: eight requests meet a new nonce at once. Each is sent twice at
// most, and nobody takes the challenge for a bad token.
func TestDPoP_NonceRotates(t *testing.T) {
	t.Parallel()
	d := newDPoPWorld(t)
	c := d.client(withDPoP)
	wantCall(t, c, "", http.StatusOK)
	for round := range 5 {
		d.mu.Lock()
		d.rsNonce = fmt.Sprintf("rs-%d", round)
		before := d.mcpProofs
		d.mu.Unlock()
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				if status, err := call(t.Context(), c, ""); err != nil || status != http.StatusOK {
					t.Errorf("round %d: %d, %v", round, status, err)
				}
			})
		}
		calls.Wait()
		if n := d.mcpProofs - before; n > 16 {
			t.Errorf("round %d: %d requests for 8", round, n)
		}
	}
	if len(d.tokens) != 1 || len(d.authorizations) != 1 {
		t.Errorf("%d token requests, %d authorizations, want 1 and 1", len(d.tokens), len(d.authorizations))
	}
	d.wantNoProblems()
}

// TestDPoP_NonceNeverRight: a server that is never content gets two proofs, and nobody
// is asked to log in again for it.
func TestDPoP_NonceNeverRight(t *testing.T) {
	t.Parallel()
	d := newDPoPWorld(t)
	c := d.client(withDPoP)
	wantCall(t, c, "", http.StatusOK)
	n := 0
	d.hook("POST /mcp", func(rw http.ResponseWriter, _ *http.Request) {
		n++
		rw.Header().Set("DPoP-Nonce", fmt.Sprintf("n-%d", n))
		rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		rw.WriteHeader(http.StatusUnauthorized)
	})
	wantCall(t, c, "", http.StatusUnauthorized)
	if n != 2 || len(d.authorizations) != 1 || len(d.tokens) != 1 {
		t.Errorf("%d proofs, %d authorizations, %d token requests", n, len(d.authorizations), len(d.tokens))
	}
}

// TestDPoP_BodyIsGone: a body that cannot be sent twice is an error, not a login.
func TestDPoP_BodyIsGone(t *testing.T) {
	t.Parallel()
	d := newDPoPWorld(t)
	c := d.client(withDPoP)
	wantCall(t, c, "", http.StatusOK)
	d.mu.Lock()
	d.rsNonce = "rs-1"
	d.mu.Unlock()
	send := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url(), io.NopCloser(bytes.NewReader(make([]byte, maxReplay+1))))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if err := send(); !errors.Is(err, ErrBodyGone) {
		t.Errorf("err = %v, want ErrBodyGone", err)
	}
	if err := send(); err != nil || len(d.authorizations) != 1 {
		t.Errorf("again: %v, %d authorizations", err, len(d.authorizations))
	}
}

// TestDPoP_Support: what the authorization server says of DPoP, and what the caller
// wants.
func TestDPoP_Support(t *testing.T) {
	t.Parallel()
	require := func(o *Options) { o.RequireDPoP = true }
	for _, tt := range []struct {
		name   string
		algs   []string
		change func(*Options)
		scheme string // of the answered request; "" is a refusal
		asked  int
	}{
		{"wanted, not advertised", nil, withDPoP, "Bearer", 1},
		{"wanted, other algorithms", []string{"RS256"}, withDPoP, "Bearer", 1},
		{"required, not advertised", nil, require, "", 0},
		{"required, other algorithms", []string{"RS256"}, require, "", 0},
		{"required, and a bearer token came", []string{"ES256"}, require, "", 1},
		{"wanted, and a bearer token came", []string{"ES256"}, withDPoP, "Bearer", 1},
		{"not wanted", []string{"ES256"}, func(*Options) {}, "Bearer", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.server = with(w.server, "dpop_signing_alg_values_supported", tt.algs)
			var header http.Header
			c := w.client(tt.change, func(o *Options) {
				o.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path == "/mcp" {
						header = r.Header
					}
					return http.DefaultTransport.RoundTrip(r)
				})
			})
			_, err := call(t.Context(), c, "")
			scheme, _, _ := strings.Cut(header.Get("Authorization"), " ")
			if errors.Is(err, ErrRefused) != (tt.scheme == "") || scheme != tt.scheme || header.Get("DPoP") != "" {
				t.Errorf("err = %v, Authorization %q, DPoP %q", err, scheme, header.Get("DPoP"))
			}
			if len(w.authorizations) != tt.asked {
				t.Errorf("%d authorizations, want %d", len(w.authorizations), tt.asked)
			}
		})
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestMachine_Call: a program calls an MCP server with an identity of its own, gets the
// next token when the first has ended, and stores none.
func TestMachine_Call(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server = without(without(w.server, "code_challenge_methods_supported"), "authorization_endpoint")
	w.hook("POST /token", w.serveMachine)
	store := NewMemoryStore()
	m := &ClientCredentials{Client: RegisteredClient{Issuer: w.as.URL, ClientID: "job", ClientSecret: "s"}}
	var logged bytes.Buffer
	c := w.client(func(o *Options) {
		o.Authorizer, o.Machine, o.Store = nil, m, store
		o.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	wantCall(t, c, "", http.StatusOK)
	w.advance(time.Hour)
	w.expire()
	wantCall(t, c, "", http.StatusOK)
	wantCall(t, c, "write", http.StatusOK) // step-up: the credential is asked for more
	if n := w.asked("POST /token"); n != 3 || len(w.registrations) != 0 {
		t.Errorf("%d token requests, %d registrations", n, len(w.registrations))
	}
	if n := len(store.(*memoryStore).entries); n != 0 {
		t.Errorf("%d entries are stored", n)
	}
	if text := logged.String(); text == "" || strings.Contains(text, "access-") {
		t.Errorf("the log has a token, or nothing:\n%s", text)
	}
}

// serveMachine issues a token for what is asked.
func (w *world) serveMachine(rw http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	w.mu.Lock()
	defer w.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(w.issue(strings.Fields(r.PostForm.Get("scope"))))
}

// TestMM13MachineIssuerMoves: the resource metadata names another authorization server
// than before, and neither it nor the old one is sent the credential.
func TestMM13MachineIssuerMoves(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newFakeIssuer(t)
	w.hook("POST /token", w.serveMachine)
	m := &ClientCredentials{Client: RegisteredClient{Issuer: w.as.URL, ClientID: "job", ClientSecret: "s"}}
	c := w.client(func(o *Options) { o.Authorizer, o.Machine = nil, m })
	wantCall(t, c, "", http.StatusOK)
	w.locked(func() { w.resource = with(w.resource, "authorization_servers", []string{other.URL}) })
	w.expire()
	_, err := call(t.Context(), c, "")
	wantRefused(t, err, other)
	if n := w.asked("POST /token"); n != 1 {
		t.Errorf("%d token requests, want 1", n)
	}
	// with both named, the credential's own is the one
	w.locked(func() { w.resource = with(w.resource, "authorization_servers", []string{other.URL, w.as.URL}) })
	wantCall(t, c, "", http.StatusOK)
}

// TestMachine_RefusalIsShared: requests that wait for one answer do not each ask again.
func TestMachine_RefusalIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("POST /token", answerJSON(400, `{"error":"invalid_grant"}`))
	assertion := testJWT(t, map[string]any{}, map[string]any{"aud": w.as.URL})
	c := w.client(func(o *Options) {
		o.Authorizer, o.Machine = nil, &Workload{Issuer: w.as.URL, Token: fixed(assertion)}
	})
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			var refusal *ServerError
			if _, err := call(t.Context(), c, ""); !errors.As(err, &refusal) || refusal.Code != "invalid_grant" {
				t.Errorf("err = %v, want invalid_grant", err)
			}
		})
	}
	calls.Wait()
	if n := w.asked("POST /token"); n != 1 {
		t.Errorf("%d token requests, want 1", n)
	}
	w.hook("POST /token", w.serveMachine)
	w.advance(2 * time.Second)
	wantCall(t, c, "", http.StatusOK)
}

// TestNonces: two servers on one origin have a nonce each, and what is no nonce is not
// kept (RFC 9449 §8.1).
func TestNonces(t *testing.T) {
	t.Parallel()
	n, u := newNonces(), parsed(t, "https://as.example/token")
	answer := func(nonce string) http.Header { return http.Header{"Dpop-Nonce": {nonce}} }
	if !n.keep(u, answer("a"), "") || n.get(u) != "a" || n.keep(u, answer("a"), "a") || !n.keep(u, answer("a"), "b") {
		t.Error("fresh is what differs from what was sent")
	}
	for _, bad := range []string{"", "a b", "a\n", "ä", strings.Repeat("n", maxNonce+1)} {
		if n.keep(u, answer(bad), "") || n.get(u) != "a" {
			t.Errorf("%q was kept", bad)
		}
	}
	if got := n.get(parsed(t, "https://AS.example:443/other")); got != "a" {
		t.Errorf("the same origin: %q", got)
	}
	if got := n.get(parsed(t, "https://other.example/token")); got != "" {
		t.Errorf("another origin: %q", got)
	}
	for i := range 3 * maxNonceOrigins {
		n.keep(parsed(t, fmt.Sprintf("https://h%d.example/", i)), answer("x"), "")
	}
	if len(n.by) > maxNonceOrigins {
		t.Errorf("%d origins are kept", len(n.by))
	}
}
