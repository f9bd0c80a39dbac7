package authserver_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The tests of this file hold the server to the "A" rules of what many
// processes, installations and people share.

// TestA21: whatever is wrong with a request, a program reads JSON with an error.
func TestA21_ErrorsAreJSON(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		token := k.connect(a, nil).body.RefreshToken
		form := values("grant_type", "refresh_token", "refresh_token", token, "client_id", a.id)
		for name, tt := range map[string]struct {
			method, target, body string
			header               http.Header
			status               int
		}{
			"GET":                       {"GET", "/token", "", nil, 405},
			"PUT":                       {"PUT", "/token", form.Encode(), nil, 405},
			"no parameters":             {"POST", "/token", "", nil, 400},
			"no form":                   {"POST", "/token", `{"grant_type":"refresh_token"}`, http.Header{"Content-Type": {"application/json"}}, 400},
			"no type":                   {"POST", "/token", form.Encode(), http.Header{"Content-Type": nil}, 400},
			"parameters in the query":   {"POST", "/token?" + form.Encode(), "", nil, 400},
			"a body that does not end":  {"POST", "/token", "grant_type=%", nil, 400},
			"unknown grant type":        {"POST", "/token", "grant_type=x&client_id=" + a.id, nil, 400},
			"broken Basic":              {"POST", "/token", "grant_type=refresh_token&refresh_token=x", http.Header{"Authorization": {"Basic !"}}, 401},
			"a browser's Accept header": {"POST", "/token", "", http.Header{"Accept": {"text/html"}}, 400},
			"revocation without token":  {"POST", "/revoke", "client_id=" + a.id, nil, 400},
			"a path that is not there":  {"POST", "/token/", form.Encode(), nil, 404},
		} {
			k.sub("A21 "+name, func(t *testing.T) {
				k.unchanged(func() {
					got := k.raw(tt.method, tt.target, tt.body, tt.header)
					if got.status != tt.status || got.body.Error == "" || got.header.Get("Content-Type") != "application/json" || got.header.Get("Cache-Control") != "no-store" {
						t.Errorf("%d %v: %s; want %d and JSON with an error", got.status, got.header, got.raw, tt.status)
					}
				})
			})
		}
		want(t, k.raw("POST", "/token", form.Encode(), nil), 200, "")
	})
}

// TestA32: the token just rotated away is good for the whole window and no moment
// longer, from every process, and for its own client alone.
func TestA32_RetryWindow(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{time.Second, time.Minute, 2 * time.Minute} {
		t.Run("A32 "+window.String(), func(t *testing.T) {
			t.Parallel()
			testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
				k := newKit(t, db, func(c *config.Config) { c.RefreshRetryWindow = window })
				other := &kit{Server: k.Again(t), t: t, ctx: k.ctx}
				a, stranger := k.register(loopbackRedirect), k.register(loopbackRedirect)
				first := k.connect(a, nil).body.RefreshToken
				second := k.refresh(a, first, nil).body.RefreshToken
				k.Clock.Advance(window)
				for _, process := range []*kit{k, other} {
					got := process.refresh(a, first, nil)
					want(t, got, http.StatusOK, "")
					if got.body.RefreshToken != second || got.body.AccessToken == "" {
						t.Error("A32 the repeat has another successor, or no access token")
					}
				}
				k.denied(http.StatusBadRequest, "invalid_grant", func() answer { return k.refresh(stranger, first, nil) })
				k.Clock.Advance(time.Millisecond)
				want(t, other.refresh(a, first, nil), http.StatusBadRequest, "invalid_grant")
				for _, token := range []string{first, second} {
					k.denied(http.StatusBadRequest, "invalid_grant", func() answer { return k.refresh(a, token, nil) })
				}
				if list := k.grants(); len(list) != 1 || list[0].EndReason != grant.ReasonRefreshReuse {
					t.Errorf("A32 grants %+v, want one that ended by reuse", list)
				}
			})
		})
	}
}

