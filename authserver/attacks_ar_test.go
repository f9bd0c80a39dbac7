package authserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func (k *kit) addAccount(name string, p *testkit.Person) {
	k.t.Helper()
	if _, err := k.App.Accounts.Add(k.ctx, login.NewUser{Email: p.Email, Name: name, Password: oauth.Secret(p.Password)}); err != nil {
		k.t.Fatal(err)
	}
}

// TestAR_ClientAndRedirect: before client and redirect URI are proven nothing
// is sent anywhere.
func TestAR_ClientAndRedirect(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.trustedApp(appRedirect)
		two := k.register(appRedirect, "https://app.example.net/other")
		k.connect(two, nil)
		evil := "https://evil.example/cb"
		for _, tt := range []struct {
			name    string
			a       app
			changes url.Values
		}{
			{"AR-01 no client_id", a, url.Values{"client_id": nil}},
			{"AR-01 empty client_id", a, values("client_id", "")},
			{"AR-02 unknown client_id", a, values("client_id", "nobody", "redirect_uri", evil)},
			{"AR-02 client_id with markup", a, values("client_id", "<script>alert(1)</script>")},
			{"AR-02 client_id with invalid UTF-8", a, values("client_id", "a\xff")},
			{"AR-03 client_id twice, the same", a, url.Values{"client_id": {a.id, a.id}}},
			{"AR-03 client_id twice, different", a, url.Values{"client_id": {a.id, two.id}}},
			{"AR-03 redirect_uri twice, the same", a, url.Values{"redirect_uri": {a.redirect, a.redirect}}},
			{"AR-03 redirect_uri twice, good first", a, url.Values{"redirect_uri": {a.redirect, evil}}},
			{"AR-03 redirect_uri twice, good last", a, url.Values{"redirect_uri": {evil, a.redirect}}},
			{"AR-04 no redirect_uri and two registered", two, url.Values{"redirect_uri": nil}},
			{"AR-04 empty redirect_uri and two registered", two, values("redirect_uri", "")},
		} {
			k.sub(tt.name, func(*testing.T) { k.stopped(k.authorizeURL(tt.a, tt.changes)) })
		}
		k.sub("AR-02 deleted client_id", func(t *testing.T) {
			gone := k.register(appRedirect)
			if err := k.DB.DeleteClient(k.ctx, gone.id); err != nil {
				t.Fatal(err)
			}
			if k.publish != nil {
				// its document is still there, so it is a client nobody approved; what
				// keeps it out is to block it. A document that is gone is CI-07
				k.toConsent(k.person, k.authorizeURL(gone, nil))
				if _, err := k.App.Clients.Block(k.ctx, gone.id); err != nil {
					t.Fatal(err)
				}
				k.stopped(k.authorizeURL(gone, nil))
				return
			}
			k.stopped(k.authorizeURL(gone, nil))
			// A20: the client has no signal, so the person is told how to reset it
			if page := k.open(k.person, k.authorizeURL(gone, nil)); !strings.Contains(page.Body, "<li>") {
				t.Error("A20: the page says nothing of what to do")
			}
		})
		k.sub("AR-17 disabled client", func(t *testing.T) {
			off := k.trustedApp(appRedirect)
			if _, err := k.App.Clients.Disable(k.ctx, off.id); err != nil {
				t.Fatal(err)
			}
			k.stopped(k.authorizeURL(off, nil))
		})
	})
}

