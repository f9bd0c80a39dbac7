package authclient

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/jose"
)

func ecKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func pkcs8PEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// verified takes a JWT apart and checks its signature.
func verified(t testing.TB, raw string, public crypto.PublicKey, alg jose.Algorithm) *jose.JWS {
	t.Helper()
	var j jose.JWS
	if err := j.Split(raw); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	if _, ok := j.Algorithm([]jose.Algorithm{alg}); !ok {
		t.Fatalf("the header is %v, want alg %s", j.Header, alg)
	}
	k := jose.Key{Public: public.(jose.PublicKey), Algorithms: []jose.Algorithm{alg}}
	if err := k.Verify(alg, j.Signed, j.Signature); err != nil {
		t.Fatalf("%s: %v", alg, err)
	}
	return &j
}

func TestSignJWT(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		key  crypto.Signer
		alg  string
		want jose.Algorithm
	}{
		{ecKey(t, elliptic.P256()), "", jose.ES256},
		{ecKey(t, elliptic.P384()), "", jose.ES384},
		{ecKey(t, elliptic.P521()), "", jose.ES512},
		{ed, "", jose.EdDSA},
		{rsaKey, "", jose.RS256},
		{rsaKey, "RS512", jose.RS512},
		{rsaKey, "PS256", jose.PS256},
		{rsaKey, "PS384", jose.PS384},
	} {
		t.Run(string(tt.want), func(t *testing.T) {
			t.Parallel()
			a, err := (&SigningKey{Signer: tt.key, Algorithm: tt.alg}).algorithm()
			if err != nil {
				t.Fatal(err)
			}
			raw, err := signJWT(tt.key, a, map[string]any{"typ": "JWT"}, map[string]any{"sub": "a"})
			if err != nil {
				t.Fatal(err)
			}
			if j := verified(t, raw, tt.key.Public(), tt.want); !j.Claims.Is("sub", "a") || !j.Header.Is("typ", "JWT") {
				t.Errorf("claims %v, header %v", j.Claims, j.Header)
			}
		})
	}
}

// TestSideBySide: a signature whose numbers are short is as long as any other
// (RFC 7518 §3.4).
func TestSideBySide(t *testing.T) {
	t.Parallel()
	der := func(r, s int64) []byte {
		b, err := asn1.Marshal(struct{ R, S *big.Int }{big.NewInt(r), big.NewInt(s)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	got, err := es256.sideBySide(der(1, 2))
	if err != nil || len(got) != 64 || got[31] != 1 || got[63] != 2 {
		t.Errorf("sideBySide = %x, %v", got, err)
	}
	for name, bad := range map[string][]byte{"zero": der(0, 1), "negative": der(1, -1), "more follows": append(der(1, 1), 0), "empty": nil} {
		if got, err := es256.sideBySide(bad); err == nil {
			t.Errorf("%s: %x, want an error", name, got)
		}
	}
}

func TestParseSigningKey(t *testing.T) {
	t.Parallel()
	ec := ecKey(t, elliptic.P256())
	sec1, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	for _, tt := range []struct {
		name string
		pem  []byte
		want string // part of the error, or the algorithm
		ok   bool
	}{
		{"PKCS 8 EC", pkcs8PEM(t, ec), "ES256", true},
		{"SEC 1", encode("EC PRIVATE KEY", sec1), "ES256", true},
		{"PKCS 1", encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), "RS256", true},
		{"no PEM", []byte("hunter2"), "is not PEM", false},
		{"encrypted", encode("ENCRYPTED PRIVATE KEY", []byte("x")), "without a passphrase", false},
		{"garbage", encode("PRIVATE KEY", []byte("hunter2")), "cannot be read", false},
		{"RSA of 1024 bits", pkcs8PEM(t, small), "2048 bits", false},
		{"of P-224", pkcs8PEM(t, ecKey(t, elliptic.P224())), "P-256", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, err := ParseSigningKey(tt.pem)
			if !tt.ok {
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("ParseSigningKey = %v, want an error with %q and without the key", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a, err := k.algorithm(); err != nil || a.name != tt.want {
				t.Errorf("algorithm = %s, %v, want %s", a.name, err, tt.want)
			}
		})
	}
}

func TestAlgorithmFor(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, configured string
		supported        []string
		want             string
	}{
		{"nothing said", "", nil, "RS256"},
		{"what both can", "", []string{"ES256", "PS256"}, "PS256"},
		{"configured", "PS512", []string{"RS256", "PS512"}, "PS512"},
		{"configured and not supported", "PS512", []string{"RS256"}, ""},
		{"nothing in common", "", []string{"ES256"}, ""},
		{"RSA cannot do ECDSA", "ES256", nil, ""},
		{"JW-01 never none", "none", nil, ""},
	} {
		a, err := (&SigningKey{Signer: rsaKey, Algorithm: tt.configured}).algorithmFor(tt.supported)
		if a.name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v, want %q", tt.name, a.name, err, tt.want)
		}
	}
	if _, err := (&SigningKey{}).algorithm(); err == nil {
		t.Error("a key without a Signer is accepted")
	}
}

func TestReadJWT(t *testing.T) {
	t.Parallel()
	seg := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, tt := range []struct {
		name, raw string
		aud       []string
		ok        bool
	}{
		{"one audience", seg(`{}`) + "." + seg(`{"aud":"a"}`) + ".AA", []string{"a"}, true},
		{"a list", seg(`{}`) + "." + seg(`{"aud":["a","b"]}`) + ".AA", []string{"a", "b"}, true},
		{"none", seg(`{}`) + "." + seg(`{}`) + ".AA", nil, true},
		{"a number", seg(`{}`) + "." + seg(`{"aud":1}`) + ".AA", nil, true},
		{"twice", seg(`{}`) + "." + seg(`{"aud":"a","aud":"b"}`) + ".AA", nil, false},
		{"no signature", seg(`{}`) + "." + seg(`{}`) + ".", nil, false},
		{"two parts", seg(`{}`) + "." + seg(`{}`), nil, false},
		{"opaque", "ghp_opaque", nil, false},
		{"a line break", seg(`{}`) + "." + seg(`{}`) + ".A\nA", nil, false},
		{"too long", seg(`{}`) + "." + seg(`{}`) + "." + strings.Repeat("A", maxAssertion), nil, false},
	} {
		_, claims, err := readJWT(tt.raw)
		if (err == nil) != tt.ok || strings.Join(audiences(claims), " ") != strings.Join(tt.aud, " ") {
			t.Errorf("%s: aud %q, %v, want %q", tt.name, audiences(claims), err, tt.aud)
		}
	}
}

// FuzzReadJWT: what was accepted can stand in a form and a header as it is.
func FuzzReadJWT(f *testing.F) {
	for _, s := range []string{"", "..", "a.b.c", "e30.e30.AA", "e30.eyJhdWQiOiJhIn0.AA", "e30.e30.A\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		_, claims, err := readJWT(raw)
		if err == nil && (!isVisible(raw) || strings.Count(raw, ".") != 2 || len(raw) > maxAssertion) {
			t.Errorf("readJWT(%q) accepts it", raw)
		}
		if err != nil && claims != nil {
			t.Errorf("readJWT(%q) = %v and claims", raw, err)
		}
	})
}
