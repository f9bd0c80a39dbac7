package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The redirect URIs of the RU cases.
const (
	webCallback     = "https://app.example/cb"
	programCallback = "http://127.0.0.1/cb"
	appCallback     = "com.example.app:/cb"
)

// TestRU_Authorize: a redirect URI that is not registered stops at /authorize,
// before any sign-in page (RU-20), and nothing is sent to it.
func TestRU_Authorize(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		dynamic := k.register(webCallback, programCallback, appCallback)
		operators := k.trustedApp(webCallback, programCallback, appCallback)
		k.connect(dynamic, nil)
		for id, uris := range map[string][]string{
			"RU-01": {webCallback + "/", webCallback + "/x", webCallback + "?x=1", "https://app.example/CB", webCallback + ";x", webCallback + "%2e",
				"https://app.example/c%62", webCallback + "?", "https://app.example", appCallback + "/", "com.example.app:/cb?x=1", "COM.example.app:/cb", "com.example.app://cb"},
			"RU-02": {"https://APP.example/cb", "https://app.example:443/cb", "HTTPS://app.example/cb"},
			"RU-03": {"https://app.example/x/../cb", "https://app.example/%2e%2e/cb", "https://app.example/./cb", "https://app.example//cb"},
			"RU-05": {"https://sub.app.example/cb", "https://app.example.evil.example/cb", "https://xapp.example/cb", "https://app.example./cb",
				"https://app.example@evil.example/cb", "https://evil.example/cb", "https://app.example\\@evil.example/cb", "//app.example/cb", "/cb"},
			"RU-06": {webCallback + "#", webCallback + "#x", programCallback + "#", appCallback + "#x"},
			"RU-07": {"http://app.example/cb", "https://app.example:8443/cb", "https://app.example:/cb", "https://app.example:0443/cb"},
			"RU-08": {"http://127.0.0.1:49152/other", "http://127.0.0.1:49152/cb?x=1", "http://127.0.0.1:49152/cb#", "http://u@127.0.0.1:49152/cb",
				"http://127.0.0.1:49152/cb/", "https://127.0.0.1:49152/cb", "http://127.0.0.1:/cb", "http://127.0.0.1:0/cb", "http://127.0.0.1:99999/cb", "http://127.0.0.1:080/cb"},
			"RU-09": {"http://localhost:1/cb", "http://127.0.0.2:1/cb", "http://127.1:1/cb", "http://2130706433:1/cb", "http://0x7f.1:1/cb",
				"http://0.0.0.0:1/cb", "http://[::ffff:127.0.0.1]:1/cb", "http://localhost.:1/cb", "http://localhost.evil.example:1/cb",
				"http://127.0.0.1.nip.io:1/cb", "http://[::1]:1/cb", "http://127.0.0.1.:1/cb"},
			"RU-20": {"javascript:alert(1)", "data:text/html,x", "https://evil.example/"},
		} {
			for _, uri := range uris {
				k.sub(id+" "+uri, func(*testing.T) {
					for _, a := range []app{dynamic, operators} {
						k.stopped(k.authorizeURL(a, values("redirect_uri", uri)))
					}
				})
			}
		}
		k.sub("RU-08 A8 A9 the port of a loopback URI is free", func(t *testing.T) {
			for _, a := range []app{dynamic, operators} {
				a.redirect = "http://127.0.0.1:49152/cb"
				back, err := k.person.Authorize(k.ctx, k.authorizeURL(a, nil))
				if err != nil || !strings.HasPrefix(back.String(), a.redirect+"?") {
					t.Fatalf("leads to %v: %v", back, err)
				}
				k.unburned(a, back.Query().Get("code"))
			}
		})
	})
}

// TestA8: localhost, 127.0.0.1 and [::1] are three hosts, each with any port,
// and a registered port or query stays meaningful where it must.
func TestA8_A9_Loopback(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		for _, tt := range []struct {
			registered string
			good, bad  []string
		}{
			{"http://localhost:3334/cb", []string{"http://localhost/cb", "http://localhost:3334/cb", "http://localhost:1/cb"}, []string{"http://127.0.0.1:3334/cb", "http://LOCALHOST:1/cb"}},
			{"http://[::1]/cb", []string{"http://[::1]:40000/cb"}, []string{"http://127.0.0.1/cb", "http://[::2]/cb", "http://[0:0:0:0:0:0:0:1]:1/cb"}},
			{"http://127.0.0.1:0/cb?a=b", []string{"http://127.0.0.1:5/cb?a=b"}, []string{"http://127.0.0.1:5/cb", "http://127.0.0.1:5/cb?a=c", "http://127.0.0.1:5/cb?a=b&c=d"}},
		} {
			a := k.register(tt.registered)
			for _, uri := range tt.good {
				back, err := k.person.Authorize(k.ctx, k.authorizeURL(a, values("redirect_uri", uri)))
				if err != nil || !strings.HasPrefix(back.String(), uri) {
					t.Errorf("A8 %s registered, %s sent: %v, %v", tt.registered, uri, back, err)
				}
			}
			for _, uri := range tt.bad {
				k.sub("A8 "+uri, func(*testing.T) { k.stopped(k.authorizeURL(a, values("redirect_uri", uri))) })
			}
		}
	})
}

