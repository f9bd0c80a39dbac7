package registration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

const appURL = "https://app.example/client.json"

func TestParseClientDocument(t *testing.T) {
	both := []string{"authorization_code", "refresh_token"}
	code := []string{"code"}
	for _, tt := range []struct {
		name, id, doc string
		want          ClientMetadata
	}{
		{"A8 Claude Code: loopback without a port", "https://claude.ai/oauth/claude-code-client-metadata",
			`{"client_id":"https://claude.ai/oauth/claude-code-client-metadata","client_name":"Claude Code","client_uri":"https://claude.ai","redirect_uris":["http://localhost/callback","http://127.0.0.1/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`,
			ClientMetadata{ClientName: "Claude Code", ClientURI: "https://claude.ai", RedirectURIs: []string{"http://localhost/callback", "http://127.0.0.1/callback"},
				TokenEndpointAuthMethod: "none", GrantTypes: both, ResponseTypes: code}},
		{"A33 ChatGPT: prefers its key, offers none too", "https://chatgpt.com/oauth/client.json",
			`{"client_id":"https://chatgpt.com/oauth/client.json","client_uri":"https://chatgpt.com/","redirect_uris":["https://chatgpt.com/connector_platform_oauth_redirect"],"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none","private_key_jwt"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"client_name":"ChatGPT","token_endpoint_auth_signing_alg":"RS256","jwks_uri":"https://chatgpt.com/oauth/jwks.json"}`,
			ClientMetadata{ClientName: "ChatGPT", ClientURI: "https://chatgpt.com/", RedirectURIs: []string{"https://chatgpt.com/connector_platform_oauth_redirect"},
				TokenEndpointAuthMethod: "private_key_jwt", OtherAuthMethods: []string{"none"}, TokenEndpointAuthSigningAlg: "RS256",
				JWKSURI: "https://chatgpt.com/oauth/jwks.json", GrantTypes: both, ResponseTypes: code}},
		{"A29 Goose: leaves refresh_token out", "https://goose-docs.ai/oauth/client-metadata.json",
			`{"client_id":"https://goose-docs.ai/oauth/client-metadata.json","client_name":"goose","redirect_uris":["http://127.0.0.1/oauth_callback","http://[::1]/oauth_callback"],"grant_types":["authorization_code"],"response_types":["code"],"token_endpoint_auth_method":"none"}`,
			ClientMetadata{ClientName: "goose", RedirectURIs: []string{"http://127.0.0.1/oauth_callback", "http://[::1]/oauth_callback"},
				TokenEndpointAuthMethod: "none", GrantTypes: both, ResponseTypes: code}},
		{"A10 VS Code: https and loopback together", "https://vscode.dev/oauth/client-metadata.json",
			`{"client_id":"https://vscode.dev/oauth/client-metadata.json","client_name":"Visual Studio Code","redirect_uris":["http://127.0.0.1:33418/","https://vscode.dev/redirect"],"grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],"token_endpoint_auth_method":"none","application_type":"native"}`,
			ClientMetadata{ClientName: "Visual Studio Code", RedirectURIs: []string{"http://127.0.0.1:33418/", "https://vscode.dev/redirect"},
				TokenEndpointAuthMethod: "none", GrantTypes: both, ResponseTypes: code, ApplicationType: "native"}},
		{"the least, with members of nobody", appURL, `{"client_id":"` + appURL + `","redirect_uris":["https://app.example/cb"],"@context":{"a":[1]},"trusted":true}`,
			ClientMetadata{RedirectURIs: []string{"https://app.example/cb"}, TokenEndpointAuthMethod: "none", GrantTypes: both, ResponseTypes: code}},
		{"D23 only the grants of people", appURL, `{"client_id":"` + appURL + `","redirect_uris":["https://app.example/cb"],"grant_types":["client_credentials","authorization_code","password"]}`,
			ClientMetadata{RedirectURIs: []string{"https://app.example/cb"}, TokenEndpointAuthMethod: "none", GrantTypes: both, ResponseTypes: code}},
		{"a method of nobody beside none", appURL, `{"client_id":"` + appURL + `","redirect_uris":["https://app.example/cb"],"token_endpoint_auth_method":"tls_client_auth","token_endpoint_auth_methods_supported":["tls_client_auth","none"]}`,
			ClientMetadata{RedirectURIs: []string{"https://app.example/cb"}, TokenEndpointAuthMethod: "none", GrantTypes: both, ResponseTypes: code}},
		{"its key without keys, beside none", appURL, `{"client_id":"` + appURL + `","redirect_uris":["https://app.example/cb"],"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["private_key_jwt","none"]}`,
			ClientMetadata{RedirectURIs: []string{"https://app.example/cb"}, TokenEndpointAuthMethod: "none", GrantTypes: both, ResponseTypes: code}},
		{"its key, offered only", appURL, `{"client_id":"` + appURL + `","redirect_uris":["https://app.example/cb"],"token_endpoint_auth_methods_supported":["private_key_jwt"],"jwks_uri":"https://app.example/jwks"}`,
			ClientMetadata{RedirectURIs: []string{"https://app.example/cb"}, TokenEndpointAuthMethod: "private_key_jwt", JWKSURI: "https://app.example/jwks", GrantTypes: both, ResponseTypes: code}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseClientDocument(tt.id, []byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestParseClientDocumentRefused(t *testing.T) {
	own := `{"client_id":"` + appURL + `","redirect_uris":["https://app.example/cb"]`
	for _, tt := range []struct{ name, doc, want string }{
		{"CI-07 empty", ``, "not a JSON object"},
		{"CI-07 an array", `[]`, "not a JSON object"},
		{"CI-07 a page", `<html></html>`, "not a JSON object"},
		{"CI-07 two of a member", own + `,"client_id":"` + appURL + `"}`, "twice"},
		{"CI-07 UTF-16", "\xff\xfe{\x00}\x00", "UTF-8"},
		{"CI-07 more behind it", own + `}{}`, "follows"},
		{"no client_id", `{"redirect_uris":["https://app.example/cb"]}`, "client_id"},
		{"another's client_id", `{"client_id":"https://claude.ai/x","redirect_uris":["https://app.example/cb"]}`, "client_id"},
		{"§4.1 its client_id with a slash more", `{"client_id":"` + appURL + `/","redirect_uris":["https://app.example/cb"]}`, "client_id"},
		{"§4.1 its client_id in upper case", `{"client_id":"https://APP.example/client.json","redirect_uris":["https://app.example/cb"]}`, "client_id"},
		{"a client_id that is no string", `{"client_id":1,"redirect_uris":["https://app.example/cb"]}`, "client_id"},
		{"§4.1 client_secret", own + `,"client_secret":"x"}`, "client_secret"},
		{"§4.1 client_secret_expires_at", own + `,"client_secret_expires_at":0}`, "client_secret_expires_at"},
		{"§4.1 client_secret_basic", own + `,"token_endpoint_auth_method":"client_secret_basic"}`, "client_secret_basic"},
		{"§4.1 client_secret_post beside none", own + `,"token_endpoint_auth_method":"client_secret_post","token_endpoint_auth_methods_supported":["none"]}`, "client_secret_post"},
		{"§4.1 client_secret_jwt", own + `,"token_endpoint_auth_method":"client_secret_jwt"}`, "client_secret_jwt"},
		{"a method of nobody", own + `,"token_endpoint_auth_method":"tls_client_auth"}`, "token_endpoint_auth_method"},
		{"its key without keys", own + `,"token_endpoint_auth_method":"private_key_jwt"}`, "jwks"},
		{"DR-08 jwks and jwks_uri", own + `,"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[]},"jwks_uri":"https://app.example/jwks"}`, "jwks"},
		{"CI-10 no redirect_uris", `{"client_id":"` + appURL + `"}`, "redirect_uris"},
		{"CI-10 empty redirect_uris", `{"client_id":"` + appURL + `","redirect_uris":[]}`, "redirect_uris"},
		{"CI-10 a dangerous one among good", `{"client_id":"` + appURL + `","redirect_uris":["https://app.example/cb","javascript:alert(1)"]}`, "redirect_uris[1]"},
		{"CI-10 a pattern", `{"client_id":"` + appURL + `","redirect_uris":["https://*.app.example/cb"]}`, "redirect_uris[0]"},
		{"CI-10 http", `{"client_id":"` + appURL + `","redirect_uris":["http://app.example/cb"]}`, "redirect_uris[0]"},
		{"D23 only machines' grants", own + `,"grant_types":["client_credentials"]}`, "grant_types"},
		{"CI-06 too large", own + `,"a":"` + strings.Repeat("a", MaxClientDocument) + `"}`, "larger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseClientDocument(appURL, []byte(tt.doc))
			if got := oauth.Code(err); got != "invalid_client_metadata" && got != "invalid_redirect_uri" {
				t.Fatalf("code %q, %v", got, err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v does not name %q", err, tt.want)
			}
		})
	}
}

// FuzzParseClientDocument: whatever a host serves, what is kept of it is small,
// names its own URL, and can be read again.
func FuzzParseClientDocument(f *testing.F) {
	f.Add([]byte(`{"client_id":"` + appURL + `","redirect_uris":["https://app.example/cb"]}`))
	f.Add([]byte(`{"client_id":"` + appURL + `","redirect_uris":["http://127.0.0.1/cb"],"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none"],"jwks_uri":"https://app.example/jwks"}`))
	f.Add([]byte(`{"client_id":"` + appURL + `","client_id":1}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := ParseClientDocument(appURL, doc)
		if err != nil {
			return
		}
		if len(m.RedirectURIs) == 0 || !m.AcceptsAuthMethod(m.TokenEndpointAuthMethod) || m.AcceptsAuthMethod(AuthClientSecretBasic) {
			t.Errorf("accepted %+v", m)
		}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var again ClientMetadata
		if err := json.Unmarshal(raw, &again); err != nil || again.Hash() != m.Hash() {
			t.Errorf("%s is read again as %+v, %v", raw, again, err)
		}
	})
}
