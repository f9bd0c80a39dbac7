package registration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

const someRedirects = `"redirect_uris":["https://app.example/cb"]`

func TestParseClientMetadata(t *testing.T) {
	base := ClientMetadata{RedirectURIs: []string{"https://app.example/cb"}, TokenEndpointAuthMethod: "client_secret_basic",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}}
	with := func(fn func(*ClientMetadata)) ClientMetadata {
		m := base
		fn(&m)
		return m
	}
	for _, tt := range []struct {
		name, doc string
		want      ClientMetadata
	}{
		{"A13 RFC 7591 §2 defaults", `{` + someRedirects + `}`, base},
		{"A13 null is absent", `{` + someRedirects + `,"token_endpoint_auth_method":null,"grant_types":null,"client_uri":null}`, base},
		{"A13 none", `{` + someRedirects + `,"token_endpoint_auth_method":"none"}`,
			with(func(m *ClientMetadata) { m.TokenEndpointAuthMethod = "none" })},
		{"A13 unknown grant types are dropped", `{` + someRedirects + `,"grant_types":["authorization_code","urn:ietf:params:oauth:grant-type:device_code","refresh_token"]}`, base},
		{"D8 only the code grant stays only that", `{` + someRedirects + `,"grant_types":["authorization_code"]}`,
			with(func(m *ClientMetadata) { m.GrantTypes = []string{"authorization_code"} })},
		{"D8 an empty list lists nothing", `{` + someRedirects + `,"grant_types":[],"response_types":[]}`, base},
		{"DR-10 response types and grants are narrowed", `{` + someRedirects + `,"response_types":["token","code","code id_token"],"grant_types":["password","authorization_code","implicit","refresh_token"]}`, base},
		{"DR-19 client_credentials is dropped", `{` + someRedirects + `,"grant_types":["client_credentials","authorization_code","refresh_token"]}`, base},
		{"DR-07 privileges are ignored", `{` + someRedirects + `,"skip_consent":true,"trusted":1,"first_party":{},"require_pkce":false,"enable_end_session":true,"audience":["x"],"kind":"operator","Resources":["x"],"verified_at":1}`, base},
		{"A11 application_type is kept beside https", `{` + someRedirects + `,"application_type":"native"}`,
			with(func(m *ClientMetadata) { m.ApplicationType = "native" })},
		{"A12 no empty URLs", `{` + someRedirects + `,"client_uri":"","logo_uri":"","tos_uri":"javascript:alert(1)","policy_uri":"http://app.example/"}`, base},
		{"A12 links are kept", `{` + someRedirects + `,"client_uri":"https://app.example","logo_uri":"https://app.example/l.png"}`,
			with(func(m *ClientMetadata) { m.ClientURI, m.LogoURI = "https://app.example", "https://app.example/l.png" })},
		{"A14 empty scope", `{` + someRedirects + `,"scope":""}`, base},
		{"A14 scope", `{` + someRedirects + `,"scope":"b  a b offline_access"}`,
			with(func(m *ClientMetadata) { m.Scope = "b a offline_access" })},
		{"A10 mixed list", `{"token_endpoint_auth_method":"none","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback","http://localhost:8787/callback"]}`,
			with(func(m *ClientMetadata) {
				m.TokenEndpointAuthMethod = "none"
				m.RedirectURIs = []string{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"}
			})},
		{"RU-18 stored as punycode", `{"redirect_uris":["https://b\u00fccher.example/cb"]}`,
			with(func(m *ClientMetadata) { m.RedirectURIs = []string{"https://xn--bcher-kva.example/cb"} })},
		{"DR-11 name is normalised", `{` + someRedirects + `,"client_name":"  Qui\u200bll\n\u202eDesk\u0000top\u2066 "}`,
			with(func(m *ClientMetadata) { m.ClientName = "Quill Desktop" })},
		{"names are case-sensitive", `{` + someRedirects + `,"Client_Name":"x","REDIRECT_URIS":["javascript:x"],"ſcope":"y"}`, base},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseClientMetadata([]byte(tt.doc))
			if strings.Contains(tt.doc, `\u0000`) { // a NUL is refused outright; the rest is normalised
				if oauth.Code(err) != "invalid_client_metadata" {
					t.Errorf("a name with NUL: %v, want invalid_client_metadata", err)
				}
				got, err = ParseClientMetadata([]byte(strings.ReplaceAll(tt.doc, `\u0000`, `\u0007`)))
			}
			if err != nil || !cmp.Equal(got, tt.want) {
				t.Errorf("ParseClientMetadata(%s): %v\n%s", tt.doc, err, cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestParseClientMetadataRefuses(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"https://app.example/cb",`, 21), ",")
	for _, tt := range []struct{ name, doc, code, says string }{
		{"DR-05 no redirect_uris", `{}`, "invalid_redirect_uri", "redirect_uris"},
		{"DR-05 empty", `{"redirect_uris":[]}`, "invalid_redirect_uri", "redirect_uris"},
		{"DR-05 not a list", `{"redirect_uris":"https://app.example/cb"}`, "invalid_redirect_uri", "list"},
		{"DR-05 more than 20", `{"redirect_uris":[` + many + `]}`, "invalid_redirect_uri", "20"},
		{"DR-05 one longer than 2 KiB", `{"redirect_uris":["https://app.example/` + strings.Repeat("a", 2048) + `"]}`, "invalid_redirect_uri", "[0]"},
		{"A10 one bad among good names its index", `{"redirect_uris":["https://app.example/cb","http://app.example/cb"]}`, "invalid_redirect_uri", "redirect_uris[1]"},
		{"RU-12 javascript", `{"redirect_uris":["java\nscript:alert(1)"]}`, "invalid_redirect_uri", "[0]"},
		{"D12 private-use scheme of a client with a secret", `{"redirect_uris":["com.example.app:/cb"]}`, "invalid_redirect_uri", "public"},
		{"DR-10 nothing left of grant_types", `{` + someRedirects + `,"grant_types":["password"]}`, "invalid_client_metadata", "grant_types"},
		{"DR-10 refresh_token alone", `{` + someRedirects + `,"grant_types":["refresh_token"]}`, "invalid_client_metadata", "grant_types"},
		{"DR-10 nothing left of response_types", `{` + someRedirects + `,"response_types":["token"]}`, "invalid_client_metadata", "response_types"},
		{"DR-19 client_credentials alone", `{"grant_types":["client_credentials"]}`, "invalid_client_metadata", "operator"},
		{"private_key_jwt without keys", `{` + someRedirects + `,"token_endpoint_auth_method":"private_key_jwt"}`, "invalid_client_metadata", "jwks"},
		{"unknown method", `{` + someRedirects + `,"token_endpoint_auth_method":"tls_client_auth"}`, "invalid_client_metadata", "token_endpoint_auth_method"},
		{"scope", `{` + someRedirects + `,"scope":"a\"b"}`, "invalid_client_metadata", "scope"},
		{"number for a string", `{` + someRedirects + `,"client_name":1}`, "invalid_client_metadata", "client_name must be a string"},
		{"null character", `{` + someRedirects + `,"client_name":"a\u0000b"}`, "invalid_client_metadata", "client_name must not have a null character"},
		{"long word", `{` + someRedirects + `,"software_id":"` + strings.Repeat("a", 257) + `"}`, "invalid_client_metadata", "software_id is longer than 256 bytes"},
		{"A10 userinfo with a password", `{"redirect_uris":["https://u:p@app.example/cb"]}`, "invalid_redirect_uri", "redirect_uris[0]: must not have userinfo"},
		{"repeated member", `{` + someRedirects + `,` + someRedirects + `}`, "invalid_client_metadata", "twice"},
		{"repeated member by escape", `{` + someRedirects + `,"redirect_ur\u0069s":["https://evil.example/"]}`, "invalid_client_metadata", "twice"},
		{"array", `[]`, "invalid_client_metadata", "object"},
		{"empty", ``, "invalid_client_metadata", "object"},
		{"null", `null`, "invalid_client_metadata", "object"},
		{"cut", `{` + someRedirects, "invalid_client_metadata", "JSON"},
		{"something after", `{` + someRedirects + `}{}`, "invalid_client_metadata", "follows"},
		{"not UTF-8", `{` + someRedirects + ",\"client_name\":\"\xff\"}", "invalid_client_metadata", "UTF-8"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "invalid_client_metadata", "UTF-8"},
		{"too large", `{` + someRedirects + `,"x":"` + strings.Repeat("a", MaxMetadata) + `"}`, "invalid_client_metadata", "larger"},
		{"too deep", `{` + someRedirects + `,"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "invalid_client_metadata", "JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseClientMetadata([]byte(tt.doc))
			if oauth.Code(err) != tt.code || err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("ParseClientMetadata = %v, want %s that says %q", err, tt.code, tt.says)
			}
		})
	}
}

func TestDR11_NormalizeName(t *testing.T) {
	for in, want := range map[string]string{
		"Quill Desktop":                    "Quill Desktop",
		"<img src=x onerror=alert(1)>":     "<img src=x onerror=alert(1)>", // shown escaped
		"a\u202eb\u2066c\u200fd":           "abcd",
		"a\u200bb\u200cc\u200dd\ufeffe":    "abcde",
		"a\nb\r\n\tc\u2028d\u00a0e":        "a b c d e",
		"cafe\u0301":                       "café",
		"\u115f\u1160\u3164\u2800\ufe0f x": "x",
		"Сlaude":                           "Сlaude", // Cyrillic С stays; the page says "not verified" beside it
		"\xff\xfe":                         "",
		"\u0000\u001b[31m":                 "[31m",
		strings.Repeat("é", 60):            strings.Repeat("é", 60),
		strings.Repeat("é", 61):            strings.Repeat("é", 59) + "…",
		strings.Repeat("x", 10<<10):        strings.Repeat("x", 59) + "…",
	} {
		if got := NormalizeName(in); got != want {
			t.Errorf("NormalizeName(%.40q) = %q, want %q", in, got, want)
		}
	}
}

func TestMetadataHash(t *testing.T) {
	a := ClientMetadata{ClientName: "a"}
	b := a
	b.RedirectURIs = []string{"https://app.example/cb"}
	if a.Hash() == b.Hash() || a.Hash() != (ClientMetadata{ClientName: "a"}).Hash() {
		t.Errorf("hashes %s and %s must differ, and be the same for the same metadata", a.Hash(), b.Hash())
	}
}

func FuzzClientMetadata(f *testing.F) {
	for _, s := range []string{`{` + someRedirects + `}`, `{"redirect_uris":["http://localhost:0/"],"client_name":"\ud800","scope":"a b"}`,
		`{"redirect_uris":[null],"grant_types":null}`, `[]`, `{"a":{"b":[1,2,{}]}}`, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := ParseClientMetadata(doc)
		if err != nil {
			if code := oauth.Code(err); code != "invalid_redirect_uri" && code != "invalid_client_metadata" {
				t.Errorf("%q: code %q", doc, code)
			}
			return
		}
		echo, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseClientMetadata(echo)
		if err != nil || !cmp.Equal(again, m) {
			t.Errorf("%q is stored as %s, which is stored as %+v, %v", doc, echo, again, err)
		}
		for _, r := range m.ClientName {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Errorf("client_name %q has %U", m.ClientName, r)
			}
		}
		if n := utf8.RuneCountInString(m.ClientName); n > maxDisplayName || len(m.RedirectURIs) == 0 {
			t.Errorf("%q: name of %d characters, redirects %s", doc, n, fmt.Sprint(m.RedirectURIs))
		}
		if m.TokenEndpointAuthMethod == "" || len(m.GrantTypes) == 0 || len(m.ResponseTypes) == 0 {
			t.Errorf("%q: a default is missing in %s", doc, echo)
		}
	})
}