// TestAR_Refused: mistakes for which the client may be told.
func TestAR_Refused(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		var fetched atomic.Int32
		inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Add(1) }))
		t.Cleanup(inside.Close)
		c := k.newCast()
		for _, tt := range []struct {
			name    string
			changes url.Values
			code    string
		}{
			{"AR-05 response_type missing", url.Values{"response_type": nil}, "invalid_request"},
			{"AR-05 response_type empty", values("response_type", ""), "invalid_request"},
			{"AR-05 token", values("response_type", "token"), "unsupported_response_type"},
			{"AR-05 id_token", values("response_type", "id_token"), "unsupported_response_type"},
			{"AR-05 code token", values("response_type", "code token"), "unsupported_response_type"},
			{"AR-05 response_mode fragment", values("response_mode", "fragment"), "invalid_request"},
			{"AR-07 request", values("request", "eyJhbGciOiJub25lIn0.e30."), "request_not_supported"},
			{"AR-07 request_uri of a link-local host", values("request_uri", "http://169.254.169.254/"), "request_uri_not_supported"},
			{"AR-07 request_uri is not fetched", values("request_uri", inside.URL+"/r.jwt"), "request_uri_not_supported"},
			{"AR-08 state twice", url.Values{"state": {state, "other"}}, "invalid_request"},
			{"AR-08 scope twice", url.Values{"scope": {"files:read", "files:read"}}, "invalid_request"},
			{"AR-08 code_challenge twice", url.Values{"code_challenge": {challenge(verifier), challenge(verifier)}}, "invalid_request"},
			{"AR-08 nonce twice", url.Values{"nonce": {"a", "b"}}, "invalid_request"},
			{"AR-08 unknown parameter twice, its name is not repeated", url.Values{"é\"<script>\\": {"a", "b"}}, "invalid_request"},
			{"AR-11 prompt none beside another", values("prompt", "none login"), "invalid_request"},
		} {
			k.sub(tt.name, func(*testing.T) { k.refusedAtAuthorize(c, tt.changes, tt.code) })
		}
		if n := fetched.Load(); n != 0 {
			t.Errorf("AR-07: %d requests to the request_uri", n)
		}
		k.sub("AR-17 not allowed the code grant", func(t *testing.T) {
			for _, a := range []app{c.trusted, c.approved, c.stranger} {
				row, err := k.DB.GetClient(k.ctx, a.id)
				if err != nil {
					t.Fatal(err)
				}
				row.Metadata.GrantTypes = []string{registration.GrantRefreshToken}
				if err := k.DB.UpdateClient(k.ctx, row); err != nil {
					t.Fatal(err)
				}
			}
			k.refusedAtAuthorize(c, nil, "unauthorized_client")
		})
	})
}

// TestAR10: a site that sends a browser here gets no silent code for a program
// on this machine, whose client_id any process may claim (A34, D11).
func TestAR10_CrossSite(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		k.connect(a, nil)
		ask := k.authorizeURL(a, nil)
		before := len(k.grants())
		k.sub("AR-10 GET", func(*testing.T) { k.toConsent(k.person, ask) })
		k.sub("AR-10 POST", func(t *testing.T) {
			_, query, _ := strings.Cut(ask, "?")
			req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.URL("/authorize"), strings.NewReader(query))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Sec-Fetch-Site", "cross-site")
			req.Header.Set("Origin", "https://evil.example")
			page, err := k.person.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if page.Form("/consent") == nil || page.Leaves != nil {
				t.Errorf("%d %q leading to %v, want the consent page", page.Status, page.Heading, page.Leaves)
			}
		})
		if n := len(k.grants()); n != before {
			t.Errorf("%d grants, want %d", n, before)
		}
	})
}

func TestAR11_PromptNone(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		c := k.newCast()
		silent := values("prompt", "none")
		k.sub("AR-11 no session", func(t *testing.T) {
			k.unchanged(func() {
				wantRedirect(t, k.open(k.Person(), k.authorizeURL(c.trusted, silent)), c.trusted, "login_required")
				wantButton(t, k.open(k.Person(), k.authorizeURL(c.stranger, silent)), c.stranger, "login_required")
			})
		})
		k.sub("AR-11 no consent", func(t *testing.T) {
			k.unchanged(func() {
				wantRedirect(t, k.open(k.person, k.authorizeURL(c.trusted, silent)), c.trusted, "consent_required")
				// D11: what a person allowed an unverified client is not remembered
				wantRedirect(t, k.open(k.person, k.authorizeURL(c.approved, silent)), c.approved, "consent_required")
				wantButton(t, k.open(k.person, k.authorizeURL(c.stranger, silent)), c.stranger, "consent_required")
			})
		})
		k.sub("A30 remembered consent answers without a page", func(t *testing.T) {
			k.connect(c.trusted, nil)
			page := k.open(k.person, k.authorizeURL(c.trusted, silent))
			if page.Leaves == nil {
				t.Fatalf("%d %q, want a code", page.Status, page.Heading)
			}
			k.unburned(c.trusted, page.Leaves.Query().Get("code"))
		})
	})
}

