package authserver_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestCO01_SequentialReuse(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a, other := k.register(loopbackRedirect), k.register(appRedirect)
		bystander := k.connect(other, nil)
		code := k.code(a, nil)
		first := k.redeem(a, code, nil)
		want(t, first, 200, "")
		// the refresh token was rotated meanwhile: the whole grant ends all the same
		second := k.refresh(a, first.body.RefreshToken, nil)
		want(t, second, 200, "")

		k.changesOnly(func() { want(t, k.redeem(a, code, nil), 400, "invalid_grant") }, "grants", "consents", "audit_events")
		for _, token := range []string{first.body.RefreshToken, second.body.RefreshToken} {
			k.denied(400, "invalid_grant", func() answer { return k.refresh(a, token, nil) })
		}
		k.denied(400, "invalid_grant", func() answer { return k.redeem(a, code, nil) })

		events := named(t, k, "grant.reuse_detected")
		if len(events) != 1 || events[0].ClientID != a.id || events[0].Detail["reason"] != grant.ReasonCodeReuse {
			t.Errorf("reuse events = %+v", events)
		}
		live := k.live()
		if len(live) != 1 || live[0].ClientID != other.id {
			t.Errorf("live grants: %+v, want only the bystander's", live)
		}
		for _, g := range k.grants() {
			if g.ClientID == a.id && (g.EndReason != grant.ReasonCodeReuse || g.Salt != nil) {
				t.Errorf("ended grant: reason %q, salt kept %v", g.EndReason, g.Salt != nil)
			}
		}
		want(t, k.refresh(other, bystander.body.RefreshToken, nil), 200, "")
	})
}

// D30: a second request with a used code that is not valid changes nothing.
func TestCO01_InvalidReuseEndsNothing(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a, b := k.register(loopbackRedirect), k.register(loopbackRedirect)
		code := k.code(a, nil)
		first := k.redeem(a, code, nil)
		want(t, first, 200, "")
		wrong := strings.Repeat("w", 43)
		k.denied(400, "invalid_grant", func() answer { return k.redeem(a, code, url.Values{"code_verifier": {wrong}}) })
		k.denied(400, "invalid_grant", func() answer { return k.redeem(b, code, nil) })
		k.denied(400, "invalid_grant", func() answer {
			return k.redeem(a, code, url.Values{"redirect_uri": {"http://127.0.0.1/other"}})
		})
		k.Clock.Advance(61 * time.Second) // expired is checked before used
		k.denied(400, "invalid_grant", func() answer { return k.redeem(a, code, nil) })
		want(t, k.refresh(a, first.body.RefreshToken, nil), 200, "")
	})
}

func TestCO03_CodeExpires(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		late, inTime := k.code(a, nil), k.code(a, nil)
		expires := k.grants()[0].CodeExpiresAt
		k.Clock.Advance(expires.Sub(k.Clock.Now()) - time.Millisecond)
		want(t, k.redeem(a, inTime, nil), 200, "")
		k.Clock.Advance(time.Millisecond)
		k.denied(400, "invalid_grant", func() answer { return k.redeem(a, late, nil) })
		k.Clock.Advance(time.Second) // 61 s
		k.denied(400, "invalid_grant", func() answer { return k.redeem(a, late, nil) })
	})
}

func TestD17_CodeLivesAMinute(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		k.code(k.register(loopbackRedirect), nil)
		if g := k.theGrant(); g.CodeExpiresAt.Sub(g.CreatedAt) != time.Minute {
			t.Errorf("a code lives %v, want 60 s", g.CodeExpiresAt.Sub(g.CreatedAt))
		}
	})
}

// The code is bound to client, redirect_uri, PKCE and resource (D17); nothing
// that misses one of them burns it.
func TestCO04_D17_BoundAndUnburned(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		public, confidential := k.register(loopbackRedirect), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		for _, pair := range [][2]app{{public, confidential}, {confidential, public}, {public, k.register(loopbackRedirect)}} {
			mine, theirs := pair[0], pair[1]
			code := k.code(mine, nil)
			k.denied(400, "invalid_grant", func() answer { return k.redeem(theirs, code, url.Values{"redirect_uri": {mine.redirect}}) })
			k.denied(400, "invalid_grant", func() answer { return k.redeem(mine, code, url.Values{"redirect_uri": {"https://else.example/cb"}}) })
			k.denied(400, "invalid_grant", func() answer {
				return k.redeem(mine, code, url.Values{"code_verifier": {strings.Repeat("x", 43)}})
			})
			k.denied(400, "invalid_target", func() answer { return k.redeem(mine, code, url.Values{"resource": {testkit.OtherResource}}) })
			// OAuth 2.1 §4.1.3: redirect_uri may be left out
			want(t, k.redeem(mine, code, url.Values{"redirect_uri": nil}), 200, "")
		}
	})
}

