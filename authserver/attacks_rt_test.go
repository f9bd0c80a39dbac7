package authserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// wantReuse checks that the request is answered as reuse: the grant ends, its
// consents go, one event is written, and nothing else changes.
func (k *kit) wantReuse(a app, token string) {
	k.t.Helper()
	events := len(named(k.t, k, "grant.reuse_detected"))
	k.changesOnly(func() { want(k.t, k.refresh(a, token, nil), 400, "invalid_grant") }, "grants", "consents", "audit_events")
	after := named(k.t, k, "grant.reuse_detected")
	if len(after) != events+1 {
		k.t.Fatalf("%d reuse events, want %d", len(after), events+1)
	}
	if g, err := k.DB.GetGrant(k.ctx, after[0].GrantID); err != nil || g.EndReason != grant.ReasonRefreshReuse || g.Salt != nil {
		k.t.Errorf("grant after reuse: %+v, %v", g, err)
	}
}

func TestRT01_ReuseAfterTheWindow(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a, other := k.register(loopbackRedirect), k.register(loopbackRedirect)
		bystander := k.connect(other, nil).body.RefreshToken
		first := k.connect(a, nil).body.RefreshToken
		second := k.refresh(a, first, nil).body.RefreshToken
		k.Clock.Advance(time.Minute)
		want(t, k.refresh(a, first, nil), 200, "") // D8: within 60 s of its first rotation
		k.Clock.Advance(time.Millisecond)
		k.wantReuse(a, first)
		for _, token := range []string{first, second} {
			k.denied(400, "invalid_grant", func() answer { return k.refresh(a, token, nil) })
		}
		want(t, k.refresh(other, bystander, nil), 200, "")
	})
}

func TestRT02_TheTokenBeforeThePrevious(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		first := k.connect(a, nil).body.RefreshToken
		second := k.refresh(a, first, nil).body.RefreshToken
		for range 3 {
			k.changesOnly(func() { // a repeat proves nothing was used yet, and writes nothing
				got := k.refresh(a, first, nil)
				want(t, got, 200, "")
				if got.body.RefreshToken != second {
					t.Error("another successor")
				}
			})
		}
		third := k.refresh(a, second, nil).body.RefreshToken
		k.wantReuse(a, first) // at once, inside the window
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, third, nil) })
	})
}

func TestRT06_TokenOfAnotherClient(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		public, confidential := k.register(loopbackRedirect), k.operatorApp(registration.AuthClientSecretPost, appRedirect)
		for _, pair := range [][2]app{{public, confidential}, {confidential, public},
			{public, k.register(loopbackRedirect)}, {confidential, k.operatorApp(registration.AuthClientSecretBasic, appRedirect)}} {
			mine, theirs := pair[0], pair[1]
			first := k.connect(mine, nil).body.RefreshToken
			k.denied(400, "invalid_grant", func() answer { return k.refresh(theirs, first, nil) })
			second := k.refresh(mine, first, nil).body.RefreshToken
			k.Clock.Advance(2 * time.Minute)
			// not even a rotated token ends another client's grant
			k.denied(400, "invalid_grant", func() answer { return k.refresh(theirs, first, nil) })
			want(t, k.refresh(mine, second, nil), 200, "")
		}
	})
}

func TestRT07_A28_Scope(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		token := k.connect(a, url.Values{"scope": {"files:read files:write"}}).body.RefreshToken
		for _, scope := range []string{"files:delete", "files:read files:delete", "admin", "notes:read", "unknown"} {
			k.denied(400, "invalid_scope", func() answer { return k.refresh(a, token, url.Values{"scope": {scope}}) })
		}
		for _, tt := range []struct{ name, asked, granted string }{
			{"A28 subset narrows this token only", "files:write", "files:write"},
			{"A28 order", "files:write files:read", "files:write files:read"},
			{"A28 offline_access never granted is ignored", "files:read files:write offline_access", "files:read files:write"},
			{"A28 offline_access alone", "offline_access", "files:read files:write"},
			{"empty", "", "files:read files:write"},
		} {
			got := k.refresh(a, token, url.Values{"scope": {tt.asked}})
			want(t, got, 200, "")
			if got.body.Scope != tt.granted || claims(t, got.body.AccessToken)["scope"] != tt.granted {
				t.Errorf("%s: scope %q, want %q", tt.name, got.body.Scope, tt.granted)
			}
			token = got.body.RefreshToken
		}
	})
}

func TestRT09_A26_Resource(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		token := k.connect(a, nil).body.RefreshToken
		for _, resource := range []string{testkit.OtherResource, "https://unknown.example", "not a url", "https://mcp.example.com/files#x", ""} {
			k.denied(400, "invalid_target", func() answer { return k.refresh(a, token, url.Values{"resource": {resource}}) })
		}
		k.denied(400, "invalid_target", func() answer {
			return k.refresh(a, token, url.Values{"resource": {testkit.Resource, testkit.OtherResource}})
		})
		got := k.refresh(a, token, url.Values{"resource": {"HTTPS://MCP.example.com:443/files/"}})
		want(t, got, 200, "")
		if aud := claims(t, got.body.AccessToken)["aud"]; aud != testkit.Resource {
			t.Errorf("aud = %v", aud)
		}
	})
}

// TestRT10_Idle: the idle limit moves with use; the last moment counts.
func TestRT10_Idle(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		token := k.connect(a, nil).body.RefreshToken
		for range 2 {
			k.Clock.Advance(30*24*time.Hour - time.Millisecond)
			got := k.refresh(a, token, nil)
			want(t, got, 200, "")
			token = got.body.RefreshToken
		}
		k.Clock.Advance(30 * 24 * time.Hour)
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, token, nil) })
		if live := k.live(); len(live) != 0 {
			t.Errorf("idle grant is live: %+v", live)
		}
	})
}

