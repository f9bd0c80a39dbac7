package authserver_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The tests of this file hold the server to the rules of what clients need
// ("A" rules) that no attack covers.

// TestA16: VS Code reads a code without decoding it, and the TypeScript SDK
// sends Basic without form-encoding.
func TestA16_Alphabet(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		plain := regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
		_, dynamic := k.tryRegister(registration.AuthClientSecretBasic, appRedirect)
		id, _ := dynamic["client_id"].(string)
		secret, _ := dynamic["client_secret"].(string)
		for _, a := range []app{{id: id, secret: secret, method: registration.AuthClientSecretBasic, redirect: appRedirect},
			k.operatorApp(registration.AuthClientSecretPost, appRedirect)} {
			code := k.code(a, nil)
			got := k.unburned(a, code)
			for name, s := range map[string]string{"client_id": a.id, "client_secret": a.secret, "code": code,
				"refresh_token": got.body.RefreshToken, "access_token": got.body.AccessToken} {
				if !plain.MatchString(s) {
					t.Errorf("A16 %s %q has another character", name, s)
				}
			}
		}
	})
}

// TestA17_A18: every way in which clients send their credential works, and what
// fails before client authentication is through leaves the code unconsumed.
func TestA17_A18_ClientAuthentication(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		public, basic := k.register(appRedirect), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		send := func(a app, code string, user, password *string, form url.Values) answer {
			body := changed(values("grant_type", "authorization_code", "code", code, "code_verifier", verifier), form)
			req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.URL("/token"), strings.NewReader(body.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if user != nil {
				req.SetBasicAuth(*user, *password)
			}
			got, err := k.send(req)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		empty, wrong, unknown, escaped := "", "wrong", "nobody", strings.ReplaceAll(url.QueryEscape(basic.secret), "-", "%2D")
		for _, tt := range []struct {
			name           string
			a              app
			user, password *string
			form           url.Values
			status         int
			code           string
		}{
			{"A17 Basic", basic, &basic.id, &basic.secret, nil, 200, ""},
			{"A17 Basic and the same client_id in the body", basic, &basic.id, &basic.secret, values("client_id", basic.id), 200, ""},
			{"A17 Basic, form-encoded", basic, &basic.id, &escaped, nil, 200, ""},
			{"A17 post by a client that registered Basic", basic, nil, nil, values("client_id", basic.id, "client_secret", basic.secret), 200, ""},
			{"A17 public client with Basic and an empty password", public, &public.id, &empty, nil, 200, ""},
			{"A17 public client with client_id in the body", public, nil, nil, values("client_id", public.id), 200, ""},
			{"A18 Basic and another client_id in the body", basic, &basic.id, &basic.secret, values("client_id", public.id), 400, "invalid_request"},
			{"A18 Basic and a secret in the body", basic, &basic.id, &basic.secret, values("client_secret", basic.secret), 400, "invalid_request"},
			{"A18 no credential", basic, nil, nil, values("client_id", basic.id), 401, "invalid_client"},
			{"A18 no client", public, nil, nil, nil, 401, "invalid_client"},
			{"A18 wrong secret", basic, &basic.id, &wrong, nil, 401, "invalid_client"},
			{"A18 a parameter twice", public, nil, nil, url.Values{"client_id": {public.id}, "x": {"1", "2"}}, 400, "invalid_request"},
			{"A18 no grant_type", public, nil, nil, url.Values{"client_id": {public.id}, "grant_type": nil}, 400, "invalid_request"},
			{"A19 unknown client, Basic", public, &unknown, &wrong, nil, 401, "invalid_client"},
			{"A19 unknown client, body", public, nil, nil, values("client_id", "nobody"), 401, "invalid_client"},
		} {
			k.sub(tt.name, func(t *testing.T) {
				code := k.code(tt.a, nil)
				ask := func() answer { return send(tt.a, code, tt.user, tt.password, tt.form) }
				if tt.status == 200 {
					want(t, ask(), 200, "")
					return
				}
				got := k.denied(tt.status, tt.code, ask)
				if challenged := strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Basic "); challenged != (tt.status == 401 && tt.user != nil) {
					t.Errorf("WWW-Authenticate %q", got.header.Get("WWW-Authenticate"))
				}
				k.unburned(tt.a, code)
			})
		}
	})
}

// TestA19: a client that was deleted learns at every grant that it is unknown,
// and registers again.
func TestA19_DeletedClient(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range []app{k.register(appRedirect), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)} {
			k.sub("A19 "+a.method, func(t *testing.T) {
				token, code := k.connect(a, nil).body.RefreshToken, k.code(a, nil)
				if err := k.DB.DeleteClient(k.ctx, a.id); err != nil {
					t.Fatal(err)
				}
				for _, ask := range []func() answer{func() answer { return k.refresh(a, token, nil) }, func() answer { return k.redeem(a, code, nil) },
					func() answer { return k.post("/revoke", a, values("token", token)) }} {
					got := k.denied(401, "invalid_client", ask)
					if challenged := got.header.Get("WWW-Authenticate") != ""; challenged != (a.method == registration.AuthClientSecretBasic) {
						t.Errorf("WWW-Authenticate %q", got.header.Get("WWW-Authenticate"))
					}
				}
			})
		}
	})
}

