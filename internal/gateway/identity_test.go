package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/ostiary-auth/ostiary/internal/gateway"
)

// verify reads an identity as an upstream does, by the published keys.
func verify(t *testing.T, f *fixture, identity string) map[string]any {
	t.Helper()
	set, err := jwk.Parse(f.key.JWKS())
	must(t, err)
	payload, err := jws.Verify([]byte(identity), jws.WithKeySet(set))
	must(t, err)
	m, err := jws.Parse([]byte(identity))
	must(t, err)
	if got := m.Signatures()[0].ProtectedHeaders().Type(); got != gateway.TypeIdentity {
		t.Errorf("typ = %q, want %q", got, gateway.TypeIdentity)
	}
	claims := map[string]any{}
	must(t, json.Unmarshal(payload, &claims))
	return claims
}

func TestIdentityJWT(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	f.post(t, call)
	got := verify(t, f, f.only(t).Header.Get("X-Ostiary-Identity"))
	if id, _ := got["jti"].(string); len(id) < 20 {
		t.Errorf("jti = %q", id)
	}
	delete(got, "jti")
	at := float64(f.clock().Unix())
	want := map[string]any{"iss": testResource, "aud": f.upstream.URL + "/inner", "sub": "u_1", "subject_issuer": f.issuer.URL,
		"client_id": "c_1", "scope": "notes:read", "iat": at, "exp": at + 60}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	set := struct{ Keys []map[string]any }{}
	must(t, json.Unmarshal(f.key.JWKS(), &set))
	if len(set.Keys) != 1 || set.Keys[0]["d"] != nil || set.Keys[0]["alg"] != "ES256" || set.Keys[0]["use"] != "sig" {
		t.Errorf("MM-03 keys = %v", set.Keys)
	}
}

// One JWT serves a token's requests for half of its life, and no other token's.
func TestIdentityIsReused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	a, b := "Bearer "+f.token(t), "Bearer "+f.token(t, map[string]any{"sub": "u_2"})
	var ids []string
	for _, step := range []struct {
		after time.Duration
		token string
	}{{0, a}, {29 * time.Second, a}, {0, b}, {time.Second, a}} {
		f.set(f.clock().Add(step.after))
		f.do(t, http.MethodPost, "/mcp", call, "Authorization", step.token)
		list := f.requests()
		ids = append(ids, list[len(list)-1].Header.Get("X-Ostiary-Identity"))
	}
	if ids[0] != ids[1] || ids[1] == ids[3] {
		t.Error("the JWT of a token is not reused for 30 seconds and then made anew")
	}
	if got := verify(t, f, ids[2])["sub"]; got != "u_2" {
		t.Errorf("the other token's subject = %v", got)
	}
}

// An identity does not outlive its token, but for what clocks may differ by.
func TestIdentityEndsWithToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	for _, tt := range []struct{ left, want time.Duration }{
		{time.Hour, time.Minute}, {40 * time.Second, 40 * time.Second}, {3 * time.Second, 10 * time.Second}, {-5 * time.Second, 10 * time.Second},
	} {
		token := f.token(t, map[string]any{"exp": f.clock().Add(tt.left).Unix()})
		f.do(t, http.MethodPost, "/mcp", call, "Authorization", "Bearer "+token)
		list := f.requests()
		got := verify(t, f, list[len(list)-1].Header.Get("X-Ostiary-Identity"))
		if want := float64(f.clock().Add(tt.want).Unix()); got["exp"] != want {
			t.Errorf("token good for %s: exp = %v, want %v", tt.left, got["exp"], want)
		}
	}
}

// An identity is no access token, here or at another gateway of the same key.
func TestAU07_IdentityIsNoAccessToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.post(t, call)
	identity := f.only(t).Header.Get("X-Ostiary-Identity")
	if got := f.do(t, http.MethodPost, "/mcp", call, "Authorization", "Bearer "+identity).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("status = %d, want 401", got)
	}
}

func TestIdentityHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.Identity = gateway.IdentityHeaders })
	f.post(t, call, "X-Ostiary-Subject", "admin", "X_Ostiary_Subject", "admin", "X-Ostiary-Identity", "forged")
	got := http.Header{}
	for name, values := range f.only(t).Header {
		if len(name) > 10 && folded(name)[:10] == "x-ostiary-" {
			got[name] = values
		}
	}
	want := http.Header{"X-Ostiary-Subject": {"u_1"}, "X-Ostiary-Client-Id": {"c_1"}, "X-Ostiary-Scope": {"notes:read"},
		"X-Ostiary-Issuer": {f.issuer.URL}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, subject := range []string{"u_1\r\nX-Ostiary-Scope: all", " u_1", "u_1 ", "ü_1", "u\x00"} {
		res := f.do(t, http.MethodPost, "/mcp", call, "Authorization", "Bearer "+f.token(t, map[string]any{"sub": subject}))
		if res.StatusCode < 400 || res.StatusCode >= 500 || len(f.requests()) != 1 {
			t.Errorf("subject %q: %d, %d requests arrived; want a refusal", subject, res.StatusCode, len(f.requests()))
		}
	}
}

func TestIdentityNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.Identity = gateway.IdentityNone })
	f.post(t, call, "X-Ostiary-Identity", "forged")
	for name := range f.only(t).Header {
		if len(name) > 10 && folded(name)[:10] == "x-ostiary-" {
			t.Errorf("%s arrived", name)
		}
	}
}

// JW-26: identities never cross, whoever calls at the same time.
func TestJW26_ParallelUsers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var wg sync.WaitGroup
	for u := range 8 {
		sub := fmt.Sprintf("u_%d", u)
		token := "Bearer " + f.token(t, map[string]any{"sub": sub})
		wg.Go(func() {
			for range 10 {
				f.do(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":"`+sub+`","method":"ping"}`, "Authorization", token)
			}
		})
	}
	wg.Wait()
	list := f.requests()
	if len(list) != 80 {
		t.Errorf("%d requests arrived, want 80", len(list))
	}
	for _, r := range list {
		var m struct{ ID string }
		must(t, json.Unmarshal([]byte(r.body), &m))
		if got := verify(t, f, r.Header.Get("X-Ostiary-Identity"))["sub"]; got != m.ID {
			t.Errorf("request of %s came as %v", m.ID, got)
		}
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "identity.pem")
	keys := make([]*gateway.Key, 4) // several start at once and agree
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = gateway.LoadKey(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	again, err := gateway.LoadKey(path)
	must(t, err)
	for _, k := range keys {
		if k == nil || string(k.JWKS()) != string(again.JWKS()) {
			t.Error("the file has another key")
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(other)
	must(t, err)
	for name, data := range map[string][]byte{"P-384": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), "no PEM": []byte("key")} {
		wrong := filepath.Join(t.TempDir(), "wrong.pem")
		must(t, os.WriteFile(wrong, data, 0o600))
		if _, err := gateway.LoadKey(wrong); err == nil || !strings.Contains(err.Error(), "P-256") {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	fresh, err := gateway.NewKey()
	must(t, err)
	if string(fresh.JWKS()) == string(again.JWKS()) {
		t.Error("two keys are one")
	}
}
