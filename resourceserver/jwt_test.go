package resourceserver_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/asn1"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// expect401 asserts one challenge with the error attribute and that the
// handler never ran.
func expect401(t *testing.T, f *fixture, w *httptest.ResponseRecorder, wantError string) {
	t.Helper()
	if w.Code != http.StatusUnauthorized {
		t.Fatalf("status = %d, want 401: %s", w.Code, w.Body)
	}
	challenges := w.Result().Header.Values("WWW-Authenticate")
	if len(challenges) != 1 {
		t.Fatalf("challenges = %q, want one (M1)", challenges)
	}
	c := challenges[0]
	if !strings.HasPrefix(c, `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`) {
		t.Errorf("challenge = %q, want resource_metadata first", c)
	}
	if has := strings.Contains(c, `error="`+wantError+`"`); wantError != "" && !has || wantError == "" && strings.Contains(c, "error=") {
		t.Errorf("challenge = %q, want error %q", c, wantError)
	}
	if n := f.servedCount(); n != 0 {
		t.Errorf("the handler ran %d times", n)
	}
}

func TestValidToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.get(f.token(t, "notes:read notes:write"))
	if w.Code != http.StatusOK || f.servedCount() != 1 {
		t.Fatalf("status = %d, handler ran %d times: %s", w.Code, f.servedCount(), w.Body)
	}
	got, ok := resourceserver.TokenFromContext(f.served[0].Context())
	want := &resourceserver.Token{Issuer: f.issuer.URL, Subject: "u_1", ClientID: "c_1", ID: "j_1",
		Audience: []string{testResource}, Scopes: []string{"notes:read", "notes:write"},
		IssuedAt: f.now, ExpiresAt: f.now.Add(10 * time.Minute)}
	if d := cmp.Diff(want, got); !ok || d != "" {
		t.Errorf("token (-want +got):\n%s", d)
	}
	if h := f.served[0].Header.Get("Authorization"); h != "" {
		t.Error("JW-24 the handler can see the Authorization header")
	}
}

func TestTokenSyntax(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := f.token(t, "notes:read")
	parts := strings.Split(good, ".")
	for _, tt := range []struct{ name, raw string }{
		{"JW-04 one segment", "abc"},
		{"JW-04 two segments", parts[0] + "." + parts[1]},
		{"JW-04 four segments", good + ".a"},
		{"JW-04 five segments, a JWE", "a.b.c.d.e"},
		{"JW-04 empty header", "." + parts[1] + "." + parts[2]},
		{"JW-04 empty payload", parts[0] + ".." + parts[2]},
		{"JW-04 empty signature", parts[0] + "." + parts[1] + "."},
		{"JW-04 64 KiB", strings.Repeat("a", 64<<10)},
		{"JW-04 line break in a segment", parts[0] + "." + parts[1] + "\n." + parts[2]},
		{"JW-04 padded", good + "="},
		{"RT-12 refresh token", "ost_rt_AAAA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect401(t, f, f.get(tt.raw), "invalid_token")
		})
	}
	if n := f.issuer.fetched(); n != 0 {
		t.Errorf("keys were fetched %d times for tokens that are not even JWTs", n)
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claims := f.issuer.claims(testResource, f.now, "notes:read")
	with := func(name string, v any) map[string]any {
		h := header("ES256", "ec-1")
		h[name] = v
		return h
	}
	without := func(name string) map[string]any {
		h := header("ES256", "ec-1")
		delete(h, name)
		return h
	}
	for _, tt := range []struct {
		name   string
		header any
	}{
		{"JW-05 alg none", with("alg", "none")},
		{"JW-05 alg None", with("alg", "None")},
		{"JW-05 alg nOnE", with("alg", "nOnE")},
		{"JW-05 alg empty", with("alg", "")},
		{"JW-05 alg missing", without("alg")},
		{"JW-05 alg a number", with("alg", 256)},
		{"JW-05 alg HS256", with("alg", "HS256")},
		{"JW-05 alg in another case", with("alg", "es256")},
		{"JW-13 typ JWT", with("typ", "JWT")},
		{"JW-13 typ missing", without("typ")},
		{"JW-13 logout token", with("typ", "logout+jwt")},
		{"JW-13 typ in another case", with("typ", "AT+JWT")},
		{"JW-13 typ with a suffix", with("typ", "at+jwt;x")},
		{"JW-18 Typ", map[string]any{"Typ": "at+jwt", "alg": "ES256", "kid": "ec-1"}},
		{"crit", with("crit", []string{"b64"})},
		{"JW-04 zip", with("zip", "DEF")},
		{"kid a number", with("kid", 1)},
		{"header an array", []string{"ES256"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect401(t, f, f.get(f.issuer.sign(t, tt.header, claims)), "invalid_token")
		})
	}
	t.Run("JW-13 application/at+jwt is accepted", func(t *testing.T) {
		if w := f.get(f.issuer.sign(t, with("typ", "application/at+jwt"), claims)); w.Code != http.StatusOK {
			t.Errorf("status = %d: %s", w.Code, w.Body)
		}
	})
}