func TestA30_Prompt(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		k.connect(a, nil)
		for _, prompt := range []string{"", "select_account", "create", "unknown values"} {
			k.sub("A30 prompt="+prompt+" changes nothing", func(t *testing.T) {
				if page := k.open(k.person, k.authorizeURL(a, values("prompt", prompt, "foo", "bar"))); page.Leaves == nil || page.Leaves.Query().Get("code") == "" {
					t.Errorf("%d %q leading to %v", page.Status, page.Heading, page.Leaves)
				}
			})
		}
		k.sub("A30 prompt=login asks for the password again", func(t *testing.T) {
			k.Clock.Advance(time.Second)
			page := k.open(k.person, k.authorizeURL(a, values("prompt", "login")))
			if page.Form("/sign-in") == nil {
				t.Fatalf("%d %q, want the sign-in page", page.Status, page.Heading)
			}
			k.unchanged(func() { // leaving the page out does not help
				k.open(k.person, k.URL("/authorize/continue?"+page.URL.RawQuery))
			})
			back, err := k.person.SignIn(k.ctx, page)
			if err != nil || back.Leaves == nil || back.Leaves.Query().Get("code") == "" {
				t.Fatalf("after sign-in: %v", err)
			}
		})
		for name, changes := range map[string]url.Values{"prompt=login": values("prompt", "login"), "max_age": values("max_age", "0")} {
			k.sub("A30 "+name+": no consent before the sign-in", func(t *testing.T) {
				stranger := k.register(appRedirect)
				k.Clock.Advance(time.Second)
				page := k.open(k.person, k.authorizeURL(stranger, changes))
				k.unchanged(func() {
					early := k.open(k.person, k.URL("/consent?request="+requestOf(t, page)))
					if early.Form("/sign-in") == nil || early.Form("/consent") != nil {
						t.Errorf("%d %q, want the sign-in page", early.Status, early.Heading)
					}
				})
				if page, err := k.person.SignIn(k.ctx, page); err != nil || page.Form("/consent") == nil {
					t.Errorf("after sign-in: %v, want the consent page", err)
				}
			})
		}
		k.sub("max_age within its time changes nothing", func(t *testing.T) {
			k.Clock.Advance(10 * time.Second)
			if page := k.open(k.person, k.authorizeURL(a, values("max_age", "60"))); page.Leaves == nil || page.Leaves.Query().Get("code") == "" {
				t.Errorf("%d %q", page.Status, page.Heading)
			}
			k.Clock.Advance(60 * time.Second)
			if page := k.open(k.person, k.authorizeURL(a, values("max_age", "60"))); page.Form("/sign-in") == nil {
				t.Errorf("%d %q, want the sign-in page", page.Status, page.Heading)
			}
			wantRedirect(t, k.open(k.person, k.authorizeURL(a, values("max_age", "60", "prompt", "none"))), a, "login_required")
			for _, bad := range []string{"x", "-1", "1.5", "99999999999"} {
				wantRedirect(t, k.open(k.person, k.authorizeURL(a, values("max_age", bad))), a, "invalid_request")
			}
		})
		for name, p := range map[string]*testkit.Person{"signed in": k.person, "without a session": k.Person()} {
			for path, rawURL := range map[string]string{"/authorize": k.authorizeURL(a, nil), "/sign-in": k.URL("/sign-in")} {
				k.sub("HEAD "+path+" "+name+" looks and makes nothing", func(t *testing.T) {
					k.unchanged(func() {
						req, err := http.NewRequestWithContext(k.ctx, http.MethodHead, rawURL, nil)
						if err != nil {
							t.Fatal(err)
						}
						if page, err := p.Do(req); err != nil || page.Status != http.StatusOK || page.Leaves != nil || page.Header.Get("Set-Cookie") != "" {
							t.Errorf("%+v, %v; want an empty 200", page, err)
						}
					})
				})
			}
		}
		k.sub("A30 prompt=login consent asks both", func(t *testing.T) {
			k.Clock.Advance(time.Second)
			page := k.open(k.person, k.authorizeURL(a, values("prompt", "login consent")))
			if page.Form("/sign-in") == nil {
				t.Fatalf("%d %q, want the sign-in page", page.Status, page.Heading)
			}
			if page, _ = k.person.SignIn(k.ctx, page); page == nil || page.Form("/consent") == nil {
				t.Error("no consent page after it")
			}
		})
	})
}

