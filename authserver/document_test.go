package authserver_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// Metadata says what this configuration does and nothing else, with the same words
// at every place where clients look (A2, A5, RFC 8414 §2).
func TestA5_MetadataFollowsConfiguration(t *testing.T) {
	t.Parallel()
	const issuer = testkit.Issuer
	for _, tt := range []struct {
		name      string
		configure testkit.ServerOption
		changes   map[string]any // nil: not there
		keys      string         // id_token_signing_alg_values_supported of the OpenID form
	}{
		{name: "as it comes", configure: func(*config.Config) {}},
		{name: "CIMD off", configure: func(c *config.Config) { c.CIMD = "off" },
			changes: map[string]any{"client_id_metadata_document_supported": nil}},
		{name: "a policy that waits for the operator", configure: func(c *config.Config) { c.CIMDPolicy = []string{"*=ask"} }},
		{name: "registration by token", configure: func(c *config.Config) { c.Registration = "token" }},
		{name: "registration by statement", configure: func(c *config.Config) {
			c.Registration = "statement"
			c.SoftwareStatementIssuers = []string{"https://vendor.example https://vendor.example/jwks.json"}
		}},
		{name: "registration closed", configure: func(c *config.Config) { c.Registration = "closed" },
			changes: map[string]any{"registration_endpoint": nil}},
		{name: "nobody but the operator's clients", configure: func(c *config.Config) { c.CIMD, c.Registration = "off", "closed" },
			changes: map[string]any{"client_id_metadata_document_supported": nil, "registration_endpoint": nil}},
		{name: "management off", configure: func(c *config.Config) { c.RegistrationManagement = "off" }},
		{name: "EdDSA", configure: func(c *config.Config) { c.SigningAlgorithm = "EdDSA" }, keys: "EdDSA"},
		{name: "RS256", configure: func(c *config.Config) { c.SigningAlgorithm = "RS256" }, keys: "RS256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, base := range []string{"", "/auth"} {
				s := testkit.NewServer(t, testkit.OpenSQLite(t), func(c *config.Config) { c.Issuer += base }, tt.configure)
				want := documentOf(issuer + base)
				for name, value := range tt.changes {
					if want[name] = value; value == nil {
						delete(want, name)
					}
				}
				wantDocuments(t, s, base, want, tt.keys)
			}
		})
	}
}

// documentOf is the whole document of a server whose configuration says nothing.
func documentOf(issuer string) map[string]any {
	methods := []any{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"}
	algorithms := []any{"ES256", "EdDSA", "PS256", "RS256"}
	return map[string]any{
		"issuer":                                issuer,
		"authorization_endpoint":                issuer + "/authorize",
		"token_endpoint":                        issuer + "/token",
		"registration_endpoint":                 issuer + "/register",
		"revocation_endpoint":                   issuer + "/revoke",
		"introspection_endpoint":                issuer + "/introspect",
		"jwks_uri":                              issuer + "/jwks.json",
		"scopes_supported":                      []any{"files:read", "notes:read", "offline_access"},
		"response_types_supported":              []any{"code"},
		"response_modes_supported":              []any{"query"},
		"grant_types_supported":                 []any{"authorization_code", "refresh_token", "client_credentials"},
		"token_endpoint_auth_methods_supported": methods,
		"token_endpoint_auth_signing_alg_values_supported":         algorithms,
		"revocation_endpoint_auth_methods_supported":               methods,
		"revocation_endpoint_auth_signing_alg_values_supported":    algorithms,
		"introspection_endpoint_auth_methods_supported":            methods[1:], // RFC 7662 §2.1: nobody who cannot prove who they are
		"introspection_endpoint_auth_signing_alg_values_supported": algorithms,
		"code_challenge_methods_supported":                         []any{"S256"},
		"authorization_response_iss_parameter_supported":           true,
		"client_id_metadata_document_supported":                    true,
		"prompt_values_supported":                                  []any{"none", "login", "consent"},
	}
}

func wantDocuments(t *testing.T, s *testkit.Server, base string, want map[string]any, keys string) {
	t.Helper()
	if keys == "" {
		keys = "ES256"
	}
	openid := maps.Clone(want)
	openid["subject_types_supported"] = []any{"public"}
	openid["id_token_signing_alg_values_supported"] = []any{keys}
	forms := map[string]map[string]any{"oauth-authorization-server": want, "openid-configuration": openid}
	for form, want := range forms {
		paths := map[string]bool{"/.well-known/" + form + base: true, base + "/.well-known/" + form: true}
		for path := range paths {
			for _, slash := range []string{"", "/"} {
				resp, err := s.Client().Get(testkit.Issuer + path + slash)
				if err != nil {
					t.Fatal(err)
				}
				var got map[string]any
				if err := json.Unmarshal([]byte(testkit.Body(t, resp)), &got); err != nil || resp.StatusCode != http.StatusOK ||
					resp.Header.Get("Content-Type") != "application/json" {
					t.Errorf("%s%s: %s, %v", path, slash, resp.Status, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s%s (-want +got):\n%s", path, slash, diff)
				}
			}
		}
	}
}
