package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The tests of this file hold the wired server to the "A" rules of discovery and
// registration.

// issuers of the tests below: at the root of a host, and below a path.
var issuers = []string{testkit.Issuer, testkit.Issuer + "/tenant"}

// eachIssuer runs fn on a server of each issuer. Discovery is the same on every
// database.
func eachIssuer(t *testing.T, fn func(t *testing.T, k *kit)) {
	t.Helper()
	t.Parallel()
	for _, issuer := range issuers {
		t.Run(issuer, func(t *testing.T) {
			t.Parallel()
			fn(t, newKit(t, testkit.OpenSQLite(t), func(c *config.Config) { c.Issuer = issuer }))
		})
	}
}

// metadataURLs are the forms of RFC 8414 §3.1 and OpenID Connect Discovery §4
// under which clients look for an issuer's metadata (A2).
func (k *kit) metadataURLs() (all []string) {
	path := strings.TrimPrefix(k.Config.Issuer, testkit.Issuer)
	for _, at := range []string{"/.well-known/oauth-authorization-server" + path, "/.well-known/openid-configuration" + path,
		path + "/.well-known/openid-configuration"} {
		all = append(all, testkit.Issuer+at, testkit.Issuer+at+"/")
	}
	return all
}

// TestA1: the issuer is one string, byte for byte, wherever it stands.
func TestA1_OneIssuer(t *testing.T) {
	eachIssuer(t, func(t *testing.T, k *kit) {
		wantIssuer := func(where string, got any) {
			t.Helper()
			if got != k.Config.Issuer {
				t.Errorf("A1 %s: %v, want %s", where, got, k.Config.Issuer)
			}
		}
		for _, at := range k.metadataURLs() {
			wantIssuer(at, k.document(at)["issuer"])
		}
		a := k.operatorApp(registration.AuthNone, appRedirect)
		back, err := k.person.Authorize(k.ctx, k.authorizeURL(a, nil))
		if err != nil {
			t.Fatal(err)
		}
		wantIssuer("iss of the response", back.Query().Get("iss"))
		wantIssuer("iss of an error", k.open(k.person, k.authorizeURL(a, values("response_type", "x"))).Leaves.Query().Get("iss"))
		got := k.redeem(a, back.Query().Get("code"), nil)
		want(t, got, http.StatusOK, "")
		wantIssuer("iss of the access token", claims(t, got.body.AccessToken)["iss"])
		wantIssuer("authorization_servers of the MCP server", k.protectedResource()["authorization_servers"].([]any)[0])
	})
}

// protectedResource is the RFC 9728 document that the middleware serves.
func (k *kit) protectedResource() map[string]any {
	k.t.Helper()
	s, err := resourceserver.New(resourceserver.Options{Issuer: k.Config.Issuer, Resource: testkit.Resource, HTTPClient: k.Client()})
	if err != nil {
		k.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.Metadata().ServeHTTP(w, httptest.NewRequestWithContext(k.ctx, http.MethodGet, s.MetadataURL(), nil))
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		k.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return doc
}

// TestA2, A3: each form of the metadata, with and without a trailing slash, is a
// whole document.
func TestA2_A3_EveryFormOfTheMetadata(t *testing.T) {
	eachIssuer(t, func(t *testing.T, k *kit) {
		for _, at := range k.metadataURLs() {
			k.sub("A2 "+at, func(t *testing.T) {
				resp, err := k.Client().Get(at)
				if err != nil {
					t.Fatal(err)
				}
				raw := testkit.Body(t, resp)
				if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
					t.Fatalf("%d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
				}
				var doc map[string]any
				if err := json.Unmarshal([]byte(raw), &doc); err != nil {
					t.Fatal(err)
				}
				for name, v := range doc {
					if list, ok := v.([]any); v == nil || v == "" || ok && len(list) == 0 {
						t.Errorf("%s is empty: a client that parses strictly throws", name)
					}
				}
				// A3: the members that OpenID Connect Discovery §3 requires
				for _, name := range []string{"jwks_uri", "subject_types_supported", "id_token_signing_alg_values_supported", "response_types_supported"} {
					if strings.Contains(at, "openid") && doc[name] == nil {
						t.Errorf("A3 %s is missing", name)
					}
				}
			})
		}
	})
}

// TestA4: what is not there is 404, to a program no page, and no redirect; the same
// for another issuer's path.
func TestA4_UnknownWellKnown(t *testing.T) {
	eachIssuer(t, func(t *testing.T, k *kit) {
		for _, path := range []string{"/.well-known/unknown", "/.well-known/oauth-authorization-server/other", "/other/.well-known/openid-configuration",
			"/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server/tenant/deeper", "/.well-known/security.txt"} {
			for _, accept := range []string{"application/json", "text/html,*/*"} {
				resp, err := k.Client().Do(k.get(testkit.Issuer+path, accept))
				if err != nil {
					t.Fatal(err)
				}
				body := testkit.Body(t, resp)
				if resp.StatusCode != http.StatusNotFound || resp.Header.Get("Location") != "" {
					t.Errorf("A4 %s: %d to %q", path, resp.StatusCode, resp.Header.Get("Location"))
				}
				if page := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") || strings.Contains(body, "<html"); page && accept == "application/json" {
					t.Errorf("A4 %s: a page to a program", path)
				}
			}
		}
	})
}

