package doctor

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// tokenOf is an access token of an issuer for a resource, signed by nobody.
func tokenOf(t *testing.T, issuer, audience string) oauth.Secret {
	t.Helper()
	part := func(v map[string]any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return oauth.Secret(part(map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": "1"}) + "." +
		part(map[string]any{"iss": issuer, "aud": audience, "exp": 4102444800}) + "." + strings.Repeat("A", 86))
}

// C9: a server that calls itself by another's name is not shown the token that is
// for the other, whoever issued it and whether it can be read or not.
func TestC09_TokenForAnotherServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, claims, audience string
		opaque, shown          bool
	}{
		{name: "its own name", audience: "itself", shown: true},
		{name: "its own name, another's token", audience: "https://honest.example/mcp"},
		{name: "another's name, another's token", claims: "https://honest.example/mcp", audience: "https://honest.example/mcp"},
		{name: "another's name, its own token", claims: "https://honest.example/mcp", audience: "itself"},
		{name: "another's name, opaque", claims: "https://honest.example/mcp", opaque: true},
		{name: "its own name, opaque", opaque: true, shown: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			issuer, server := newFake(t), newFake(t)
			server.issuers = []string{issuer.URL}
			if tt.claims != "" {
				server.resource = tt.claims
			}
			if tt.audience == "itself" {
				tt.audience = server.URL + "/mcp"
			}
			token := tokenOf(t, issuer.URL, tt.audience)
			if tt.opaque {
				token = "an-opaque-token-of-somebody"
			}
			r := examine(t, Options{URL: server.URL + "/mcp", Token: token})
			if got := server.hears(token.Reveal()); got != tt.shown {
				t.Errorf("shown: %t, want %t; %+v, %+v", got, tt.shown, finding(t, r, "access-audience"), finding(t, r, "access-accepted"))
			}
			if issuer.hears(token.Reveal()) {
				t.Error("the issuer was told the token")
			}
		})
	}
}

// The audience is compared with the URL that the operator typed, however its
// document is read.
func TestC09_AudienceIsTheTypedURL(t *testing.T) {
	t.Parallel()
	x := examinationOf(t, Options{URL: "https://typed.example/mcp", Token: tokenOf(t, "https://id.example", "https://honest.example/mcp")})
	x.resourceDoc = parseDocument([]byte(`{"resource":"https://honest.example/mcp"}`))
	if out := checkAccessAudience(t.Context(), x); out.State != Broken || !strings.Contains(out.Why, `not "https://typed.example/mcp"`) {
		t.Errorf("%+v", out)
	}
}