func TestKeyDecidesAlgorithm(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f.issuer.addKey(t, "rsa-1", rsaKey, nil) // no alg, as some issuers publish
	f.issuer.addKey(t, "rsa-rs512", rsaKey, map[string]any{"alg": "RS512"})
	f.issuer.addKey(t, "rsa-enc", rsaKey, map[string]any{"use": "enc"})
	f.issuer.addKey(t, "rsa-ops", rsaKey, map[string]any{"key_ops": []string{"encrypt"}})
	f.issuer.addKey(t, "ed-1", edKey, map[string]any{"alg": "EdDSA"})
	for _, tt := range []struct {
		name, alg, kid string
		want           int
	}{
		{"RSA key without alg", "RS256", "rsa-1", http.StatusOK},
		{"EdDSA", "EdDSA", "ed-1", http.StatusOK},
		{"JW-07 RS256 with an EC key", "RS256", "ec-1", http.StatusUnauthorized},
		{"JW-07 ES256 with an RSA key", "ES256", "rsa-1", http.StatusUnauthorized},
		{"JW-07 PS256 said, RS256 signed", "PS256", "rsa-1", http.StatusUnauthorized},
		{"JW-07 key is for RS512", "RS256", "rsa-rs512", http.StatusUnauthorized},
		{"JW-07 use enc", "RS256", "rsa-enc", http.StatusUnauthorized},
		{"JW-07 key_ops without verify", "RS256", "rsa-ops", http.StatusUnauthorized},
		{"JW-11 unknown kid", "ES256", "nobody", http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := f.get(f.issuer.sign(t, header(tt.alg, tt.kid), f.issuer.claims(testResource, f.now, "notes:read")))
			if w.Code != tt.want {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}

func TestJW08_Signature(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := f.token(t, "notes:read")
	cut := strings.LastIndex(good, ".") + 1
	raw := rawSignature(t, f.issuer.signers["ec-1"], good[:cut-1])
	der, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		signature []byte
	}{
		{"JW-08 zero", make([]byte, 64)},
		{"JW-08 DER", der},
		{"JW-08 short", raw[:63]},
		{"JW-08 long", append(raw[:64:64], 0)},
		{"JW-08 another message", rawSignature(t, f.issuer.signers["ec-1"], "x")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect401(t, f, f.get(good[:cut]+encode(tt.signature)), "invalid_token")
		})
	}
}

// JW-08: R and S+L verify by the equation that S does; RFC 8032 §5.1.7 has S below L.
func TestJW08_EdDSANotCanonical(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f.issuer.addKey(t, "ed-1", key, map[string]any{"alg": "EdDSA"})
	good := f.issuer.sign(t, header("EdDSA", "ed-1"), f.issuer.claims(testResource, f.now, "notes:read"))
	cut := strings.LastIndex(good, ".") + 1
	raw := decode(t, good[cut:])
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := slices.Clone(raw[32:])
	slices.Reverse(s) // little-endian
	s = new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(make([]byte, 32))
	slices.Reverse(s)
	for _, tt := range []struct {
		name      string
		signature []byte
	}{
		{"JW-08 S plus the order", append(raw[:32:32], s...)},
		{"JW-08 short", raw[:63]},
		{"JW-08 zero", make([]byte, 64)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect401(t, f, f.get(good[:cut]+encode(tt.signature)), "invalid_token")
		})
	}
	if w := f.get(good); w.Code != http.StatusOK {
		t.Errorf("the canonical one: status = %d: %s", w.Code, w.Body)
	}
}