func (k *kit) get(rawURL, accept string) *http.Request {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	return req
}

// TestA5: what clients need before they come here at all, and a registration
// endpoint only while it is open.
func TestA5_Metadata(t *testing.T) {
	eachIssuer(t, func(t *testing.T, k *kit) {
		for name, wanted := range map[string]any{
			"response_types_supported":                       []any{"code"},
			"grant_types_supported":                          []any{"authorization_code", "refresh_token", "client_credentials"},
			"code_challenge_methods_supported":               []any{"S256"},
			"token_endpoint_auth_methods_supported":          []any{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"},
			"registration_endpoint":                          k.Config.Issuer + "/register",
			"client_id_metadata_document_supported":          true,
			"authorization_response_iss_parameter_supported": true,
			// D26, A29: defaults of the registered resources, and offline_access
			"scopes_supported": []any{"files:read", "notes:read", "offline_access"},
		} {
			for _, at := range k.metadataURLs() {
				if got, _ := json.Marshal(k.document(at)[name]); string(got) != string(mustJSON(t, wanted)) {
					t.Errorf("A5 %s: %s is %s, want %v", at, name, got, wanted)
				}
			}
		}
		algorithms, _ := k.metadata()["token_endpoint_auth_signing_alg_values_supported"].([]any)
		for _, alg := range []any{"ES256", "EdDSA", "RS256", "PS256"} {
			if !slices.Contains(algorithms, alg) {
				t.Errorf("RFC 8414 §2: %v is not among the algorithms %v", alg, algorithms)
			}
		}
	})
}

func TestA5_RegistrationEndpointOnlyWhileOpen(t *testing.T) {
	t.Parallel()
	for mode, named := range map[string]bool{"open": true, "token": true, "closed": false} {
		t.Run("A5 "+mode, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, testkit.OpenSQLite(t), func(c *config.Config) { c.Registration = mode })
			for _, at := range k.metadataURLs() {
				if _, ok := k.document(at)["registration_endpoint"]; ok != named {
					t.Errorf("%s names the endpoint: %v, want %v", at, ok, named)
				}
			}
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestA7: everything that a client in a browser's page asks may be read there, its
// errors too; nothing that a person sees.
func TestA7_CORSOfEveryEndpoint(t *testing.T) {
	eachIssuer(t, func(t *testing.T, k *kit) {
		headers := []string{"accept", "authorization", "content-type", "mcp-protocol-version"}
		at := map[string]string{k.URL("/jwks.json"): "GET", k.URL("/register"): "POST", k.URL("/token"): "POST", k.URL("/revoke"): "POST"}
		for _, rawURL := range k.metadataURLs() {
			at[rawURL] = "GET"
		}
		for rawURL, method := range at {
			k.sub("A7 "+rawURL, func(t *testing.T) {
				flight := k.ask(http.MethodOptions, rawURL, http.Header{"Origin": {"https://client.example"}, "Access-Control-Request-Method": {method},
					"Access-Control-Request-Headers": {strings.Join(headers, ",")}})
				if flight.status != http.StatusNoContent || !strings.Contains(flight.header.Get("Access-Control-Allow-Methods"), method) {
					t.Errorf("preflight: %d, methods %q", flight.status, flight.header.Get("Access-Control-Allow-Methods"))
				}
				for _, name := range headers {
					if allowed := strings.ToLower(flight.header.Get("Access-Control-Allow-Headers")); !strings.Contains(allowed, name) {
						t.Errorf("preflight: %s is not allowed in %q", name, allowed)
					}
				}
				// an empty POST is an error, and so is another method
				for _, m := range []string{method, http.MethodPut} {
					got := k.ask(m, rawURL, http.Header{"Origin": {"https://client.example"}, "Cookie": {"a=b"}})
					if h := got.header; !slices.Equal(h.Values("Access-Control-Allow-Origin"), []string{"*"}) || h.Get("Access-Control-Allow-Credentials") != "" {
						t.Errorf("%s: %d with %v", m, got.status, h)
					}
				}
			})
		}
		for _, path := range []string{"/authorize", "/sign-in", "/consent", "/authorize/continue", "/account"} {
			got := k.ask(http.MethodGet, k.URL(path), http.Header{"Origin": {"https://client.example"}})
			for name := range got.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("A7 %s answers %s", path, name)
				}
			}
		}
	})
}

// ask sends a request without a body.
func (k *kit) ask(method, rawURL string, header http.Header) answer {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.ctx, method, rawURL, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header = header
	got, err := k.send(req)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// TestA10_A11: what one client lists together is registered together, whatever its
// application_type says; one bad URI refuses all and is named by its place.
func TestA10_A11_MixedRedirectURIs(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		mixed := []string{"cursor://anysphere.cursor-mcp/oauth/callback", appRedirect, "http://localhost:8787/callback", "http://127.0.0.1/", "http://[::1]/cb", "com.example.app:/cb"}
		for _, kind := range []string{"native", "web", "service"} {
			k.sub("A11 "+kind, func(t *testing.T) {
				status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": mixed, "token_endpoint_auth_method": "none", "application_type": kind})
				if status != http.StatusCreated || doc["application_type"] != kind || string(mustJSON(t, doc["redirect_uris"])) != string(mustJSON(t, mixed)) {
					t.Fatalf("%d %v", status, doc)
				}
				for _, uri := range mixed {
					k.connect(app{id: doc["client_id"].(string), method: registration.AuthNone, redirect: uri}, nil)
				}
			})
		}
		for place, bad := range []string{"javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:https://app.example/x", "about:blank",
			"http://app.example/cb", "https://app.example/cb#x", "https://u@app.example/cb", "https://app.example/\tcb", "cursor://other/cb"} {
			k.sub("A10 "+bad, func(t *testing.T) {
				uris := slices.Insert(slices.Clone(mixed), place%len(mixed), bad)
				k.unchanged(func() {
					status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": uris, "token_endpoint_auth_method": "none"})
					description, _ := doc["error_description"].(string)
					at := "redirect_uris[" + string(rune('0'+place%len(mixed))) + "]"
					if status != http.StatusBadRequest || doc["error"] != "invalid_redirect_uri" || !strings.HasPrefix(description, at) {
						t.Errorf("%d %v, want invalid_redirect_uri about %s", status, doc, at)
					}
				})
			})
		}
	})
}