// TestRT10_AbsoluteLimit rotates a thousand times; not one of them moves the end.
func TestRT10_AbsoluteLimit(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for name, tt := range map[string]struct {
			a    app
			life time.Duration
		}{
			"D8 unverified on loopback: 90 days": {k.register(loopbackRedirect), 90 * 24 * time.Hour},
			"D8 unverified on a website: 1 year": {k.register(appRedirect), 365 * 24 * time.Hour},
			"D8 operator's on loopback: 1 year":  {k.operatorApp(registration.AuthNone, loopbackRedirect), 365 * 24 * time.Hour},
		} {
			rotations, token := 20, k.connect(tt.a, nil).body.RefreshToken
			if name == "D8 unverified on loopback: 90 days" {
				rotations = 1000
			}
			g := k.live()[0]
			end := g.CreatedAt.Add(tt.life)
			if !g.ExpiresAt.Equal(end) {
				t.Errorf("%s: expires %v, want %v", name, g.ExpiresAt, end)
			}
			step := end.Sub(k.Clock.Now()) / time.Duration(rotations+1)
			for range rotations {
				k.Clock.Advance(step)
				got := k.refresh(tt.a, token, nil)
				want(t, got, 200, "")
				token = got.body.RefreshToken
			}
			after, err := k.DB.GetGrant(k.ctx, g.ID)
			if err != nil || !after.ExpiresAt.Equal(end) || after.RefreshExpiresAt.After(end) || after.Generation != rotations+1 {
				t.Errorf("%s: after %d rotations: %+v, %v", name, rotations, after, err)
			}
			k.Clock.Advance(end.Sub(k.Clock.Now()))
			k.denied(400, "invalid_grant", func() answer { return k.refresh(tt.a, token, nil) })
		}
	})
}

func TestRT11_WhatEndsAGrant(t *testing.T) {
	for name, end := range map[string]func(k *kit) error{
		"RT-11 account disabled": func(k *kit) error { _, err := k.App.Accounts.Disable(k.ctx, testkit.Email, true); return err },
		"RT-11 account removed":  func(k *kit) error { _, err := k.App.Accounts.Remove(k.ctx, testkit.Email, true); return err },
		"RT-11 password changed": func(k *kit) error {
			_, err := k.App.Accounts.SetPassword(k.ctx, testkit.Email, oauth.Secret("another battery of horses"))
			return err
		},
		"RT-11 consent revoked": func(k *kit) error { k.disconnectOne(); return nil },
		"RT-11 operator": func(k *kit) error {
			_, err := (&grant.Admin{Store: k.DB, Now: k.Clock.Now}).End(k.ctx, k.theGrant().ID)
			return err
		},
		"RT-11 resource removed": func(k *kit) error { _, err := k.App.Resources.Remove(k.ctx, testkit.Resource); return err },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, k *kit) {
				a := k.register(loopbackRedirect)
				first := k.connect(a, nil).body.RefreshToken
				second := k.refresh(a, first, nil).body.RefreshToken
				if err := end(k); err != nil {
					t.Fatal(err)
				}
				// at once, inside the retry window too, and without an alarm
				for _, token := range []string{second, first} {
					k.denied(400, "invalid_grant", func() answer { return k.refresh(a, token, nil) })
				}
				if g := k.theGrant(); g.EndedAt.IsZero() || g.Salt != nil {
					t.Errorf("the grant did not end: %+v", g)
				}
			})
		})
	}
}

// An account that was switched on again does not get its old connections back.
func TestRT11_EnabledAgain(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		token := k.connect(a, nil).body.RefreshToken
		if _, err := k.App.Accounts.Disable(k.ctx, testkit.Email, true); err != nil {
			t.Fatal(err)
		}
		if _, err := k.App.Accounts.Enable(k.ctx, testkit.Email); err != nil {
			t.Fatal(err)
		}
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, token, nil) })
	})
}

// RT-12: introspection is of part 3; the MCP server's half runs against the real
// resource server in package resourceserver. Here: no endpoint of ours takes a
// refresh token for anything else than to refresh or revoke.
func TestRT12_RefreshTokenElsewhere(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		token := k.connect(a, nil).body.RefreshToken
		k.denied(400, "invalid_grant", func() answer { return k.redeem(a, token, nil) })
		for _, path := range []string{"/account", "/introspect", "/userinfo"} {
			k.changesOnly(func() {
				req := httptest.NewRequest(http.MethodGet, k.URL(path), nil)
				req.RequestURI = ""
				req.Header.Set("Authorization", "Bearer "+token)
				if got, err := k.send(req.WithContext(k.ctx)); err != nil || got.status == 200 {
					t.Errorf("%s with a refresh token: %d, %v", path, got.status, err)
				}
			})
		}
		want(t, k.refresh(a, token, nil), 200, "")
	})
}

// RT-04's other half: with window 0 the previous token is refused without harm
// for 2 s, and ends the grant afterwards (D8).
func TestRT04_D8_WindowZero(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		k := newKit(t, db, func(c *config.Config) { c.RefreshRetryWindow = 0 })
		a := k.register(loopbackRedirect)
		first := k.connect(a, nil).body.RefreshToken
		second := k.refresh(a, first, nil).body.RefreshToken
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, first, nil) })
		k.Clock.Advance(2 * time.Second)
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, first, nil) })
		third := k.refresh(a, second, nil)
		want(t, third, 200, "")
		k.Clock.Advance(2*time.Second + time.Millisecond)
		k.wantReuse(a, second)
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, third.body.RefreshToken, nil) })
	})
}
