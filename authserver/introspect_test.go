package authserver_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestIR04: a token never stands in a URL, and questions come by POST alone, from
// no browser.
func TestIR04_PostOnly(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		server, a := k.resourceApp(testkit.Resource), k.register(appRedirect)
		token := k.connect(a, nil).body.AccessToken
		send := func(method, query string) answer {
			req, err := http.NewRequestWithContext(k.ctx, method, k.URL("/introspect"+query), strings.NewReader("token="+token))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", "https://app.example.net")
			req.Header.Set("Access-Control-Request-Method", "POST")
			req.SetBasicAuth(server.id, server.secret)
			got, err := k.send(req)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			k.sub("IR-04 "+method, func(t *testing.T) {
				got := send(method, "?token="+token)
				if want(t, got, 405, "invalid_request"); got.header.Get("Allow") != "POST" {
					t.Errorf("Allow = %q", got.header.Get("Allow"))
				}
				withoutCORS(t, got)
			})
		}
		k.sub("IR-04 query token", func(t *testing.T) {
			got := send(http.MethodPost, "?token="+token)
			want(t, got, 400, "invalid_request")
			withoutCORS(t, got)
		})
		k.sub("A7 no CORS where it is answered", func(t *testing.T) {
			got := send(http.MethodPost, "")
			wantActive(t, got)
			withoutCORS(t, got)
		})
		k.sub("TK-04 twice", func(*testing.T) {
			k.denied(400, "invalid_request", func() answer {
				return k.post("/introspect", server, url.Values{"token": {token, token}})
			})
			k.denied(400, "invalid_request", func() answer {
				return k.post("/introspect", server, url.Values{"token": {token}, "token_type_hint": {"access_token", "access_token"}})
			})
		})
		k.sub("TK-03 JSON", func(*testing.T) {
			req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.URL("/introspect"), strings.NewReader(`{"token":"`+token+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.SetBasicAuth(server.id, server.secret)
			got, err := k.send(req)
			if err != nil || got.status != 400 && got.status != 415 {
				t.Errorf("%d %s (%v)", got.status, got.raw, err)
			}
		})
		if strings.Contains(k.Logs.String(), token) || strings.Contains(k.Logs.String(), token[:40]) {
			t.Error("IR-04: the token is in the log")
		}
	})
}

func withoutCORS(t *testing.T, got answer) {
	t.Helper()
	for name := range got.header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: %s", name, got.header.Get(name))
		}
	}
}

// TestIR07: what cannot be read is 503 and never "not active", which would end what
// lives (M8).
func TestIR07_IntrospectStorageFailure(t *testing.T) {
	eachRaw(t, func(t *testing.T, k *kit, raw *sql.DB) {
		server, a := k.resourceApp(testkit.Resource), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		got := k.connect(a, nil)
		k.sub("IR-07 the grants alone cannot be read", func(t *testing.T) {
			k.exec(raw, `ALTER TABLE grants RENAME TO lost`)
			defer k.exec(raw, `ALTER TABLE lost RENAME TO grants`)
			for name, answer := range map[string]answer{"the MCP server": k.introspect(server, got.body.AccessToken),
				"the client": k.introspect(a, got.body.AccessToken), "of a refresh token": k.introspect(a, got.body.RefreshToken)} {
				if answer.status < 500 || answer.body.Error == "" || strings.Contains(answer.raw, "active") {
					t.Errorf("%s: %d %s", name, answer.status, answer.raw)
				}
			}
		})
		wantActive(t, k.introspect(server, got.body.AccessToken))
		if err := k.DB.Close(); err != nil {
			t.Fatal(err)
		}
		for _, who := range []app{server, a} {
			got := k.introspect(who, got.body.AccessToken)
			if want(t, got, 503, "temporarily_unavailable"); got.header.Get("Retry-After") == "" {
				t.Error("IR-07: no Retry-After")
			}
		}
	})
}

