package testkit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
)

// AssertionType is the client_assertion_type of private_key_jwt (RFC 7523 §2.2).
const AssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// ClientKey is the key pair of a client that authenticates by private_key_jwt.
type ClientKey struct {
	// KID is its kid, Alg the algorithm it signs with.
	KID, Alg string
	private  crypto.Signer
}

// NewClientKey makes a key for ES256, EdDSA, RS256 or PS256.
func NewClientKey(t testing.TB, alg, kid string) *ClientKey {
	t.Helper()
	k := &ClientKey{KID: kid, Alg: alg}
	var err error
	switch alg {
	case "ES256":
		k.private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, k.private, err = ed25519.GenerateKey(rand.Reader)
	case "RS256", "PS256":
		k.private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		t.Fatalf("no key for %s", alg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// JWKS returns the public keys as a JWK set.
func JWKS(t testing.TB, keys ...*ClientKey) []byte {
	t.Helper()
	set := struct {
		Keys []jwk.Key `json:"keys"`
	}{[]jwk.Key{}}
	for _, k := range keys {
		public, err := jwk.FromRaw(k.private.Public())
		if err != nil {
			t.Fatal(err)
		}
		if err := public.Set("kid", k.KID); err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, public)
	}
	b, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// PrivateJWK returns the private key as a JWK, which nobody should publish.
func (k *ClientKey) PrivateJWK(t testing.TB) []byte {
	t.Helper()
	key, err := jwk.FromRaw(k.private)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ParseClientKey reads what PrivateJWK wrote.
func ParseClientKey(t testing.TB, alg, kid string, private []byte) *ClientKey {
	t.Helper()
	key, err := jwk.ParseKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var raw any
	if err := key.Raw(&raw); err != nil {
		t.Fatal(err)
	}
	signer, ok := raw.(crypto.Signer)
	if !ok {
		t.Fatalf("a %T signs nothing", raw)
	}
	return &ClientKey{KID: kid, Alg: alg, private: signer}
}

// AssertionClaims are what a client says of itself for one minute (RFC 7523 §3).
func AssertionClaims(clientID, audience string, now time.Time) map[string]any {
	return map[string]any{"iss": clientID, "sub": clientID, "aud": audience, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
}

// Sign returns a compact JWS of claims. A member of changes replaces one of the
// header, nil removes it.
func (k *ClientKey) Sign(t testing.TB, changes, claims map[string]any) string {
	t.Helper()
	header := map[string]any{"alg": k.Alg, "kid": k.KID, "typ": "JWT"}
	maps.Copy(header, changes)
	maps.DeleteFunc(header, func(_ string, v any) bool { return v == nil })
	claims = maps.Clone(claims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	h, errH := json.Marshal(header)
	c, errC := json.Marshal(claims)
	if errH != nil || errC != nil {
		t.Fatal(errH, errC)
	}
	compact, err := k.SignRaw(h, c)
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

// SignRaw is Sign for a header and claims as they are.
func (k *ClientKey) SignRaw(header, claims []byte) (string, error) {
	b64 := base64.RawURLEncoding
	signed := b64.EncodeToString(header) + "." + b64.EncodeToString(claims)
	signer, err := jws.NewSigner(jwa.SignatureAlgorithm(k.Alg))
	if err != nil {
		return "", err
	}
	signature, err := signer.Sign([]byte(signed), k.private)
	if err != nil {
		return "", fmt.Errorf("sign assertion: %w", err)
	}
	return signed + "." + b64.EncodeToString(signature), nil
}
