package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// BenchmarkIntrospect asks about one token as its MCP server: a signature and two
// reads, of which one finds the asker.
func BenchmarkIntrospect(b *testing.B) {
	eachBench(b, func(b *testing.B, s *bench) {
		res, secret, err := s.App.Resources.AddCredential(b.Context(), testkit.Resource)
		if err != nil {
			b.Fatal(err)
		}
		form := url.Values{"token": {s.accessToken(b)}}.Encode()
		b.ReportAllocs()
		for b.Loop() {
			s.Clock.Advance(time.Second / 300) // by which the limit goes
			r := httptest.NewRequest(http.MethodPost, testkit.Issuer+"/introspect", strings.NewReader(form))
			r.Header.Set("Content-Type", formType)
			r.SetBasicAuth(res.Credential.ID, secret.Reveal())
			w := httptest.NewRecorder()
			s.App.Public().ServeHTTP(w, r)
			if w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), `{"active":true`) {
				b.Fatalf("/introspect: %d %s", w.Code, w.Body)
			}
		}
	})
}

// accessToken makes a grant and signs an access token that lives as long.
func (s *bench) accessToken(b *testing.B) string {
	b.Helper()
	s.token(b, url.Values{"grant_type": {"authorization_code"}, "client_id": {s.client}, "code": {s.code(b)}, "code_verifier": {verifier}})
	grants, err := s.DB.ListGrants(b.Context(), grant.Filter{})
	if err != nil || len(grants) != 1 {
		b.Fatalf("%d grants, %v", len(grants), err)
	}
	g := grants[0]
	payload, err := json.Marshal(map[string]any{"iss": testkit.Issuer, "sub": g.Subject, "aud": g.Resource, "client_id": g.ClientID,
		"grant_id": g.ID, "scope": "files:read", "jti": "1", "iat": s.Clock.Now().Unix(), "exp": g.ExpiresAt.Unix()})
	if err != nil {
		b.Fatal(err)
	}
	token, _, err := s.App.Keys.Sign("at+jwt", payload)
	if err != nil {
		b.Fatal(err)
	}
	return token
}
