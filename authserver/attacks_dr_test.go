package authserver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The rules of registration one by one stand in package registration; here they
// are seen from outside, and what a registered client may do with them.

// registerRaw sends a registration as it stands and returns status and document.
func (k *kit) registerRaw(contentType string, metadata any) (int, map[string]any) {
	k.t.Helper()
	body, err := json.Marshal(metadata)
	if err != nil {
		k.t.Fatal(err)
	}
	resp, err := k.Client().Post(k.URL("/register"), contentType, bytes.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	raw := testkit.Body(k.t, resp)
	if resp.Header.Get("Cache-Control") != "no-store" {
		k.t.Errorf("/register: Cache-Control %q", resp.Header.Get("Cache-Control"))
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(raw), &doc); err != nil {
		k.t.Fatalf("/register: %d %s", resp.StatusCode, raw)
	}
	return resp.StatusCode, doc
}

func TestDR03_DR05_DR10_RefusedWithoutARow(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		good := map[string]any{"redirect_uris": []string{appRedirect}, "token_endpoint_auth_method": "none"}
		with := func(name string, value any) map[string]any {
			m := map[string]any{"redirect_uris": []string{appRedirect}}
			m[name] = value
			return m
		}
		many := make([]string, 21)
		for i := range many {
			many[i] = appRedirect + "/" + string(rune('a'+i))
		}
		for _, tt := range []struct {
			name, contentType string
			body              any
			code              string
		}{
			{"DR-03 text/plain", "text/plain", good, "invalid_client_metadata"},
			{"DR-03 form", formType, good, "invalid_client_metadata"},
			{"DR-03 multipart", "multipart/form-data; boundary=x", good, "invalid_client_metadata"},
			{"DR-05 none", "application/json", map[string]any{"client_name": "x"}, "invalid_redirect_uri"},
			{"DR-05 empty", "application/json", with("redirect_uris", []string{}), "invalid_redirect_uri"},
			{"DR-05 21", "application/json", with("redirect_uris", many), "invalid_redirect_uri"},
			{"DR-05 over 2 KiB", "application/json", with("redirect_uris", []string{appRedirect + strings.Repeat("a", 2048)}), "invalid_redirect_uri"},
			{"DR-05 one bad among good", "application/json", with("redirect_uris", []string{appRedirect, "javascript:alert(1)", loopbackRedirect}), "invalid_redirect_uri"},
			{"DR-10 only token", "application/json", with("response_types", []string{"token"}), "invalid_client_metadata"},
			{"DR-10 only password", "application/json", with("grant_types", []string{"password"}), "invalid_client_metadata"},
			{"DR-19 only client_credentials", "application/json", with("grant_types", []string{"client_credentials"}), "invalid_client_metadata"},
		} {
			k.changesOnly(func() {
				if status, doc := k.registerRaw(tt.contentType, tt.body); status != 400 || doc["error"] != tt.code || doc["client_id"] != nil {
					t.Errorf("%s: %d %v, want 400 %s", tt.name, status, doc, tt.code)
				}
			})
		}
		k.changesOnly(func() {
			if status, doc := k.registerRaw("application/json", good); status != 201 {
				t.Errorf("a good one: %d %v", status, doc)
			}
		}, "clients", "audit_events", "server") // server: the first registration makes the row they lock
	})
}

func TestDR07_DR10_PrivilegesAndExtrasAreLeftOut(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": []string{appRedirect},
			"token_endpoint_auth_method": "none", "skip_consent": true, "trusted": true, "first_party": true,
			"require_pkce": false, "enable_end_session": true, "audience": []string{"https://x.example"},
			"client_id": "mine", "client_secret": "mine", "kind": "operator", "verified_at": 1,
			"response_types": []string{"code", "token"}, "grant_types": []string{"authorization_code", "password", "implicit"}})
		if status != 201 {
			t.Fatalf("%d %v", status, doc)
		}
		dump := testkit.Dump(k.ctx, t, k.DB)
		for _, name := range []string{"skip_consent", "trusted", "first_party", "require_pkce", "enable_end_session", "audience",
			"kind", "verified_at", "client_secret"} {
			if _, ok := doc[name]; ok {
				t.Errorf("DR-07: %s is echoed", name)
			}
			if name != "kind" && name != "verified_at" && strings.Contains(dump, `\"`+name+`\"`) {
				t.Errorf("DR-07: %s is stored", name)
			}
		}
		if doc["client_id"] == "mine" {
			t.Error("the client chose its own id")
		}
		if g, _ := json.Marshal(doc["grant_types"]); string(g) != `["authorization_code"]` {
			t.Errorf("DR-10: grant_types %s", g)
		}
		if r, _ := json.Marshal(doc["response_types"]); string(r) != `["code"]` {
			t.Errorf("DR-10: response_types %s", r)
		}
		// and it has no privilege: the person is asked, PKCE is required
		a := app{id: doc["client_id"].(string), method: registration.AuthNone, redirect: appRedirect}
		k.connect(a, nil)
		page, err := k.person.Open(k.ctx, k.authorizeURL(a, nil))
		if err != nil || page.Form("/consent") == nil {
			t.Errorf("DR-07: no consent page: %v %v", page, err)
		}
		page, err = k.person.Open(k.ctx, k.authorizeURL(a, url.Values{"code_challenge": nil, "code_challenge_method": nil}))
		if err != nil || page.Leaves == nil || page.Leaves.Query().Get("error") != "invalid_request" {
			t.Errorf("DR-07: without PKCE: %v %v", page, err)
		}
	})
}