// TestA12_A13: the answer to a registration has what was stored and nothing that a
// strict parser refuses, for each method and for none named.
func TestA12_A13_RegistrationResponse(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		key := testkit.NewClientKey(t, "ES256", "k1")
		for sent, stored := range map[string]string{"": "client_secret_basic", "none": "none", "client_secret_basic": "client_secret_basic",
			"client_secret_post": "client_secret_post", "private_key_jwt": "private_key_jwt"} {
			k.sub("A12 A13 method "+sent, func(t *testing.T) {
				body := metadata{"redirect_uris": []string{appRedirect}, "client_name": "Quill", "client_uri": "", "logo_uri": nil, "scope": "",
					"grant_types": []string{"authorization_code", "urn:ietf:params:oauth:grant-type:device_code", "refresh_token"}, "unknown_member": 1}
				if sent != "" {
					body["token_endpoint_auth_method"] = sent
				}
				if sent == "private_key_jwt" {
					body["jwks"] = json.RawMessage(testkit.JWKS(t, key))
				}
				status, doc := k.registerRaw("application/json", body)
				if status != http.StatusCreated {
					t.Fatalf("%d %v", status, doc)
				}
				withSecret := strings.HasPrefix(stored, "client_secret")
				for name, wanted := range map[string]any{"token_endpoint_auth_method": stored, "grant_types": bothGrants, "response_types": []string{"code"},
					"redirect_uris": []string{appRedirect}, "client_name": "Quill", "client_id_issued_at": k.Clock.Now().Unix()} {
					if string(mustJSON(t, doc[name])) != string(mustJSON(t, wanted)) {
						t.Errorf("%s = %v, want %v", name, doc[name], wanted)
					}
				}
				for name, v := range doc {
					if v == nil || v == "" || name == "unknown_member" {
						t.Errorf("member %s is %#v", name, v)
					}
				}
				_, hasSecret := doc["client_secret"]
				if expires, ok := doc["client_secret_expires_at"]; hasSecret != withSecret || ok != withSecret || ok && expires != float64(0) {
					t.Errorf("A13 secret: %v, expiry %v", hasSecret, expires)
				}
			})
		}
	})
}

