// Package issuer is an authorization server reduced to what a resource server
// needs of it: metadata, one key, and tokens signed with it (RFC 9068). It is
// for tests of what stands behind resourceserver, and imports nothing of ours.
package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Issuer is an authorization server that listens until the test ends. Its URL
// is the issuer identifier.
type Issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

// New starts an Issuer.
func New(t testing.TB) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	jwk := map[string]string{"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig",
		"x": encode(point[1:33]), "y": encode(point[33:])}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/jwks"})
	})
	mux.HandleFunc("GET /jwks", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"keys": []any{jwk}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// Token returns an access token of a person for a resource, good for a minute.
func (i *Issuer) Token(t testing.TB, resource, subject, scope string) string {
	t.Helper()
	return i.TokenUntil(t, resource, subject, scope, time.Now().Add(time.Minute))
}

// TokenUntil returns an access token that expires then.
func (i *Issuer) TokenUntil(t testing.TB, resource, subject, scope string, expires time.Time) string {
	t.Helper()
	signed := encodeJSON(t, map[string]string{"alg": "ES256", "typ": "at+jwt", "kid": "1"}) + "." +
		encodeJSON(t, map[string]any{"iss": i.URL, "aud": resource, "sub": subject, "client_id": "c", "jti": rand.Text(),
			"iat": expires.Add(-time.Minute).Unix(), "exp": expires.Unix(), "scope": scope})
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return signed + "." + encode(sig[:])
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func encodeJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return encode(b)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