func TestDR11_HostileNames(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for claimed, stored := range map[string]string{
			"<img src=x onerror=alert(1)>": "<img src=x onerror=alert(1)>",
			"Qui\u200bll\u202e\u2066":      "Quill",
			"Two\r\nlines":                 "Two lines",
			"Claude":                       "Claude",
			"\u0421laude":                  "\u0421laude", // Cyrillic: a claim, and labelled so
			strings.Repeat("long ", 2000):  "",
		} {
			status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": []string{"https://evil.example/cb"},
				"client_name": claimed, "token_endpoint_auth_method": "none"})
			if stored == "" {
				if name, _ := doc["client_name"].(string); status == 201 && len([]rune(name)) > 60 {
					t.Errorf("a name of %d characters is kept", len([]rune(name)))
				}
				continue
			}
			if status != 201 || doc["client_name"] != stored {
				t.Fatalf("%q: %d %v", claimed, status, doc)
			}
			a := app{id: doc["client_id"].(string), redirect: "https://evil.example/cb"}
			page, err := k.person.ToConsent(k.ctx, k.authorizeURL(a, nil))
			if err != nil || page.Form("/consent") == nil {
				t.Fatalf("%q: %v %v", claimed, page, err)
			}
			if strings.Contains(page.Body, "<img src=x") {
				t.Error("markup of the name is markup of the page")
			}
			if !strings.Contains(page.Body, "Not verified") || !strings.Contains(page.Body, "evil.example") {
				t.Errorf("%q: the page does not say who is asking", claimed)
			}
		}
	})
}

func TestDR17_SecretIsShownOnce(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": []string{appRedirect}, "client_name": "Atlas"})
		secret, _ := doc["client_secret"].(string)
		if status != 201 || len(secret) < 43 || doc["token_endpoint_auth_method"] != registration.AuthClientSecretBasic {
			t.Fatalf("%d %v", status, doc)
		}
		a := app{id: doc["client_id"].(string), secret: secret, method: registration.AuthClientSecretBasic, redirect: appRedirect}
		k.connect(a, nil)
		listed, err := k.App.Clients.List(k.ctx)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := json.Marshal(listed)
		if err != nil {
			t.Fatal(err)
		}
		raw := []byte(secret)
		for name, form := range map[string]string{"itself": secret, "base64": base64.RawURLEncoding.EncodeToString(raw), "hex": hex.EncodeToString(raw)} {
			for where, text := range map[string]string{"list": string(shown), "log": k.Logs.String(), "database": testkit.Dump(k.ctx, t, k.DB)} {
				if strings.Contains(text, form) {
					t.Errorf("the secret (%s) is in the %s", name, where)
				}
			}
		}
		// and there is nowhere to ask for it
		for _, path := range []string{"/register", "/register/" + a.id} {
			resp, err := k.Client().Get(k.URL(path))
			if err != nil {
				t.Fatal(err)
			}
			if body := testkit.Body(t, resp); resp.StatusCode == http.StatusOK || strings.Contains(body, secret) {
				t.Errorf("GET %s: %d", path, resp.StatusCode)
			}
		}
	})
}

// DR-18: an approval belongs to a client_id and its redirect URI, never to a name.
func TestDR18_SameNameOtherRedirect(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		genuine := k.operatorApp(registration.AuthNone, appRedirect) // remembered (D11)
		k.connect(genuine, nil)
		if left, err := k.person.Open(k.ctx, k.authorizeURL(genuine, nil)); err != nil || left.Leaves == nil || left.Leaves.Query().Get("code") == "" {
			t.Fatalf("the real client is not remembered: %v %v", left, err)
		}
		status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": []string{"https://evil.example/cb"},
			"client_name": "Atlas", "token_endpoint_auth_method": "none"})
		if status != 201 {
			t.Fatalf("%d %v", status, doc)
		}
		fake := app{id: doc["client_id"].(string), redirect: "https://evil.example/cb"}
		k.changesOnly(func() {
			page, err := k.person.Open(k.ctx, k.authorizeURL(fake, nil))
			if err != nil || page.Form("/consent") == nil || page.Leaves != nil {
				t.Fatalf("the impostor was not asked about: %v %v", page, err)
			}
			if !strings.Contains(page.Body, "evil.example") || !strings.Contains(page.Body, "Not verified") {
				t.Error("the page does not tell them apart")
			}
		}, "authorization_requests", "sessions")
	})
}

func TestDR19_ClientCredentialsBySelfRegisteredClient(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": []string{appRedirect},
			"grant_types": []string{"authorization_code", "client_credentials"}})
		if g, _ := json.Marshal(doc["grant_types"]); status != 201 || strings.Contains(string(g), "client_credentials") {
			t.Fatalf("%d %v", status, doc)
		}
		a := app{id: doc["client_id"].(string), secret: doc["client_secret"].(string), method: registration.AuthClientSecretBasic}
		k.denied(400, "unauthorized_client", func() answer {
			return k.post("/token", a, url.Values{"grant_type": {"client_credentials"}, "resource": {testkit.Resource}})
		})
	})
}