func TestAR13_TamperedForm(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		page := k.toConsent(k.person, k.authorizeURL(a, nil))
		form := page.Form("/consent")
		k.Clock.Advance(time.Second)
		for _, tt := range []struct {
			name    string
			changes url.Values
		}{
			{"AR-13 restricted scope", values("decision", "allow", "scope", "admin")},
			{"AR-13 SC-08 scope that the page did not show", values("decision", "allow", "scope", "files:delete")},
			{"AR-13 decision twice", url.Values{"decision": {"deny", "allow"}}},
		} {
			k.sub(tt.name, func(t *testing.T) {
				k.unchanged(func() { wantPage(t, k.submit(k.person, page, form, tt.changes), http.StatusBadRequest) })
			})
		}
		k.sub("AR-13 the stored request wins", func(t *testing.T) {
			back := k.submit(k.person, page, form, values("decision", "allow", "redirect_uri", "https://evil.example/cb",
				"resource", testkit.OtherResource, "response_type", "token", "client_id", "other", "state", "other", "code_challenge", "other"))
			if back.Leaves == nil || !strings.HasPrefix(back.Leaves.String(), appRedirect+"?") || back.Leaves.Query().Get("state") != state {
				t.Fatalf("leads to %v", back.Leaves)
			}
			got := k.unburned(a, back.Leaves.Query().Get("code"))
			if c := claims(t, got.body.AccessToken); c["aud"] != testkit.Resource || c["client_id"] != a.id {
				t.Errorf("claims = %v", c)
			}
		})
	})
}

func TestAR14_RequestOfAnotherBrowser(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		victims := k.toConsent(k.person, k.authorizeURL(a, nil))
		attacker := k.addPerson("mallory")
		own := k.toConsent(attacker, k.authorizeURL(a, nil))
		k.Clock.Advance(time.Second)
		id := victims.Form("/consent").Values.Get("request")
		if id == "" {
			t.Fatal("the consent form names no request")
		}
		k.unchanged(func() {
			wantPage(t, k.submit(attacker, own, own.Form("/consent"), values("decision", "allow", "request", id)), http.StatusForbidden)
			wantPage(t, k.submit(attacker, own, victims.Form("/consent"), values("decision", "allow")), http.StatusForbidden)
			wantPage(t, k.open(attacker, k.URL("/authorize/continue?request="+url.QueryEscape(id))), http.StatusForbidden)
			wantPage(t, k.open(k.Person(), k.URL("/authorize/continue?request="+url.QueryEscape(id))), http.StatusForbidden)
		})
		back, err := k.person.Allow(k.ctx, victims)
		if err != nil || back.Leaves == nil {
			t.Fatalf("the victim's request: %v", err)
		}
		k.unburned(a, back.Leaves.Query().Get("code"))
	})
}

func TestAR15_ReplayAndExpiry(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		k.sub("AR-15 replay of an approved request", func(t *testing.T) {
			page := k.toConsent(k.person, k.authorizeURL(a, nil))
			form := page.Form("/consent")
			k.Clock.Advance(time.Second)
			if first := k.submit(k.person, page, form, values("decision", "allow")); first.Leaves == nil {
				t.Fatal("the first answer led nowhere")
			}
			k.unchanged(func() {
				wantPage(t, k.submit(k.person, page, form, values("decision", "allow")), http.StatusBadRequest)
				wantPage(t, k.open(k.person, k.URL("/authorize/continue?request="+url.QueryEscape(form.Values.Get("request")))), http.StatusBadRequest)
			})
		})
		k.sub("AR-15 30 minutes after the last page", func(t *testing.T) {
			page := k.toConsent(k.person, k.authorizeURL(a, nil))
			k.Clock.Advance(30 * time.Minute)
			grants := len(k.grants())
			wantPage(t, k.submit(k.person, page, page.Form("/consent"), values("decision", "allow")), http.StatusBadRequest)
			if n := len(k.grants()); n != grants {
				t.Errorf("%d grants, want %d", n, grants)
			}
		})
		k.sub("AR-15 4 hours in all", func(t *testing.T) {
			page := k.toConsent(k.person, k.authorizeURL(a, nil))
			at := page.URL.String()
			for range 11 {
				k.Clock.Advance(20 * time.Minute)
				page = k.toConsent(k.person, at)
			}
			k.Clock.Advance(20 * time.Minute)
			grants := len(k.grants())
			wantPage(t, k.submit(k.person, page, page.Form("/consent"), values("decision", "allow")), http.StatusBadRequest)
			wantPage(t, k.open(k.person, at), http.StatusBadRequest)
			if n := len(k.grants()); n != grants {
				t.Errorf("%d grants, want %d", n, grants)
			}
		})
	})
}

