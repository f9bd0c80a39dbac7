package registration_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// FuzzAssertionClaims signs any claims with the client's own key: what is accepted
// is of this client, for this server alone, short and used once.
func FuzzAssertionClaims(f *testing.F) {
	key := testkit.NewClientKey(f, "ES256", "k1")
	c := keyClient(testkit.JWKS(f, key))
	now := assertionTime.Unix()
	good, err := json.Marshal(testkit.AssertionClaims("quill", assertionIssuer, assertionTime))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, claims := range []map[string]any{
		{"iss": "quill", "sub": "quill", "aud": []string{tokenEndpoint}, "jti": "1", "exp": now + 60, "nbf": now, "iat": float64(now) + 0.5},
		{"iss": "quill", "sub": "quill", "aud": []any{assertionIssuer, tokenEndpoint}, "jti": "1", "exp": now + 60},
		{"iss": "quill", "SUB": "quill", "aud": assertionIssuer, "jti": "1", "exp": "soon"},
		{"iss": "other", "sub": "other", "aud": assertionIssuer, "jti": "", "exp": now + 36000},
	} {
		raw, err := json.Marshal(claims)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"iss":"quill","sub":"quill","sub":"other","aud":"` + assertionIssuer + `","jti":"1","exp":1e10}`))
	f.Fuzz(func(t *testing.T, claims []byte) {
		raw, err := key.SignRaw([]byte(`{"alg":"ES256","kid":"k1"}`), claims)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := newAssertions()
		if err := present(t.Context(), a, c, raw, assertionTime); err != nil {
			return
		}
		var got struct {
			Iss, Sub, JTI string
			Aud           any
			Exp           float64
		}
		if err := json.Unmarshal(claims, &got); err != nil {
			t.Fatalf("accepted what encoding/json does not read: %s: %v", claims, err)
		}
		audiences, isList := got.Aud.([]any)
		if !isList {
			audiences = []any{got.Aud}
		}
		if len(audiences) != 1 || audiences[0] != assertionIssuer && audiences[0] != tokenEndpoint {
			t.Errorf("accepted for %v: %s", got.Aud, claims)
		}
		if got.Exp < float64(now-60) || got.Exp > float64(now+660) {
			t.Errorf("accepted with exp %v: %s", got.Exp, claims)
		}
		if err := present(context.Background(), a, c, raw, assertionTime); oauth.Code(err) != "invalid_client" {
			t.Errorf("accepted twice: %v: %s", err, claims)
		}
	})
}

// FuzzStatementClaims signs any claims with the key of the issuer that is
// trusted: even so a client gets only what a client may register.
func FuzzStatementClaims(f *testing.F) {
	key := testkit.NewClientKey(f, "ES256", "k1")
	g := newRegistrar(f, testkit.OpenSQLite(f), func(o *registration.Options) {
		trust(f, key)(o)
		o.Policy.PerSource, o.Policy.Total = 1<<30, 1<<30
	})
	for _, changes := range []map[string]any{nil, {"iss": nil}, {"iss": "https://evil.example"}, {"redirect_uris": []string{"javascript:alert(1)"}},
		{"grant_types": []string{"client_credentials", "authorization_code"}}, {"scope": "admin"}, {"exp": 1}, {"aud": "https://other.example"},
		{"token_endpoint_auth_method": "client_secret_basic"}, {"jwks": map[string]any{"keys": []any{}}}, {"software_statement": "x"}} {
		raw, err := json.Marshal(vouched(changes))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"iss":"` + publisher + `","client_name":"a","client_name":"b"}`))
	f.Fuzz(func(t *testing.T, claims []byte) {
		statement, err := key.SignRaw([]byte(`{"alg":"ES256","kid":"k1"}`), claims)
		if err != nil {
			t.Fatal(err)
		}
		g.now = g.now.Add(time.Second)
		w := g.post("192.0.2.1", "application/json", withStatement(t, statement))
		if w.Code == http.StatusBadRequest {
			return
		}
		var got registration.ClientMetadata
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s %v", claims, w.Code, w.Body, err)
		}
		if len(got.RedirectURIs) == 0 {
			t.Errorf("%s: no redirect URI", claims)
		}
		for _, raw := range got.RedirectURIs {
			if u, err := url.Parse(raw); err != nil || slices.Contains([]string{"javascript", "data", "vbscript", "file", "blob", "about", ""}, u.Scheme) || u.Fragment != "" || u.User != nil {
				t.Errorf("%s: redirect URI %q", claims, raw)
			}
		}
		for _, grant := range got.GrantTypes {
			if grant != registration.GrantAuthorizationCode && grant != registration.GrantRefreshToken {
				t.Errorf("%s: grant %q (D23)", claims, grant)
			}
		}
	})
}