// TestIR08: a hint is a hint.
func TestIR08_IntrospectHint(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		server, a := k.resourceApp(testkit.Resource), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		got := k.connect(a, nil)
		for _, hint := range []string{"access_token", "refresh_token", "nonsense", ""} {
			k.sub("IR-08 "+hint, func(t *testing.T) {
				form := func(token string) url.Values { return values("token", token, "token_type_hint", hint) }
				wantActive(t, k.post("/introspect", server, form(got.body.AccessToken)))
				wantActive(t, k.post("/introspect", a, form(got.body.AccessToken)))
				wantActive(t, k.post("/introspect", a, form(got.body.RefreshToken)))
			})
		}
	})
}

// TestIR09: whatever ends what a token was issued on, the token is inactive at once,
// at each process on the database.
func TestIR09_IntrospectAfterTheEnd(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		server := k.resourceApp(testkit.Resource)
		second := &kit{Server: k.Again(t), t: t, ctx: k.ctx}
		clients := k.App.Clients
		for name, end := range map[string]func(a app, got answer) error{
			"IR-09 the refresh token is revoked": func(a app, got answer) error {
				want(t, k.post("/revoke", a, values("token", got.body.RefreshToken)), 200, "")
				return nil
			},
			"IR-09 the access token is revoked": func(a app, got answer) error {
				want(t, k.post("/revoke", a, values("token", got.body.AccessToken)), 200, "")
				return nil
			},
			"IR-09 the operator ends the grant": func(_ app, got answer) error {
				_, err := (&grant.Admin{Store: k.DB, Now: k.Clock.Now}).End(k.ctx, k.grantOf(got).ID)
				return err
			},
			"RT-01 a rotated token comes back": func(a app, got answer) error {
				want(t, k.refresh(a, got.body.RefreshToken, nil), 200, "")
				k.Clock.Advance(2 * time.Minute)
				want(t, k.refresh(a, got.body.RefreshToken, nil), 400, "invalid_grant")
				return nil
			},
			"IR-09 the client is disabled": func(a app, _ answer) error { _, err := clients.Disable(k.ctx, a.id); return err },
			"IR-09 the client is blocked":  func(a app, _ answer) error { _, err := clients.Block(k.ctx, a.id); return err },
			"IR-09 the client is removed":  func(a app, _ answer) error { _, err := clients.Remove(k.ctx, a.id); return err },
		} {
			k.sub(name, func(t *testing.T) {
				a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
				got, kept := k.connect(a, nil), k.connect(k.register(appRedirect), nil)
				wantActive(t, k.introspect(server, got.body.AccessToken))
				if err := end(a, got); err != nil {
					t.Fatal(err)
				}
				wantInactive(t, k.introspect(server, got.body.AccessToken))
				wantInactive(t, second.introspect(server, got.body.AccessToken))
				wantActive(t, k.introspect(server, kept.body.AccessToken))
			})
		}
		k.sub("IR-09 the account is disabled", func(t *testing.T) {
			got := k.connect(k.register(appRedirect), nil)
			if _, err := k.App.Accounts.Disable(k.ctx, testkit.Email, false); err != nil {
				t.Fatal(err)
			}
			wantInactive(t, k.introspect(server, got.body.AccessToken))
			if _, err := k.App.Accounts.Enable(k.ctx, testkit.Email); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// A resource that is removed takes its credential along: the same URL registered
// again has none.
func TestIR09_ResourceRemoved(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		server, a := k.resourceApp(testkit.OtherResource), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		token := k.connectAt(a, testkit.OtherResource).body.AccessToken
		wantActive(t, k.introspect(server, token))
		if _, err := k.App.Resources.Remove(k.ctx, testkit.OtherResource); err != nil {
			t.Fatal(err)
		}
		wantInactive(t, k.introspect(a, token))
		want(t, k.introspect(server, token), 401, "invalid_client")
		if _, err := k.App.Resources.Add(k.ctx, resource.Resource{Identifier: testkit.OtherResource}); err != nil {
			t.Fatal(err)
		}
		want(t, k.introspect(server, token), 401, "invalid_client")
		wantInactive(t, k.introspect(a, token))
	})
}

// TestIR10: who asks too much waits, alone: by the clock, and nothing is remembered
// of 10^4 tokens that never were.
func TestIR10_Flood(t *testing.T) {
	t.Parallel()
	k := newKit(t, testkit.OpenSQLite(t), func(c *config.Config) { c.IntrospectionsPerSecond, c.LogLevel = 50, "error" })
	flooded, other := k.resourceApp(testkit.Resource), k.resourceApp(testkit.OtherResource)
	a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
	token := k.connect(a, nil).body.AccessToken
	answers, last := map[int]int{}, answer{}
	for i := range 10_000 {
		last = k.introspect(flooded, fmt.Sprintf("random-%d", i))
		answers[last.status]++
	}
	if answers[200] != 500 || answers[429] != 9_500 {
		t.Errorf("IR-10: %v, want ten seconds' worth of answers and 429 for the rest", answers)
	}
	want(t, last, 429, "temporarily_unavailable")
	wait, err := strconv.Atoi(last.header.Get("Retry-After"))
	if err != nil || wait < 1 || wait > 10 {
		t.Errorf("IR-10: Retry-After %q", last.header.Get("Retry-After"))
	}
	wantInactive(t, k.introspect(other, token))
	wantActive(t, k.introspect(a, token))
	k.Clock.Advance(time.Duration(wait) * time.Second)
	wantActive(t, k.introspect(flooded, token))
}

// A client learns of its refresh token that it is the newest of a grant that
// stands. Asking about an older one is no reuse. Its audience is the authorization
// server, so that no MCP server takes it for an access token (RT-12).
func TestRFC7662_RefreshToken(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		first := k.connect(a, nil)
		m := wantActive(t, k.introspect(a, first.body.RefreshToken))
		g := k.grantOf(first)
		for name, value := range map[string]any{"client_id": a.id, "sub": g.Subject, "aud": testkit.Issuer, "iss": testkit.Issuer,
			"scope": "files:read files:write", "exp": float64(g.RefreshExpiresAt.Unix()), "token_type": nil, "jti": nil, "iat": nil} {
			if m[name] != value {
				t.Errorf("%s = %v, want %v", name, m[name], value)
			}
		}
		second := k.refresh(a, first.body.RefreshToken, nil)
		k.unchanged(func() {
			wantInactive(t, k.introspect(a, first.body.RefreshToken))
			k.Clock.Advance(2 * time.Minute)
			wantInactive(t, k.introspect(a, first.body.RefreshToken))
			wantActive(t, k.introspect(a, second.body.RefreshToken))
			wantActive(t, k.introspect(a, k.minted(k.grantOf(first), 3))) // D30: a commit that was lost
		})
		want(t, k.refresh(a, second.body.RefreshToken, nil), 200, "")
		k.sub("RT-12 as Bearer at an MCP server that asks with the client's credential", func(t *testing.T) {
			s := k.askingServer(a, resourceserver.Introspection{})
			if got := call(t, s, first.body.AccessToken, ""); got.Code != 200 {
				t.Fatalf("the access token: %d %s", got.Code, got.Body)
			}
			want401(t, call(t, s, k.minted(k.grantOf(first), 3), ""))
		})
		k.sub("RT-10 unused", func(t *testing.T) {
			k.Clock.Advance(31 * 24 * time.Hour)
			wantInactive(t, k.introspect(a, k.minted(k.grantOf(first), 3)))
		})
	})
}