// TestA34: a consent for the website of a metadata document is remembered for the
// same person, client, redirect, scopes and document, and for nothing else; one
// for a program of this computer never.
func TestA34_ConsentForDocuments(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		const home, elsewhere = "https://client.example/cb", "https://borealis.example/cb"
		a := s.publish("/client.json", nil, home, "https://login.client.example/cb", elsewhere, loopbackRedirect)
		read := values("scope", "files:read")
		s.connect(a, read)
		silent := func(changes url.Values) bool {
			t.Helper()
			page := s.open(s.person, s.authorizeURL(a, changes))
			return page.Leaves != nil && page.Leaves.Query().Get("code") != "" && page.Form("/consent") == nil
		}
		if !silent(read) {
			t.Error("A34 the same again is asked about")
		}
		for name, changes := range map[string]url.Values{
			"another redirect host of the site": {"redirect_uri": {"https://login.client.example/cb"}},
			"more scopes":                       {"scope": {"files:read files:write"}},
			"another MCP server":                {"resource": {testkit.OtherResource}, "scope": {"notes:read"}},
			"a redirect to another site":        {"redirect_uri": {elsewhere}},
			"a program of this computer":        {"redirect_uri": {loopbackRedirect}},
		} {
			s.sub("A34 asked for "+name, func(t *testing.T) {
				s.toConsent(s.person, s.authorizeURL(a, changed(values("scope", "files:read"), changes)))
			})
		}
		s.sub("A34 asked another person", func(*testing.T) {
			s.toConsent(s.addPerson("noor"), s.authorizeURL(a, read))
		})
		for _, redirect := range []string{loopbackRedirect, "http://127.0.0.1:5001/cb", elsewhere} {
			s.sub("A34 never remembered for "+redirect, func(*testing.T) {
				b := a
				b.redirect = redirect
				for range 3 {
					s.connect(b, read)
					s.toConsent(s.person, s.authorizeURL(b, read))
				}
			})
		}
		s.sub("A34 asked when the document changes", func(t *testing.T) {
			s.publish("/client.json", map[string]any{"client_name": "Quill 2"}, home)
			if !silent(read) {
				t.Error("the copy that is fresh is not used")
			}
			s.Clock.Advance(25 * time.Hour)
			s.person = s.Person() // whose session has ended
			s.toConsent(s.person, s.authorizeURL(a, read))
			s.connect(a, read)
			if !silent(read) {
				t.Error("the new document is not remembered")
			}
		})
	})
}

// TestA36: what clients ask on their own needs no cookie and is given none; that it
// comes in time is shown where each request gets its deadline, in package endpoint.
func TestA36_NoCookies(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		got := k.connect(a, nil)
		jar := k.person.Jar().Cookies(must(url.Parse(testkit.Issuer)))
		if len(jar) == 0 {
			t.Fatal("the person has no session")
		}
		session := http.Header{"Content-Type": {formType}}
		for _, c := range jar {
			session.Add("Cookie", c.String())
		}
		refresh := values("grant_type", "refresh_token", "refresh_token", got.body.RefreshToken, "client_id", a.id)
		for _, tt := range []struct{ method, target, body string }{
			{"GET", wellKnown, ""}, {"GET", "/.well-known/openid-configuration", ""}, {"GET", "/jwks.json", ""},
			{"POST", "/register", `{"redirect_uris":["` + appRedirect + `"],"token_endpoint_auth_method":"none"}`},
			{"POST", "/token", refresh.Encode()}, {"POST", "/token", "grant_type=x"}, {"POST", "/revoke", values("token", "x", "client_id", a.id).Encode()},
		} {
			k.sub("A36 "+tt.method+" "+tt.target, func(t *testing.T) {
				header := session.Clone()
				if tt.target == "/register" {
					header.Set("Content-Type", "application/json")
				}
				with := k.raw(tt.method, tt.target, tt.body, header)
				header.Del("Cookie")
				without := k.raw(tt.method, tt.target, tt.body, header)
				if with.status != without.status || without.status >= 500 {
					t.Errorf("%d with the person's cookies, %d without", with.status, without.status)
				}
				for _, got := range []answer{with, without} {
					if set := got.header.Values("Set-Cookie"); len(set) > 0 {
						t.Errorf("cookies %q", set)
					}
				}
			})
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestA37: all machines of the world share the client_id of a document; what ends
// one installation leaves the others (D10).
func TestA37_InstallationsOfOneDocument(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		a := s.publish("/client.json", nil, "http://localhost/callback")
		install := func(p *testkit.Person, port string) (app, string) {
			t.Helper()
			was := s.person
			defer func() { s.person = was }()
			at := a
			s.person, at.redirect = p, "http://localhost:"+port+"/callback"
			return at, s.connect(at, nil).body.RefreshToken
		}
		laptop, first := install(s.person, "50001")
		_, noors := install(s.addPerson("noor"), "50001")
		desktop, second := install(s.person, "50002")
		_, third := install(s.person, "50001") // the laptop signs in again
		if n := len(s.live()); n != 4 {
			t.Fatalf("A37 %d live grants, want one for each sign-in", n)
		}
		alive := func(tokens ...*string) {
			t.Helper()
			for _, token := range tokens {
				got := s.refresh(laptop, *token, nil)
				want(t, got, http.StatusOK, "")
				*token = got.body.RefreshToken
			}
		}
		alive(&first, &noors, &second, &third)
		s.sub("A37 revoked on one", func(t *testing.T) {
			want(t, s.post("/revoke", desktop, url.Values{"token": {second}}), http.StatusOK, "")
			alive(&first, &noors, &third)
		})
		s.sub("A37 an alarm on one", func(*testing.T) {
			stale := third
			alive(&third)
			s.Clock.Advance(2 * time.Minute)
			s.wantReuse(laptop, stale)
			alive(&first, &noors)
		})
		s.sub("A37 a code redeemed twice on one", func(t *testing.T) {
			code := s.code(desktop, nil)
			want(t, s.redeem(desktop, code, nil), http.StatusOK, "")
			want(t, s.redeem(desktop, code, nil), http.StatusBadRequest, "invalid_grant")
			alive(&first, &noors)
		})
	})
}

