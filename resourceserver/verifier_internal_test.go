package resourceserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

// A token that is remembered is found without an allocation. It does not run
// beside other tests, which allocate too.
func TestRememberedTokenAllocatesNothing(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := serverOf(t, key)
	token := signES256(t, key, `{"typ":"at+jwt","alg":"ES256","kid":"k"}`,
		fmt.Sprintf(`{"iss":"https://login.example.com","aud":"https://mcp.example.com/mcp","sub":"u_1","exp":%d}`,
			time.Now().Add(time.Hour).Unix()))
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		if got, err := s.verifier.verify(ctx, token); err != nil || got.Subject != "u_1" {
			t.Fatal(got, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// JW-31: whatever becomes of the verification, nothing but a token opens the door.
func TestJW31_FailsClosed(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const token = "a.b.c"
	for name, spoil := range map[string]func(*Server){
		"JW-31 the verifier panics": func(s *Server) { s.verifier = nil },
		"JW-31 the verifier returns nothing": func(s *Server) {
			s.verifier.verified.put(digestOf(token), verified{}, time.Now().Add(time.Hour), time.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serverOf(t, key)
			spoil(s)
			r := httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			s.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })).ServeHTTP(w, r)
			if w.Code != http.StatusInternalServerError {
				t.Errorf("status = %d, want 500", w.Code)
			}
		})
	}
}

// serverOf trusts key as that of an issuer.
func serverOf(t *testing.T, key *ecdsa.PrivateKey) *Server {
	t.Helper()
	public, err := jwk.FromRaw(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if err := public.Set(jwk.KeyIDKey, "k"); err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(map[string]any{"keys": []any{public}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Resource: "https://mcp.example.com/mcp",
		Issuers: []Issuer{{Identifier: "https://login.example.com", JWKS: set}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signES256(t *testing.T, key *ecdsa.PrivateKey, header, claims string) string {
	t.Helper()
	signed := base64URL.EncodeToString([]byte(header)) + "." + base64URL.EncodeToString([]byte(claims))
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64URL.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}