// A machine's token stands on its client's row alone (D23).
func TestD23_IntrospectMachine(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		server := k.resourceApp(testkit.Resource)
		a := k.machine(registration.AuthClientSecretBasic, "files:read", testkit.Resource)
		got := k.credentials(a, nil)
		want(t, got, 200, "")
		m := wantActive(t, k.introspect(server, got.body.AccessToken))
		if m["sub"] != a.id || m["client_id"] != a.id || m["scope"] != "files:read" {
			t.Errorf("answer %v", m)
		}
		wantActive(t, k.introspect(a, got.body.AccessToken))
		resources := []string{testkit.OtherResource}
		if _, err := k.App.Clients.Update(k.ctx, a.id, registration.UpdateOptions{Resources: &resources}); err != nil {
			t.Fatal(err)
		}
		wantInactive(t, k.introspect(server, got.body.AccessToken))
		wantInactive(t, k.introspect(a, got.body.AccessToken))
		resources = []string{testkit.Resource}
		if _, err := k.App.Clients.Update(k.ctx, a.id, registration.UpdateOptions{Resources: &resources}); err != nil {
			t.Fatal(err)
		}
		wantActive(t, k.introspect(server, got.body.AccessToken))
		if _, err := k.App.Clients.Disable(k.ctx, a.id); err != nil {
			t.Fatal(err)
		}
		wantInactive(t, k.introspect(server, got.body.AccessToken))
	})
}

