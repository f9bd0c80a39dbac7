package resourceserver_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// issuer is an authorization server reduced to metadata, keys and signatures.
type issuer struct {
	*httptest.Server
	mu       sync.Mutex
	keys     []map[string]any
	signers  map[string]crypto.Signer
	fetches  int
	status   int    // of the JWK set; 0 means 200
	body     string // of the JWK set, instead of keys
	redirect string // of the JWK set
	claimed  string // issuer in the metadata; "" means the true one
	uploaded bool   // the well-known place redirects to a file on the issuer's host
	hold     chan struct{}
	rotating bool // each fetch finds one key more
	// introspection is introspection_endpoint in the metadata, if any
	introspection string
	jwksURI       string // jwks_uri in the metadata; "" means the true one
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{signers: map[string]crypto.Signer{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", i.serveMetadata)
	mux.HandleFunc("GET /upload", i.writeMetadata)
	mux.HandleFunc("GET /jwks", i.serveKeys)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	i.addECKey(t, "ec-1")
	return i
}

func (i *issuer) serveMetadata(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	uploaded := i.uploaded
	i.mu.Unlock()
	if uploaded {
		http.Redirect(w, r, "/upload", http.StatusFound)
		return
	}
	i.writeMetadata(w, r)
}

func (i *issuer) writeMetadata(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	claimed := i.claimed
	if claimed == "" {
		claimed = i.URL
	}
	jwksURI := i.jwksURI
	if jwksURI == "" {
		jwksURI = i.URL + "/jwks"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"issuer": claimed, "jwks_uri": jwksURI,
		"introspection_endpoint": i.introspection})
}

func (i *issuer) serveKeys(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.fetches++
	if i.rotating {
		k := maps.Clone(i.keys[0])
		k["kid"] = "rotated-" + strconv.Itoa(i.fetches)
		i.keys = append(i.keys, k)
	}
	status, body, redirect, hold := i.status, i.body, i.redirect, i.hold
	if body == "" {
		b, _ := json.Marshal(map[string]any{"keys": i.keys})
		body = string(b)
	}
	i.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if redirect != "" {
		http.Redirect(w, r, redirect, http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if status != 0 {
		w.WriteHeader(status)
	}
	_, _ = w.Write([]byte(body))
}

func (i *issuer) set(f func(*issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f(i)
}

func (i *issuer) fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

func (i *issuer) addECKey(t testing.TB, kid string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.addKey(t, kid, k, map[string]any{"alg": "ES256", "use": "sig"})
}

// addKey publishes signer's public key with further members.
func (i *issuer) addKey(t testing.TB, kid string, signer crypto.Signer, members map[string]any) {
	t.Helper()
	k, err := jwk.FromRaw(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	m["kid"] = kid
	for name, v := range members {
		m[name] = v
	}
	i.set(func(i *issuer) { i.keys, i.signers[kid] = append(i.keys, m), signer })
}

// claims returns those of a valid token for resource at now.
func (i *issuer) claims(resource string, now time.Time, scope string) map[string]any {
	return map[string]any{"iss": i.URL, "aud": resource, "sub": "u_1", "client_id": "c_1", "jti": "j_1",
		"exp": now.Add(10 * time.Minute).Unix(), "iat": now.Unix(), "scope": scope}
}

func header(alg, kid string) map[string]any {
	return map[string]any{"typ": "at+jwt", "alg": alg, "kid": kid}
}

// sign makes a compact JWS whose header and claims are whatever they are.
func (i *issuer) sign(t testing.TB, header, claims any) string {
	t.Helper()
	return i.signRaw(t, mustJSON(t, header), mustJSON(t, claims))
}

func (i *issuer) signRaw(t testing.TB, header, claims string) string {
	t.Helper()
	var h struct{ Kid string }
	_ = json.Unmarshal([]byte(header), &h)
	i.mu.Lock()
	signer := i.signers[h.Kid]
	i.mu.Unlock()
	if signer == nil {
		signer = i.signers["ec-1"]
	}
	signed := encode([]byte(header)) + "." + encode([]byte(claims))
	return signed + "." + encode(rawSignature(t, signer, signed))
}

// unknownKey returns a token that is fine but for its key, which nobody published.
func (i *issuer) unknownKey(t testing.TB, kid string, now time.Time) string {
	t.Helper()
	return encode([]byte(mustJSON(t, header("ES256", kid)))) + "." +
		encode([]byte(mustJSON(t, i.claims(testResource, now, "notes:read")))) + "." + encode(make([]byte, 64))
}

// rawSignature signs as RFC 7518 §3 says for the signer's type.
func rawSignature(t testing.TB, signer crypto.Signer, signed string) []byte {
	t.Helper()
	digest := sha256.Sum256([]byte(signed))
	switch k := signer.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, k, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case *rsa.PrivateKey:
		b, err := rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return b
	case ed25519.PrivateKey:
		return ed25519.Sign(k, []byte(signed))
	}
	t.Fatalf("no signature for %T", signer)
	return nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fixture is a protected handler, its issuer and a clock.
type fixture struct {
	issuer  *issuer
	server  *resourceserver.Server
	handler http.Handler
	mu      sync.Mutex
	now     time.Time
	served  []*http.Request
}

const testResource = "https://mcp.example.com/mcp"

func newFixture(t testing.TB, change ...func(*resourceserver.Options)) *fixture {
	t.Helper()
	f := &fixture{issuer: newIssuer(t), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	o := resourceserver.Options{Issuer: f.issuer.URL, Resource: testResource, Name: "Notes",
		Scopes: []string{"notes:read"}, ClockSkew: -1, Now: f.clock}
	for _, c := range change {
		c(&o)
	}
	s, err := resourceserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.server = s
	f.handler = s.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.served = append(f.served, r)
	}))
	return f
}

func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fixture) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// token returns a valid token with scope.
func (f *fixture) token(t testing.TB, scope string) string {
	t.Helper()
	return f.issuer.sign(t, header("ES256", "ec-1"), f.issuer.claims(testResource, f.clock(), scope))
}

// call sends r with the token, if any, and returns the answer.
func (f *fixture) call(r *http.Request, token string) *httptest.ResponseRecorder {
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

func (f *fixture) get(token string) *httptest.ResponseRecorder {
	return f.call(httptest.NewRequest(http.MethodGet, testResource, nil), token)
}

func (f *fixture) servedCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.served)
}

func decode(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