// tryRegister posts a client that is public, or confidential.
func (k *kit) tryRegister(method string, redirects ...string) (answer, map[string]any) {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{"client_name": "Quill", "redirect_uris": redirects, "token_endpoint_auth_method": method})
	if err != nil {
		k.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.URL("/register"), strings.NewReader(string(body)))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	got, err := k.send(req)
	if err != nil {
		k.t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(got.raw), &doc); err != nil {
		k.t.Fatal(err)
	}
	return got, doc
}

// unregistrable are redirect URIs that no client may have, by the case.
var unregistrable = map[string][]string{
	"RU-06": {webCallback + "#", webCallback + "#x", programCallback + "#", appCallback + "#"},
	"RU-12": {"javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:https://app.example/x", "about:blank",
		"JaVaScRiPt:alert(1)", "\tjavascript:alert(1)", "java\nscript:alert(1)", " javascript:alert(1)", "javascript://app.example/%0aalert(1)", "view-source:https://app.example"},
	"RU-13": {"*", "https://*.example/cb", "https://app.example/*", "https://app.example/[a-z]+", "https://app.example/.*", "https://(a|b).example/cb", "https://app.example/cb$"},
	"RU-14": {"http://app.example/cb", "http://app.example:80/cb", "http://0.0.0.0/cb", "http://127.0.0.2/cb", "http://localhost.evil.example/cb"},
	"RU-15": {webCallback + "?code=x", webCallback + "?state=x", webCallback + "?a=b&iss=x", webCallback + "?error=x", webCallback + "?c%6fde=x"},
}

// TestRU_Register: what may not be registered leaves no row, also beside a good
// one. For documents: TestCI10_RU_RedirectsOfDocuments and
// TestRU18_InternationalizedHostOfADocument.
func TestRU_Register(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for id, uris := range unregistrable {
			for _, uri := range uris {
				k.sub(id+" "+uri, func(t *testing.T) {
					for _, method := range []string{registration.AuthNone, registration.AuthClientSecretBasic} {
						k.unchanged(func() {
							got, doc := k.tryRegister(method, uri)
							want(t, got, 400, "invalid_redirect_uri")
							if doc["client_id"] != nil {
								t.Error("a refusal with a client_id")
							}
							got, _ = k.tryRegister(method, webCallback, uri)
							want(t, got, 400, "invalid_redirect_uri")
						})
					}
				})
			}
		}
	})
}

// TestRU18: one spelling of an internationalized host, the ASCII one.
func TestRU18_InternationalizedHost(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		const unicode, ascii = "https://bücher.example/cb", "https://xn--bcher-kva.example/cb"
		for _, registered := range []string{unicode, ascii} {
			k.sub("RU-18 registered as "+registered, func(t *testing.T) {
				got, doc := k.tryRegister(registration.AuthNone, registered)
				if got.status != http.StatusCreated {
					t.Fatalf("register: %d %s", got.status, got.raw)
				}
				if uris, _ := doc["redirect_uris"].([]any); len(uris) != 1 || uris[0] != ascii {
					t.Errorf("stored as %v, want %s", doc["redirect_uris"], ascii)
				}
				a := app{id: doc["client_id"].(string), method: registration.AuthNone, redirect: ascii}
				k.unburned(a, k.code(a, nil))
				k.stopped(k.authorizeURL(a, values("redirect_uri", unicode)))
				k.stopped(k.authorizeURL(a, values("redirect_uri", "https://XN--BCHER-KVA.example/cb")))
			})
		}
	})
}

// TestRU19: what came at /authorize is what /token compares with.
func TestRU19_TokenRequest(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.register(webCallback, "https://app.example/other", programCallback)
		a.redirect = "http://127.0.0.1:4000/cb"
		for _, sent := range []string{"https://app.example/other", webCallback, programCallback, "http://127.0.0.1:4001/cb", "http://localhost:4000/cb"} {
			k.sub("RU-19 A18 "+sent, func(*testing.T) {
				code := k.code(a, nil)
				k.denied(400, "invalid_grant", func() answer { return k.redeem(a, code, values("redirect_uri", sent)) })
				k.unburned(a, code)
			})
		}
		k.sub("RU-19 D17 absent is accepted", func(t *testing.T) {
			want(t, k.redeem(a, k.code(a, nil), url.Values{"redirect_uri": nil}), 200, "")
			want(t, k.redeem(a, k.code(a, nil), values("redirect_uri", "")), 200, "") // OAuth 2.1 §3.2: no value is absent
		})
		k.sub("RU-19 twice", func(*testing.T) {
			code := k.code(a, nil)
			k.denied(400, "invalid_request", func() answer { return k.redeem(a, code, url.Values{"redirect_uri": {a.redirect, a.redirect}}) })
			k.unburned(a, code)
		})
	})
}

// TestAR04: the only registered URI may be left out, and is then the one.
func TestAR04_OnlyRedirectURI(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		back, err := k.person.Authorize(k.ctx, k.authorizeURL(a, url.Values{"redirect_uri": nil}))
		if err != nil || !strings.HasPrefix(back.String(), appRedirect+"?") || back.Query().Get("iss") != testkit.Issuer {
			t.Fatalf("leads to %v: %v", back, err)
		}
		want(t, k.redeem(a, back.Query().Get("code"), url.Values{"redirect_uri": nil}), 200, "")
	})
}