// TestA31: state is the client's own and comes back as it was sent, by every
// way and from a URL of 16 KiB, GET or POST.
func TestA31_State(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		k.connect(a, nil)
		for name, s := range map[string]string{
			"of VS Code":           "vscode://dynamicauthprovider/x?nonce=%2B%3D&a=b",
			"that looks encoded":   "a+b%20c%%2520&=;#?/",
			"with other alphabets": "zażółć 🗝 \u202e",
			"with control bytes":   "a\tb\r\nSet-Cookie: x=y",
			"with markup":          `"><script>alert(1)</script>`,
			"of 4 KiB":             strings.Repeat("s ", 2<<10),
			"of 8 KiB":             strings.Repeat("s", 8<<10),
		} {
			k.sub("A31 state "+name, func(t *testing.T) {
				for _, u := range []*url.URL{
					k.open(k.person, k.authorizeURL(a, values("state", s))).Leaves,
					k.open(k.person, k.authorizeURL(a, values("state", s, "response_type", "x"))).Leaves,
					k.answer(a, values("state", s, "prompt", "consent")),
				} {
					if u == nil || !slices.Equal(u.Query()["state"], []string{s}) {
						t.Errorf("state came back as %v", u)
					}
				}
			})
		}
		for name, sent := range map[string][]string{"A31 state absent": nil, "A31 state empty": {""}} {
			k.sub(name, func(t *testing.T) {
				for _, more := range []url.Values{nil, values("response_type", "x"), values("prompt", "consent")} {
					ask := changed(url.Values{"state": sent}, more)
					u := k.open(k.person, k.authorizeURL(a, ask)).Leaves
					if u == nil {
						u = k.answer(a, ask)
					}
					if !slices.Equal(u.Query()["state"], sent) {
						t.Errorf("state came back as %q, want %q", u.Query()["state"], sent)
					}
				}
			})
		}
		k.sub("A31 URL of 16 KiB, GET and POST", func(t *testing.T) {
			long := k.authorizeURL(a, values("unknown", strings.Repeat("u", 12<<10), "state", strings.Repeat("s", 4<<10)))
			if len(long) < 16<<10 {
				t.Fatalf("the URL has %d bytes", len(long))
			}
			if page := k.open(k.person, long); page.Leaves == nil || page.Leaves.Query().Get("code") == "" {
				t.Errorf("GET: %d %q", page.Status, page.Heading)
			}
			if page := k.authorizeByPost(long); page.Leaves == nil || page.Leaves.Query().Get("code") == "" {
				t.Errorf("POST: %d %q", page.Status, page.Heading)
			}
		})
		k.sub("A31 state beyond the limit", func(t *testing.T) {
			k.unchanged(func() {
				wantPageOrError(t, k.open(k.person, k.authorizeURL(a, values("state", strings.Repeat("s", 8<<10+1)))), "invalid_request")
			})
		})
	})
}

func wantPageOrError(t *testing.T, p *testkit.Page, code string) {
	t.Helper()
	if p.Leaves == nil || p.Leaves.Query().Get("error") != code {
		t.Errorf("%d %q leading to %v, want error %s", p.Status, p.Heading, p.Leaves, code)
	}
}

// answer walks through the pages to the response.
func (k *kit) answer(a app, changes url.Values) *url.URL {
	k.t.Helper()
	u, err := k.person.Authorize(k.ctx, k.authorizeURL(a, changes))
	if err != nil {
		k.t.Fatal(err)
	}
	return u
}

// authorizeByPost sends the query of an authorization URL as a form.
func (k *kit) authorizeByPost(rawURL string) *testkit.Page {
	k.t.Helper()
	to, query, _ := strings.Cut(rawURL, "?")
	req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, to, strings.NewReader(query))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	page, err := k.person.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	return page
}

// TestA35: only a GET that shows no page leaves by a redirect; after a form the
// way out is a page, for browsers that apply form-action to every hop (D15).
func TestA35_WaysOut(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		for name, decision := range map[string]string{"A35 allowed": "allow", "A35 denied": "deny"} {
			k.sub(name, func(t *testing.T) {
				page := k.toConsent(k.person, k.authorizeURL(a, values("prompt", "consent")))
				k.Clock.Advance(time.Second)
				back := k.submit(k.person, page, page.Form("/consent"), values("decision", decision))
				if back.Status != http.StatusOK || back.Header.Get("Location") != "" || !strings.HasPrefix(back.URL.Path, "/return/") {
					t.Errorf("%d at %s, want the return page", back.Status, back.URL.Path)
				}
				if csp := back.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'none'") {
					t.Errorf("Content-Security-Policy %s", csp)
				}
				// D15: the Refresh header is sent once; a reload shows the button
				if again := k.open(k.person, back.URL.String()); again.Leaves != nil || again.Status != http.StatusOK {
					t.Errorf("a reload leads to %v", again.Leaves)
				}
			})
		}
		k.sub("A35 a GET that shows no page", func(t *testing.T) {
			page := k.open(k.person, k.authorizeURL(a, nil))
			if page.Status != http.StatusSeeOther || page.Header.Get("Location") == "" || page.Header.Get("Refresh") != "" {
				t.Errorf("%d %v, want 303 with Location alone", page.Status, page.Header)
			}
		})
		k.sub("A35 POST /authorize leaves only by the GET that follows", func(t *testing.T) {
			_, query, _ := strings.Cut(k.authorizeURL(a, nil), "?")
			resp, err := k.Client().Post(k.URL("/authorize"), "application/x-www-form-urlencoded", strings.NewReader(query))
			if err != nil {
				t.Fatal(err)
			}
			testkit.Body(t, resp)
			if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/authorize?") {
				t.Errorf("%d to %q", resp.StatusCode, to)
			}
		})
	})
}