// Each curve has its own hash and its own length of signature (RFC 7518 §3.4).
func TestECDSACurves(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) { o.Algorithms = []string{"ES256", "ES384", "ES512"} })
	for _, tt := range []struct {
		alg   string
		curve elliptic.Curve
		hash  crypto.Hash
		size  int
	}{
		{"ES256", elliptic.P256(), crypto.SHA256, 32},
		{"ES384", elliptic.P384(), crypto.SHA384, 48},
		{"ES512", elliptic.P521(), crypto.SHA512, 66},
	} {
		key, err := ecdsa.GenerateKey(tt.curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		f.issuer.addKey(t, tt.alg, key, nil)
		unsigned := encode([]byte(mustJSON(t, header(tt.alg, tt.alg)))) + "." +
			encode([]byte(mustJSON(t, f.issuer.claims(testResource, f.now, "notes:read"))))
		h := tt.hash.New()
		h.Write([]byte(unsigned))
		r, s, err := ecdsa.Sign(rand.Reader, key, h.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		signature := append(r.FillBytes(make([]byte, tt.size)), s.FillBytes(make([]byte, tt.size))...)
		f.advance(time.Minute) // so that the new key is fetched
		t.Run(tt.alg, func(t *testing.T) {
			if w := f.get(unsigned + "." + encode(signature)); w.Code != http.StatusOK {
				t.Errorf("status = %d: %s", w.Code, w.Body)
			}
			signature[len(signature)-1] ^= 1
			if w := f.get(unsigned + "." + encode(signature)); w.Code != http.StatusUnauthorized {
				t.Errorf("JW-08 one bit changed: status = %d, want 401", w.Code)
			}
			signature[len(signature)-1] ^= 1
			if w := f.get(unsigned + "." + encode(append([]byte{0}, signature...))); w.Code != http.StatusUnauthorized {
				t.Errorf("JW-08 one byte longer: status = %d, want 401", w.Code)
			}
		})
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	now := f.now.Unix()
	for _, tt := range []struct {
		name  string
		claim string
		value any // nil removes the claim
	}{
		{"JW-14 iss wrong", "iss", "https://evil.example"},
		{"JW-14 iss with a slash", "iss", f.issuer.URL + "/"},
		{"JW-14 iss missing", "iss", nil},
		{"JW-14 iss an array", "iss", []string{f.issuer.URL}},
		{"JW-15 aud missing", "aud", nil},
		{"JW-15 aud empty", "aud", []string{}},
		{"JW-15 AU-07 aud of another resource", "aud", "https://other.example/mcp"},
		{"JW-15 aud an object", "aud", map[string]string{"a": testResource}},
		{"JW-15 aud has a number", "aud", []any{123, testResource}},
		{"JW-15 aud list of others", "aud", []string{"other"}},
		{"JW-15 aud a prefix", "aud", "https://mcp.example.com/m"},
		{"JW-15 aud below ours", "aud", testResource + "/x"},
		{"JW-15 aud the origin", "aud", "https://mcp.example.com"},
		{"AU-09 aud is the issuer", "aud", f.issuer.URL},
		{"AU-09 aud is the client_id", "aud", "c_1"},
		{"JW-16 exp missing", "exp", nil},
		{"JW-16 exp a string", "exp", "9999999999"},
		{"JW-16 exp negative", "exp", -1},
		{"JW-16 exp 1e300", "exp", 1e300},
		{"JW-16 exp null", "exp", []any{}},
		{"JW-16 exp now", "exp", now},
		{"JW-16 nbf future", "nbf", now + 1},
		{"JW-16 iat future", "iat", now + 1},
		{"JW-16 iat a string", "iat", "now"},
		{"JW-21 bound to a key", "cnf", map[string]string{"jkt": "x"}},
		{"sub missing", "sub", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.issuer.claims(testResource, f.now, "notes:read")
			if c[tt.claim] = tt.value; tt.value == nil {
				delete(c, tt.claim)
			}
			expect401(t, f, f.get(f.issuer.sign(t, header("ES256", "ec-1"), c)), "invalid_token")
		})
	}
	for _, tt := range []struct {
		name  string
		claim string
		value any
	}{
		{"JW-15 M7 aud list with ours", "aud", []string{"https://other.example/", testResource}},
		{"M7 A23 aud with a slash", "aud", testResource + "/"},
		{"M7 A23 aud in another case", "aud", "HTTPS://MCP.Example.com:443/mcp"},
		{"JW-16 exp a float", "exp", float64(now) + 1.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.issuer.claims(testResource, f.now, "notes:read")
			c[tt.claim] = tt.value
			if w := f.get(f.issuer.sign(t, header("ES256", "ec-1"), c)); w.Code != http.StatusOK {
				t.Errorf("status = %d: %s", w.Code, w.Body)
			}
			f.served = nil
		})
	}
}

