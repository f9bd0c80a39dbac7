package doctor

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Whatever stands in a server's documents, token or key set, each check says
// something and none panics.
func FuzzDocuments(f *testing.F) {
	for _, s := range []string{`{}`, `null`, `[]`, `{"issuer":"https://a.example","token_endpoint":"https://a.example/token","response_types_supported":["code"]}`,
		`{"resource":1,"authorization_servers":"x"}`, `{"keys":[{"kty":"EC","d":"x"}]}`, `{"token_endpoint":"%zz"}`, `{"scopes_supported":null}`,
		`{"client_id":"a","redirect_uris":["http://127.0.0.1:49320/callback"],"client_secret_expires_at":null}`, "\xff"} {
		f.Add([]byte(s), "eyJhbGciOiJFUzI1NiJ9.e30.AAAA")
	}
	f.Fuzz(func(t *testing.T, doc []byte, token string) {
		x := newExamination(Options{URL: "https://public.example/mcp", Token: oauth.Secret(token), Resolver: nowhere{}})
		x.kind, x.issuer = KindServer, "https://a.example"
		d := parseDocument(doc)
		x.resourceDoc, x.issuerDoc = d, d
		for _, c := range Checks() {
			switch c.ID {
			case "resource-identity", "resource-issuers", "resource-scopes", "issuer-known", "issuer-spelling", "metadata-issuer", "metadata-types",
				"metadata-endpoints", "metadata-pkce", "metadata-public-clients", "metadata-grants", "metadata-iss", "metadata-scopes",
				"registration-way", "cimd-advertised", "access-token", "access-issuer", "access-audience", "access-lifetime":
			default:
				continue // it asks somebody
			}
			out := c.Run(t.Context(), x)
			if out.State == "" || (out.State != OK) != (out.Why != "") {
				t.Errorf("%s: %+v", c.ID, out)
			}
		}
		if out := checkRegistrationDocument(d, registration{id: d.text("client_id"), redirectURI: fixedRedirect}); out.State == "" {
			t.Errorf("registration: %+v", out)
		}
	})
}

// nowhere is a DNS that knows nobody.
type nowhere struct{}

func (nowhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errTooMany
}

// What parsers with a schema refuse in a registration, this does.
func TestA12_RegistrationDocument(t *testing.T) {
	t.Parallel()
	const good = `"client_id":"a","redirect_uris":["http://127.0.0.1:49320/callback"],"token_endpoint_auth_method":"none"`
	for _, tt := range []struct {
		name, doc string
		want      State
		why       string
	}{
		{"good", `{` + good + `}`, OK, ""},
		{"numbers", `{` + good + `,"client_id_issued_at":1,"client_secret_expires_at":0}`, OK, ""},
		{"no client_id", `{"redirect_uris":["http://127.0.0.1:49320/callback"]}`, Broken, "client_id"},
		{"redirect_uris left out", `{"client_id":"a"}`, Broken, "redirect_uris"},
		{"another redirect URI", `{"client_id":"a","redirect_uris":["http://127.0.0.1/callback"]}`, Broken, "redirect_uris"},
		{"a number as text", `{` + good + `,"client_id_issued_at":"1"}`, Broken, "client_id_issued_at"},
		{"null", `{` + good + `,"logo_uri":null}`, Broken, "logo_uri"},
		{"empty client_uri", `{` + good + `,"client_uri":""}`, Broken, "client_uri"},
		{"empty logo_uri", `{` + good + `,"logo_uri":""}`, OK, ""},
		{"method left out", `{"client_id":"a","redirect_uris":["http://127.0.0.1:49320/callback"]}`, Warn, "token_endpoint_auth_method"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := parseDocument([]byte(tt.doc))
			out := checkRegistrationDocument(d, registration{id: d.text("client_id"), redirectURI: fixedRedirect})
			if out.State != tt.want || !strings.Contains(out.Why, tt.why) {
				t.Errorf("%+v", out)
			}
		})
	}
}
