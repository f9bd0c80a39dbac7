package bench

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/coreos/go-oidc/v3/oidc"
	gojwt "github.com/golang-jwt/jwt/v5"
	"github.com/lestrrat-go/jwx/v2/jwk"
	jwxjwt "github.com/lestrrat-go/jwx/v2/jwt"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

const (
	issuer   = "https://login.example.com"
	resource = "https://mcp.example.com/mcp"
)

// world is one issuer's key, its JWK set, and a token that lasts.
type world struct {
	key   *ecdsa.PrivateKey
	jwks  []byte
	token string
}

func newWorld(tb testing.TB) world {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(tb, err)
	public, err := jwk.FromRaw(key.Public())
	must(tb, err)
	must(tb, public.Set(jwk.KeyIDKey, "k"))
	must(tb, public.Set(jwk.AlgorithmKey, "ES256"))
	jwks, err := json.Marshal(map[string]any{"keys": []any{public}})
	must(tb, err)
	now := time.Now()
	return world{key: key, jwks: jwks, token: sign(tb, key, map[string]any{
		"iss": issuer, "sub": "u_01JD8Z3V5E7R9T1Y3K5M7P9Q1S", "aud": resource, "exp": now.Add(time.Hour).Unix(),
		"iat": now.Unix(), "jti": "0f8fad5bd9cb469fa16570867728950e", "client_id": "https://client.example.com/metadata.json",
		"scope": "notes:read notes:write", "auth_time": now.Unix(),
	})}
}

func sign(tb testing.TB, key *ecdsa.PrivateKey, claims map[string]any) string {
	tb.Helper()
	payload, err := json.Marshal(claims)
	must(tb, err)
	signed := encode([]byte(`{"typ":"at+jwt","alg":"ES256","kid":"k"}`)) + "." + encode(payload)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	must(tb, err)
	return signed + "." + encode(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// empty is what everything stands before.
var empty = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// sink is a ResponseWriter that costs nothing itself.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// handlers returns what is compared, by name.
func handlers(tb testing.TB, w world) map[string]http.Handler {
	tb.Helper()
	return map[string]http.Handler{
		"Empty":      empty,
		"FirstSight": ours(tb, w, -1),
		"Cached":     ours(tb, w, 0),
		"JWX":        auth.RequireBearerToken(jwxVerifier(tb, w), nil)(empty),
		"GoOIDC":     auth.RequireBearerToken(oidcVerifier(w), nil)(empty),
		"GolangJWT":  auth.RequireBearerToken(golangJWTVerifier(tb, w), nil)(empty),
	}
}

func ours(tb testing.TB, w world, cache int) http.Handler {
	tb.Helper()
	rs, err := resourceserver.New(resourceserver.Options{Resource: resource, TokenCache: cache,
		Issuers: []resourceserver.Issuer{{Identifier: issuer, JWKS: w.jwks}}})
	must(tb, err)
	return rs.Protect(empty)
}

// The three others are written as their documentation does, with issuer, audience,
// expiry and algorithm checked, and the scopes taken out.

func jwxVerifier(tb testing.TB, w world) auth.TokenVerifier {
	tb.Helper()
	set, err := jwk.Parse(w.jwks)
	must(tb, err)
	return func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		t, err := jwxjwt.Parse([]byte(token), jwxjwt.WithKeySet(set), jwxjwt.WithIssuer(issuer), jwxjwt.WithAudience(resource))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		scope, _ := t.Get("scope")
		s, _ := scope.(string)
		return &auth.TokenInfo{Scopes: strings.Fields(s), Expiration: t.Expiration(), UserID: t.Subject()}, nil
	}
}

func oidcVerifier(w world) auth.TokenVerifier {
	keys := &oidc.StaticKeySet{PublicKeys: []crypto.PublicKey{w.key.Public()}}
	verifier := oidc.NewVerifier(issuer, keys, &oidc.Config{ClientID: resource, SupportedSigningAlgs: []string{oidc.ES256}})
	return func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		t, err := verifier.Verify(ctx, token)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		var c struct {
			Scope string `json:"scope"`
		}
		if err := t.Claims(&c); err != nil {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		return &auth.TokenInfo{Scopes: strings.Fields(c.Scope), Expiration: t.Expiry, UserID: t.Subject}, nil
	}
}

func golangJWTVerifier(tb testing.TB, w world) auth.TokenVerifier {
	tb.Helper()
	keys, err := keyfunc.NewJWKSetJSON(w.jwks)
	must(tb, err)
	type claims struct {
		gojwt.RegisteredClaims
		Scope string `json:"scope"`
	}
	parser := gojwt.NewParser(gojwt.WithIssuer(issuer), gojwt.WithAudience(resource), gojwt.WithExpirationRequired(),
		gojwt.WithValidMethods([]string{"ES256"}))
	return func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		var c claims
		if _, err := parser.ParseWithClaims(token, &c, keys.Keyfunc); err != nil {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		return &auth.TokenInfo{Scopes: strings.Fields(c.Scope), Expiration: c.ExpiresAt.Time, UserID: c.Subject}, nil
	}
}

// BenchmarkFloor is the standard library's check of the same signature alone.
func BenchmarkFloor(b *testing.B) {
	w := newWorld(b)
	dot := strings.LastIndexByte(w.token, '.')
	raw, err := base64.RawURLEncoding.DecodeString(w.token[dot+1:])
	must(b, err)
	signed, public := []byte(w.token[:dot]), &w.key.PublicKey
	r, s := new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])
	measure(b, 1, func() {}, func(int) {
		digest := sha256.Sum256(signed)
		if !ecdsa.Verify(public, digest[:], r, s) {
			b.Fatal("the signature is not valid")
		}
	})
}