func TestJW18_ExactCase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tt := range []struct{ name, claim, spelling string }{
		{"JW-18 AUD", "aud", "AUD"},
		{"JW-18 Exp", "exp", "Exp"},
		{"JW-18 long s in iss", "iss", "iſs"},
		{"JW-18 Sub", "sub", "Sub"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.issuer.claims(testResource, f.now, "notes:read")
			c[tt.spelling] = c[tt.claim]
			delete(c, tt.claim)
			expect401(t, f, f.get(f.issuer.sign(t, header("ES256", "ec-1"), c)), "invalid_token")
		})
	}
	t.Run("JW-18 repeated claim", func(t *testing.T) {
		c := mustJSON(t, f.issuer.claims(testResource, f.now, "notes:read"))
		twice := strings.Replace(c, "{", `{"aud":"https://other.example",`, 1)
		expect401(t, f, f.get(f.issuer.signRaw(t, mustJSON(t, header("ES256", "ec-1")), twice)), "invalid_token")
	})
	t.Run("JW-18 data after the claims", func(t *testing.T) {
		c := mustJSON(t, f.issuer.claims(testResource, f.now, "notes:read")) + "{}"
		expect401(t, f, f.get(f.issuer.signRaw(t, mustJSON(t, header("ES256", "ec-1")), c)), "invalid_token")
	})
}

func TestJW16_ClockSkew(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) { o.ClockSkew = 30 * time.Second })
	for _, tt := range []struct {
		name, claim string
		offset      int64
		want        int
	}{
		{"exp within", "exp", -29, http.StatusOK},
		{"exp past by skew", "exp", -30, http.StatusUnauthorized},
		{"nbf within", "nbf", 30, http.StatusOK},
		{"nbf beyond", "nbf", 31, http.StatusUnauthorized},
		{"iat beyond", "iat", 31, http.StatusUnauthorized},
	} {
		t.Run("JW-16 "+tt.name, func(t *testing.T) {
			c := f.issuer.claims(testResource, f.now, "notes:read")
			c[tt.claim] = f.now.Unix() + tt.offset
			if w := f.get(f.issuer.sign(t, header("ES256", "ec-1"), c)); w.Code != tt.want {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}

func TestJW20_Scope(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.handler = f.server.Protect(f.server.RequireScopes("notes:read")(http.NotFoundHandler()))
	for _, tt := range []struct {
		name  string
		scope any
		want  int
	}{
		{"JW-20 string", "notes:write notes:read", http.StatusNotFound},
		{"JW-20 extra spaces", "  notes:read   x ", http.StatusNotFound},
		{"JW-20 array", []string{"notes:read"}, http.StatusForbidden},
		{"JW-20 missing", nil, http.StatusForbidden},
		{"JW-20 empty", "", http.StatusForbidden},
		{"JW-20 star", "*", http.StatusForbidden},
		{"JW-20 tab instead of space", "notes:write\tnotes:read", http.StatusForbidden},
		{"JW-20 another case", "Notes:Read", http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.issuer.claims(testResource, f.now, "")
			if c["scope"] = tt.scope; tt.scope == nil {
				delete(c, "scope")
			}
			if w := f.get(f.issuer.sign(t, header("ES256", "ec-1"), c)); w.Code != tt.want {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}