// TestA14: the scope of a registration is no limit of what is asked for later.
func TestA14_ScopeOfARegistration(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for name, scope := range map[string]any{"A14 absent": nil, "A14 empty": "", "A14 narrower": "files:read", "A14 unknown": "files:fly"} {
			k.sub(name, func(t *testing.T) {
				body := metadata{"redirect_uris": []string{appRedirect}, "token_endpoint_auth_method": "none", "software_version": name}
				if scope != nil {
					body["scope"] = scope
				}
				status, doc := k.registerRaw("application/json", body)
				if echoed, _ := doc["scope"].(string); status != http.StatusCreated || strings.Contains(echoed, "fly") {
					t.Fatalf("%d %v", status, doc)
				}
				a := app{id: doc["client_id"].(string), method: registration.AuthNone, redirect: appRedirect}
				if got := k.connect(a, nil, "files:write"); got.body.Scope != "files:read files:write" {
					t.Errorf("scope %q", got.body.Scope)
				}
			})
		}
	})
}

// TestA15: what is wrong with a registration is 400 with one of two codes, which
// is all that go-sdk decodes; too many are 429 with a time.
func TestA15_RegistrationErrors(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		k := newKit(t, db, func(c *config.Config) { c.RegistrationPerHour = 2 })
		for body, code := range map[string]string{
			``: "invalid_client_metadata", `[]`: "invalid_client_metadata", `{`: "invalid_client_metadata", `{"redirect_uris":["` + appRedirect + `"],"scope":1}`: "invalid_client_metadata",
			`{}`: "invalid_redirect_uri", `{"redirect_uris":"x"}`: "invalid_redirect_uri", `{"redirect_uris":[null]}`: "invalid_redirect_uri",
			`{"redirect_uris":["` + appRedirect + `"],"token_endpoint_auth_method":"tls_client_auth"}`: "invalid_client_metadata",
			`{"redirect_uris":["` + appRedirect + `"],"token_endpoint_auth_method":"private_key_jwt"}`: "invalid_client_metadata",
			`{"redirect_uris":["` + appRedirect + `"],"response_types":["token"]}`:                     "invalid_client_metadata",
			strings.Repeat(" ", 65<<10): "invalid_client_metadata",
		} {
			k.sub("A15 "+body[:min(len(body), 90)], func(*testing.T) {
				k.denied(http.StatusBadRequest, code, func() answer {
					return k.raw("POST", "/register", body, http.Header{"Content-Type": {"application/json"}})
				})
			})
		}
		for range 2 {
			k.register(appRedirect)
		}
		got := k.denied(http.StatusTooManyRequests, "temporarily_unavailable", func() answer {
			return k.raw("POST", "/register", `{"redirect_uris":["`+appRedirect+`"]}`, http.Header{"Content-Type": {"application/json"}})
		})
		if got.header.Get("Retry-After") == "" || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("A15 429 with %v", got.header)
		}
	})
}

// TestA9: the port of a loopback URI is free for clients of both kinds, and
// nothing else of it (A8).
func TestA9_LoopbackPortsOfEveryKind(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, host := range []string{"127.0.0.1", "localhost", "[::1]"} {
			registered := "http://" + host + ":33418/cb?x=1"
			for kind, a := range map[string]app{"DCR": s.register(registered), "CIMD": s.publish("/"+strings.Trim(host, "[]")+".json", nil, registered)} {
				s.sub("A9 "+kind+" "+host, func(*testing.T) {
					for _, sent := range []string{"http://" + host + "/cb?x=1", "http://" + host + ":50999/cb?x=1", registered} {
						a.redirect = sent
						s.connect(a, nil)
					}
					for _, sent := range []string{"http://" + host + ":50999/cb", "http://" + host + ":50999/cb?x=2", "https://" + host + ":33418/cb?x=1", "http://127.0.0.2:33418/cb?x=1"} {
						s.stopped(s.authorizeURL(a, values("redirect_uri", sent)))
					}
				})
			}
		}
	})
}