// TestAR18: nobody bounces a person through us by a mistake made on purpose.
func TestAR18_OpenRedirection(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		c := k.newCast()
		for name, tt := range map[string]struct {
			changes url.Values
			code    string
		}{
			"AR-18 unknown scope":    {values("scope", "nothing:here"), "invalid_scope"},
			"AR-18 response type":    {values("response_type", "bounce"), "unsupported_response_type"},
			"AR-18 unknown resource": {values("resource", "https://elsewhere.example"), "invalid_target"},
			"AR-18 no PKCE":          {url.Values{"code_challenge": nil}, "invalid_request"},
		} {
			k.sub(name, func(*testing.T) { k.refusedAtAuthorize(c, tt.changes, tt.code) })
		}
		k.sub("AR-18 approved at another redirect URI", func(t *testing.T) {
			two := k.register(appRedirect, "https://app.example.net/other")
			k.connect(two, nil)
			other := app{id: two.id, method: two.method, redirect: "https://app.example.net/other"}
			wantButton(t, k.open(k.person, k.authorizeURL(other, values("response_type", "x"))), other, "unsupported_response_type")
		})
		k.sub("AR-18 D14 denied by the person", func(t *testing.T) {
			for _, tt := range []struct {
				a         app
				automatic bool
			}{{c.stranger, false}, {c.approved, true}, {c.trusted, true}, {k.register(loopbackRedirect), true}, {k.register("com.example.app:/cb"), false}} {
				page, err := k.person.Deny(k.ctx, k.toConsent(k.person, k.authorizeURL(tt.a, nil)))
				if err != nil {
					t.Fatal(err)
				}
				if got := page.Leaves != nil; got != tt.automatic {
					t.Errorf("%s: leaves by itself %t, want %t", tt.a.redirect, got, tt.automatic)
				}
			}
		})
	})
}

func TestAR19_UnregisteredParameters(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		hostile := values("acr_values", "<script>alert(1)</script>", "claims", `{"id_token":{"x":null}}`,
			"login_hint", `"><script>alert(1)</script>`, "ui_locales", "'><img src=x>", "unknown", "<svg onload=x>")
		page := k.open(k.person, k.authorizeURL(a, hostile))
		if page.Form("/sign-in") == nil {
			t.Fatalf("%d %q, want the sign-in page", page.Status, page.Heading)
		}
		for _, raw := range []string{"<script", "<img src=x", "<svg onload"} {
			if strings.Contains(page.Body, raw) {
				t.Errorf("the sign-in page echoes %q", raw)
			}
		}
		k.unburned(a, k.code(a, hostile))
	})
}

// TestAR20: the browser's session decides, and nothing else.
func TestAR20_CredentialsOfAnother(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		minas := k.connect(a, nil).body.AccessToken
		noor := k.addPerson("noor")
		ask := func(p *testkit.Person, header, value string) *testkit.Page {
			req, err := http.NewRequestWithContext(k.ctx, http.MethodGet, k.authorizeURL(a, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(header, value)
			page, err := p.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		for header, value := range map[string]string{"Authorization": "Bearer " + minas, "Cookie": "__Host-session=" + minas} {
			if page := ask(k.Person(), header, value); page.Form("/sign-in") == nil {
				t.Errorf("AR-20 %s: %d %q, want the sign-in page", header, page.Status, page.Heading)
			}
		}
		k.toConsent(noor, k.authorizeURL(a, nil))
		page := ask(noor, "Authorization", "Bearer "+minas)
		back, err := noor.Allow(k.ctx, page)
		if err != nil || back.Leaves == nil {
			t.Fatalf("allow: %v", err)
		}
		got := k.unburned(a, back.Leaves.Query().Get("code"))
		if claims(t, got.body.AccessToken)["sub"] == claims(t, minas)["sub"] {
			t.Error("AR-20: the token is for the person of the header")
		}
	})
}
