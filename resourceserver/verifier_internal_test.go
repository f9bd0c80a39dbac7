package resourceserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/ostiary-auth/ostiary/internal/jose"
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
			s.verifier.verified.put(s.verifier.digests.of(token), verified{}, time.Now().Add(time.Hour), time.Now())
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

// JW-31: what panics in the background is an outage, not the end of the process.
func TestJW31_PanicInTheBackground(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, ask := range map[string]func(o Options) error{
		"JW-31 reading keys": func(o Options) error {
			s := &keySet{source: panicking{}, retry: time.Minute, limit: time.Hour, now: o.Now, log: o.Log}
			_, err := s.find(ctx, "k", jwa.ES256)
			return err
		},
		"JW-31 reading an answer": func(o Options) error {
			a := &authority{Issuer: Issuer{Identifier: "https://login.example.com",
				Introspection: &Introspection{Endpoint: "https://login.example.com/introspect"}}, now: o.Now}
			o.HTTPClient = &http.Client{Transport: panicking{}}
			_, _, err := newIntrospector(o, a).ask(ctx, "opaque", digest{}, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := ask(Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if e := (*refusal)(nil); !errors.As(err, &e) || e.status != http.StatusServiceUnavailable ||
				!strings.Contains(e.Error(), "panicked") {
				t.Errorf("err = %v, want a 503 refusal that tells of the panic", err)
			}
		})
	}
}

type panicking struct{}

func (panicking) fetch(context.Context) ([]*jose.Key, error)      { panic("keys") }
func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("answer") }

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
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}