func BenchmarkEmpty(b *testing.B)      { serve(b, "Empty") }
func BenchmarkFirstSight(b *testing.B) { serve(b, "FirstSight") }
func BenchmarkCached(b *testing.B)     { serve(b, "Cached") }
func BenchmarkJWX(b *testing.B)        { serve(b, "JWX") }
func BenchmarkGoOIDC(b *testing.B)     { serve(b, "GoOIDC") }
func BenchmarkGolangJWT(b *testing.B)  { serve(b, "GolangJWT") }

func serve(b *testing.B, name string) {
	b.Helper()
	w := newWorld(b)
	h := handlers(b, w)[name]
	var requests [batch]*http.Request
	var answers [batch]*sink
	for i := range batch {
		requests[i], answers[i] = request(b, w.token), &sink{header: http.Header{}}
	}
	size := 1 // a signature takes long enough to be measured alone
	if name == "Empty" || name == "Cached" {
		size = batch
	}
	authorization := requests[0].Header["Authorization"]
	measure(b, size, func() {
		for i, r := range requests[:size] {
			clear(answers[i].header)
			r.Header["Authorization"] = authorization // Protect takes it off
		}
	}, func(i int) { h.ServeHTTP(answers[i], requests[i]) })
	if answers[0].status != 0 {
		b.Fatalf("the request was refused: %d", answers[0].status)
	}
}

// request returns what net/http would make of an MCP client's request.
func request(tb testing.TB, token string) *http.Request {
	tb.Helper()
	r := httptest.NewRequest(http.MethodPost, resource, nil)
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Accept-Encoding": "gzip", "User-Agent": "bench/1.0",
		"Mcp-Protocol-Version": "2025-11-25"} {
		r.Header.Set(name, value)
	}
	ctx := context.WithValue(context.Background(), http.ServerContextKey, &http.Server{})
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443})
	ctx, cancel := context.WithCancel(ctx)
	tb.Cleanup(cancel)
	return r.WithContext(ctx)
}

// batch is the most requests that are served before the next ones are made ready,
// which is not measured.
const batch = 64

// measure calls f with 0 to size-1 over and over, and between after each such batch.
// Beside ns/op it reports the processor time, which other programs on the machine
// disturb less, and the median of the batches, which they hardly disturb.
//
// Between batches the garbage collector may run, as it may in a server that waits
// for the network. A loop that never waits keeps it going, and all pointers slow,
// ten times as long. What it used is added to the processor time.
func measure(b *testing.B, size int, between func(), f func(i int)) {
	b.Helper()
	between()
	for i := range size {
		f(i)
	}
	b.ReportAllocs()
	c := clock{size: size}
	collector, n := collectorTime(), 0
	for b.Loop() {
		if n%size == 0 {
			if n > 0 {
				c.stop(b)
			}
			between()
			runtime.Gosched()
			c.start(b)
		}
		f(n % size)
		n++
	}
	c.report(b, collectorTime()-collector)
}

// clock adds up what batches take.
type clock struct {
	size      int // of a batch
	began     time.Time
	used      time.Duration // processor time when the batch began
	processor time.Duration
	batches   []time.Duration
}

func (c *clock) start(b *testing.B) { c.used, c.began = processorTime(b), time.Now() }

func (c *clock) stop(b *testing.B) {
	c.batches = append(c.batches, time.Since(c.began))
	c.processor += processorTime(b) - c.used
}

func (c *clock) report(b *testing.B, collector time.Duration) {
	if len(c.batches) == 0 {
		return // a trial run
	}
	var wall time.Duration
	for _, d := range c.batches {
		wall += d
	}
	slices.Sort(c.batches)
	n := float64(len(c.batches) * c.size)
	b.ReportMetric(float64(wall)/n, "ns/op")
	b.ReportMetric(float64(c.processor+collector)/n, "cpu-ns/op")
	b.ReportMetric(float64(c.batches[len(c.batches)/2])/float64(c.size), "median-ns/op")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// collectorTime is the processor time of the garbage collector so far, but for
// what it was idle.
func collectorTime() time.Duration {
	m := []metrics.Sample{{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/cpu/classes/gc/pause:cpu-seconds"}}
	metrics.Read(m)
	var total float64
	for _, s := range m {
		total += s.Value.Float64()
	}
	return time.Duration(total * float64(time.Second))
}

// What is compared does the same: the token passes, and one for another resource
// does not.
func TestHandlersAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := sign(t, w.key, map[string]any{"iss": issuer, "sub": "u", "aud": "https://other.example/mcp",
		"exp": time.Now().Add(time.Hour).Unix()})
	for name, h := range handlers(t, w) {
		if name == "Empty" {
			continue
		}
		for token, want := range map[string]int{w.token: http.StatusOK, other: http.StatusUnauthorized} {
			out := httptest.NewRecorder()
			h.ServeHTTP(out, request(t, token))
			if out.Code != want {
				t.Errorf("%s: status = %d, want %d", name, out.Code, want)
			}
		}
	}
}