// TestCA07: a rotated secret of an MCP server is good beside the new one for as long
// as the operator said, at each process; every change is an event.
func TestCA07_ResourceSecret(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		first := k.resourceApp(testkit.Resource)
		token := k.connect(k.register(appRedirect), nil).body.AccessToken
		processes := []*kit{k, {Server: k.Again(t), t: t, ctx: k.ctx}}
		rotate := func(o oauth.Rotation) app {
			r, secret, err := k.App.Resources.RotateSecret(k.ctx, testkit.Resource, o)
			if err != nil || r.Credential.ID != first.id {
				t.Fatal(r.Credential.ID, err)
			}
			return guessing(first, secret.Reveal())
		}
		check := func(good bool, who ...app) {
			t.Helper()
			for _, a := range who {
				for _, p := range processes {
					got := p.introspect(a, token)
					if good {
						wantActive(t, got)
					} else {
						want(t, got, 401, "invalid_client")
					}
				}
			}
		}
		second := rotate(oauth.Rotation{OldUntil: k.Clock.Now().Add(time.Minute)})
		check(true, first, second)
		if _, _, err := k.App.Resources.RotateSecret(k.ctx, testkit.Resource, oauth.Rotation{}); err == nil {
			t.Error("a further rotation ended a secret that was still good")
		}
		k.Clock.Advance(time.Minute)
		check(false, first)
		third := rotate(oauth.Rotation{OldUntil: k.Clock.Now().Add(time.Hour)})
		check(true, second, third)
		if _, err := k.App.Resources.EndOldSecret(k.ctx, testkit.Resource); err != nil {
			t.Fatal(err)
		}
		check(false, first, second)
		fourth := rotate(oauth.Rotation{})
		check(false, third)
		check(true, fourth)
		if _, err := k.App.Resources.Update(k.ctx, testkit.Resource, func(r *resource.Resource) error {
			r.Name, r.Credential = "Archive", resource.Credential{}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		check(true, fourth)
		if _, err := k.App.Resources.RemoveCredential(k.ctx, testkit.Resource); err != nil {
			t.Fatal(err)
		}
		check(false, fourth)
		for name, n := range map[string]int{"resource.secret_added": 1, "resource.secret_rotated": 3, "resource.old_secret_ended": 1, "resource.secret_removed": 1} {
			events := named(t, k, name)
			if len(events) != n {
				t.Errorf("%d events %s, want %d", len(events), name, n)
			}
			for _, e := range events {
				if e.Resource != testkit.Resource || e.Actor != "operator" {
					t.Errorf("%s: %+v", name, e)
				}
			}
		}
		everything := k.Logs.String() + testkit.Dump(k.ctx, t, k.DB)
		for _, a := range []app{first, second, third, fourth} {
			if strings.Contains(everything, a.secret) {
				t.Error("ST-01: a secret is stored or logged")
			}
		}
	})
}