func TestCO06_FirstAttemptFailsClientAuthentication(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, method := range []string{registration.AuthClientSecretBasic, registration.AuthClientSecretPost} {
			a := k.operatorApp(method, appRedirect)
			code := k.code(a, nil)
			for _, probe := range []app{
				{id: a.id, method: registration.AuthClientSecretBasic, redirect: a.redirect},                   // x/oauth2: Basic without a secret
				{id: a.id, method: registration.AuthNone, redirect: a.redirect},                                // no credential
				{id: a.id, method: method, secret: "wrong", redirect: a.redirect},                              // wrong secret
				{id: "nobody", method: method, secret: a.secret, redirect: a.redirect},                         // unknown client
				{id: "https://app.example/x", method: registration.AuthNone, secret: "", redirect: a.redirect}, // a URL
			} {
				k.denied(401, "invalid_client", func() answer { return k.redeem(probe, code, nil) })
			}
			want(t, k.redeem(a, code, nil), 200, "")
		}
		// the go-sdk probes a public client with Basic and an empty secret (A17)
		public := k.register(loopbackRedirect)
		probe := public
		probe.method = registration.AuthClientSecretBasic
		want(t, k.redeem(probe, k.code(public, nil), nil), 200, "")
	})
}

func TestCO07_WhatEndsACode(t *testing.T) {
	for name, end := range map[string]func(k *kit) error{
		"account disabled": func(k *kit) error { _, err := k.App.Accounts.Disable(k.ctx, testkit.Email, true); return err },
		"account removed":  func(k *kit) error { _, err := k.App.Accounts.Remove(k.ctx, testkit.Email, true); return err },
		"password reset": func(k *kit) error {
			_, err := k.App.Accounts.SetPassword(k.ctx, testkit.Email, oauth.Secret("another battery of horses"))
			return err
		},
		"consent revoked": func(k *kit) error { k.disconnectOne(); return nil },
		"resource removed": func(k *kit) error {
			_, err := k.App.Resources.Remove(k.ctx, testkit.Resource)
			return err
		},
	} {
		t.Run("CO-07 D17 "+name, func(t *testing.T) {
			each(t, func(t *testing.T, k *kit) {
				a := k.register(loopbackRedirect)
				k.connect(a, nil) // so that connected apps lists it
				code := k.code(a, nil)
				if err := end(k); err != nil {
					t.Fatal(err)
				}
				k.denied(400, "invalid_grant", func() answer { return k.redeem(a, code, nil) })
				if live := k.live(); len(live) != 0 {
					t.Errorf("%d live grants", len(live))
				}
			})
		})
	}
}

// disconnectOne presses Disconnect for the app that the account page lists first.
func (k *kit) disconnectOne() {
	k.t.Helper()
	home, err := k.person.Open(k.ctx, k.URL("/account"))
	if err != nil {
		k.t.Fatal(err)
	}
	ask, err := k.person.Submit(k.ctx, home, home.Form("/disconnect"), nil)
	if err != nil {
		k.t.Fatal(err)
	}
	done, err := k.person.Submit(k.ctx, ask, ask.Form("/disconnect"), nil)
	if err != nil || done.Status != http.StatusOK {
		k.t.Fatalf("disconnect: %v %v", done, err)
	}
}

func TestCO10_ForeignStrings(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		g := k.theGrant()
		stranger := g
		stranger.ID = strings.Repeat("5a", 16)
		changed := []byte(code)
		changed[len(changed)-1] ^= 1
		for name, forged := range map[string]string{
			"CO-10 another issuer":     k.mintedBy(k.App.Secrets, "https://other.example", g, 0),
			"CO-10 another secret":     k.mintedBy(keys.GenerateSecrets(), testkit.Issuer, g, 0),
			"no such grant":            k.minted(stranger, 0),
			"refresh token as code":    k.minted(g, 1),
			"prefix swapped":           "ost_rt_" + strings.TrimPrefix(code, "ost_ac_"),
			"one bit of the tag":       string(changed),
			"trailing newline":         code + "\n",
			"padding":                  code + "=",
			"longer":                   code + "AAAA",
			"shorter":                  code[:len(code)-4],
			"not a string of ours":     "SplxlOBeZQQYbYS6WxSbIA",
			"characters outside ASCII": "ost_ac_é" + code[9:],
		} {
			t.Run(name, func(t *testing.T) {
				k.t = t
				k.denied(400, "invalid_grant", func() answer { return k.redeem(a, forged, nil) })
			})
		}
		k.t = t
		want(t, k.redeem(a, code, nil), 200, "")
	})
}

// The unit half, 10^6 strings, stands in tokens_test.go.
func TestCO12_CodesOnTheWire(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		seen := map[string]bool{}
		for range 20 {
			code := k.code(a, nil)
			if seen[code] || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("code %q: repeated or not plain", code)
			}
			seen[code] = true
		}
	})
}