// TestA38: the people of a hosted client come from its few addresses. Budgets count
// what nobody used, and what one client or grant does wrong stops no other.
func TestA38_HostedClientsShareAnAddress(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		k := newKit(t, db, func(c *config.Config) { c.RegistrationPerHour = 3 })
		hosted := k.from("160.79.104.10:443")
		var tokens []string
		var apps []app
		k.sub("A38 a registration for each connection", func(t *testing.T) {
			for range 4 * 3 {
				hosted.t = t
				a := hosted.register("https://claude.ai/api/mcp/auth_callback")
				tokens, apps = append(tokens, hosted.connect(a, nil).body.RefreshToken), append(apps, a)
			}
		})
		k.sub("A38 whoever only registers stops at the budget, alone", func(t *testing.T) {
			flood := k.from("198.51.100.9:1")
			statuses := make([]int, 6)
			for i := range statuses {
				statuses[i] = flood.raw("POST", "/register", `{"redirect_uris":["`+appRedirect+`"],"client_name":"`+string(rune('A'+i))+`"}`,
					http.Header{"Content-Type": {"application/json"}}).status
			}
			if !slices.Equal(statuses, []int{201, 201, 201, 429, 429, 429}) {
				t.Errorf("statuses %v", statuses)
			}
			hosted.t = t
			hosted.register("https://claude.ai/api/mcp/auth_callback")
		})
		k.sub("A38 refreshes of many people from one address", func(t *testing.T) {
			hosted.t = t
			for range 10 {
				for i, a := range apps {
					got := hosted.refresh(a, tokens[i], nil)
					want(t, got, http.StatusOK, "")
					tokens[i] = got.body.RefreshToken
				}
			}
		})
		k.sub("A38 one client's wrong secrets stop no other at the address", func(t *testing.T) {
			hosted.t = t
			careless, careful := k.operatorApp(registration.AuthClientSecretPost, appRedirect), k.operatorApp(registration.AuthClientSecretPost, appRedirect)
			token := k.connect(careful, nil).body.RefreshToken
			careless.secret = "wrong"
			stopped := slices.ContainsFunc(make([]int, 60), func(int) bool {
				return hosted.refresh(careless, "x", nil).status == http.StatusTooManyRequests
			})
			if !stopped {
				t.Error("60 wrong secrets are not stopped")
			}
			want(t, hosted.refresh(careful, token, nil), http.StatusOK, "")
			want(t, hosted.refresh(apps[0], tokens[0], nil), http.StatusOK, "")
		})
	})
}