// TestIntrospectionStatements: one read beyond who asks, and none for what is no
// token of ours.
func TestIntrospectionStatements(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, ...testkit.DatabaseOption) *sqlstore.Store{
		"sqlite": testkit.OpenSQLite, "postgres": testkit.OpenPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			k := newKit(t, open(t, func(o *sqlstore.Options) {
				o.OnStatement = func(context.Context, string) { n.Add(1) }
			}))
			server, a := k.resourceApp(testkit.Resource), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
			machine := k.machine(registration.AuthClientSecretBasic, "files:read", testkit.Resource)
			got, machines := k.connect(a, nil), k.credentials(machine, nil)
			for name, tt := range map[string]struct {
				who   app
				token string
				most  int64
			}{
				"an access token":                  {server, got.body.AccessToken, 2},
				"a client's":                       {a, got.body.AccessToken, 2},
				"a machine's":                      {server, machines.body.AccessToken, 2},
				"a machine's own":                  {machine, machines.body.AccessToken, 2},
				"a refresh token":                  {a, got.body.RefreshToken, 2},
				"a refresh token to an MCP server": {server, got.body.RefreshToken, 1},
				"IR-10 a guess":                    {server, "nothing", 1},
				"IR-10 a forgery":                  {server, flip(got.body.AccessToken), 1},
				"IR-10 of another audience":        {server, k.forge(map[string]any{"aud": testkit.OtherResource}), 1},
			} {
				n.Store(0)
				want(t, k.introspect(tt.who, tt.token), 200, "")
				if got := n.Load(); got > tt.most {
					t.Errorf("%s took %d statements, want at most %d", name, got, tt.most)
				}
			}
		})
	}
}

// askingServer is an MCP server that asks this issuer about every token.
func (k *kit) askingServer(who app, i resourceserver.Introspection) http.Handler {
	k.t.Helper()
	i.ClientID, i.ClientSecret, i.AlsoJWT = who.id, resourceserver.Secret(who.secret), true
	s, err := resourceserver.New(resourceserver.Options{Resource: testkit.Resource, HTTPClient: k.Client(), Now: k.Clock.Now,
		Scopes: []string{"files:read"}, Issuers: []resourceserver.Issuer{{Identifier: k.Config.Issuer, Introspection: &i}}})
	if err != nil {
		k.t.Fatal(err)
	}
	return s.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
}

// TestJW23: the middleware asks one process, the grant ends at another: the call is
// refused within MaxAge, where a JWT alone would have lived on for minutes.
func TestJW23_EndedWithinMaxAge(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		const maxAge = 5 * time.Second
		mcp := k.askingServer(k.resourceApp(testkit.Resource), resourceserver.Introspection{MaxAge: maxAge})
		offline := k.mcpServer(testkit.Resource, nil)
		second := &kit{Server: k.Again(t), t: t, ctx: k.ctx}
		token := k.connect(k.register(appRedirect), nil)
		if got := call(t, mcp, token.body.AccessToken, ""); got.Code != 200 {
			t.Fatalf("before: %d %s", got.Code, got.Body)
		}
		if _, err := (&grant.Admin{Store: second.DB, Now: k.Clock.Now}).End(k.ctx, k.grantOf(token).ID); err != nil {
			t.Fatal(err)
		}
		k.Clock.Advance(maxAge)
		want401(t, call(t, mcp, token.body.AccessToken, ""))
		if got := call(t, offline, token.body.AccessToken, ""); got.Code != 200 {
			t.Errorf("a server that does not ask: %d, so the case shows nothing", got.Code)
		}
		again := k.connect(k.register(appRedirect), nil)
		if got := call(t, mcp, again.body.AccessToken, ""); got.Code != 200 {
			t.Errorf("a new connection: %d %s", got.Code, got.Body)
		}
		k.sub("CS-14 the person disconnects", func(t *testing.T) {
			k.disconnectOne()
			k.Clock.Advance(maxAge)
			want401(t, call(t, mcp, again.body.AccessToken, ""))
		})
		k.sub("M8 the credential is taken away", func(t *testing.T) {
			third := k.connect(k.register(appRedirect), nil)
			if _, err := k.App.Resources.RemoveCredential(k.ctx, testkit.Resource); err != nil {
				t.Fatal(err)
			}
			if got := call(t, mcp, third.body.AccessToken, ""); got.Code != http.StatusServiceUnavailable {
				t.Errorf("%d %s, want 503 and never 401", got.Code, got.Body)
			}
		})
	})
}
