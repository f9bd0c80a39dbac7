package authserver_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// D8: a repeat inside the window does not make the window longer.
func TestD8_A32_WindowIsNeverExtended(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		first := k.connect(a, nil).body.RefreshToken
		second := k.refresh(a, first, nil).body.RefreshToken
		for range 3 {
			k.Clock.Advance(20 * time.Second)
			got := k.refresh(a, first, nil)
			want(t, got, 200, "")
			if got.body.RefreshToken != second {
				t.Error("A32: the successor changed")
			}
			if exp := claims(t, got.body.AccessToken)["exp"]; exp != float64(k.Clock.Now().Add(10*time.Minute).Unix()) {
				t.Errorf("the repeat's access token expires at %v", exp)
			}
		}
		k.Clock.Advance(time.Second)
		k.wantReuse(a, first)
	})
}

// D8: the successor that was handed out twice is one token, and using it once
// closes the way back.
func TestD8_A32_UseOfTheSuccessorEndsTheWindow(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		first := k.connect(a, nil).body.RefreshToken
		second := k.refresh(a, first, nil).body.RefreshToken
		third := k.refresh(a, second, nil).body.RefreshToken
		want(t, k.refresh(a, second, nil), 200, "") // the window is the previous token's now
		if got := k.refresh(a, second, nil); got.body.RefreshToken != third {
			t.Error("another successor")
		}
		k.wantReuse(a, first)
	})
}

// D8: the method that redeemed the code binds the grant; refresh may not be weaker.
func TestD8_StrengthOfTheMethod(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		token := k.connect(a, nil).body.RefreshToken
		if g := k.theGrant(); g.AuthMethod != registration.AuthClientSecretBasic {
			t.Errorf("auth_method = %q", g.AuthMethod)
		}
		setMethod := func(method string) app {
			c, err := k.DB.GetClient(k.ctx, a.id)
			if err != nil {
				t.Fatal(err)
			}
			c.Metadata.TokenEndpointAuthMethod = method
			if err := k.DB.UpdateClient(k.ctx, c); err != nil {
				t.Fatal(err)
			}
			as := a
			as.method = method
			return as
		}
		weaker := setMethod(registration.AuthNone)
		k.denied(400, "invalid_grant", func() answer { return k.refresh(weaker, token, nil) })
		asStrong := setMethod(registration.AuthClientSecretPost)
		want(t, k.refresh(asStrong, token, nil), 200, "")
		if g := k.theGrant(); g.AuthMethod != registration.AuthClientSecretBasic {
			t.Errorf("refresh changed auth_method to %q", g.AuthMethod)
		}
	})
}

// allowOnce answers the consent page with or without "Stay connected" and
// redeems the code.
func (k *kit) allowOnce(a app, changes url.Values, stay bool) answer {
	k.t.Helper()
	page, err := k.person.ToConsent(k.ctx, k.authorizeURL(a, changes))
	if err != nil {
		k.t.Fatal(err)
	}
	form := page.Form("/consent")
	if form == nil {
		k.t.Fatalf("no consent form: %d %q", page.Status, page.Heading)
	}
	if !slices.Contains(form.Boxes["stay_connected"], "yes") {
		k.t.Error("D9: the page offers no \"Stay connected\"")
	}
	answers := url.Values{"decision": {"allow"}, "stay_connected": nil}
	if stay {
		answers.Set("stay_connected", "yes")
	}
	k.person.Pause()
	if page, err = k.person.Submit(k.ctx, page, form, answers); err != nil || page.Leaves == nil {
		k.t.Fatalf("allow: %v, %v", page, err)
	}
	got := k.redeem(a, page.Leaves.Query().Get("code"), nil)
	want(k.t, got, 200, "")
	return got
}

func TestD9_StayConnected(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		for _, tt := range []struct {
			name, asked, granted string
			stay                 bool
		}{
			{"D9 unticked", "files:read", "files:read", false},
			{"D9 ticked", "files:read", "files:read", true},
			{"D9 asked by name and unticked", "files:read offline_access", "files:read", false},
			{"D9 asked by name and ticked", "files:read offline_access", "files:read offline_access", true},
		} {
			got := k.allowOnce(a, url.Values{"scope": {tt.asked}, "state": {tt.name}}, tt.stay)
			if (got.body.RefreshToken != "") != tt.stay || got.body.Scope != tt.granted {
				t.Errorf("%s: refresh token %v, scope %q", tt.name, got.body.RefreshToken != "", got.body.Scope)
			}
			if c := claims(t, got.body.AccessToken)["scope"]; c != "files:read" {
				t.Errorf("%s: the token says scope %v", tt.name, c)
			}
			if !tt.stay {
				if strings.Contains(got.raw, "refresh_token") {
					t.Errorf("%s: the member is there: %s", tt.name, got.raw)
				}
				continue
			}
			again := k.refresh(a, got.body.RefreshToken, nil)
			want(t, again, 200, "")
			if again.body.Scope != tt.granted {
				t.Errorf("%s: scope after refresh %q, want %q", tt.name, again.body.Scope, tt.granted)
			}
		}
	})
}

// D9, D10: without a refresh token the connection ends with its access token,
// and a string of the next generation opens nothing.
func TestD9_WithoutRefreshTheGrantEndsWithItsToken(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		k.allowOnce(a, nil, false)
		g := k.theGrant()
		if !g.ExpiresAt.Equal(g.AdvancedAt.Add(10 * time.Minute)) {
			t.Errorf("expires %v after the redemption", g.ExpiresAt.Sub(g.AdvancedAt))
		}
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, k.minted(g, 1), nil) })
		if len(k.live()) != 1 {
			t.Error("connected apps does not show it")
		}
		k.Clock.Advance(10 * time.Minute)
		if len(k.live()) != 0 {
			t.Error("it outlives its access token")
		}
	})
}

func TestD10_GenerationZeroIsInvisibleAndCollected(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		kept := k.connect(a, nil).body.RefreshToken
		code := k.code(a, url.Values{"state": {"second"}})
		if list := k.live(); len(list) != 1 || list[0].Generation != 1 {
			t.Errorf("live grants: %+v, want the redeemed one", list)
		}
		expired := k.Clock.Now().Add(time.Minute)
		collect := func(at time.Time) int {
			if err := k.DB.Collect(k.ctx, at); err != nil {
				t.Fatal(err)
			}
			return len(k.grants())
		}
		if n := collect(expired.Add(59 * time.Minute)); n != 2 {
			t.Errorf("%d grants before the hour is over, want 2", n)
		}
		want(t, k.redeem(a, code, nil), 200, "") // the collector took nothing that lives (ST-10)

		k.code(a, url.Values{"state": {"third"}})
		k.Clock.Advance(time.Minute)
		if n := collect(k.Clock.Now().Add(time.Hour)); n != 2 {
			t.Errorf("%d grants after the hour, want 2", n)
		}
		want(t, k.refresh(a, kept, nil), 200, "")
	})
}

// D10, A37: two machines with one client are two grants; what ends one leaves
// the other.
func TestD10_A37_TwoInstallationsOfOneClient(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		laptop := k.connect(a, nil).body.RefreshToken
		there := a
		there.redirect = "http://127.0.0.1:50001/cb"
		desktop := k.connect(there, nil).body.RefreshToken
		if list := k.live(); len(list) != 2 || list[0].ID == list[1].ID {
			t.Fatalf("live grants: %+v, want 2", list)
		}
		next := k.refresh(a, laptop, nil).body.RefreshToken
		k.Clock.Advance(2 * time.Minute)
		k.wantReuse(a, laptop)
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, next, nil) })
		got := k.refresh(a, desktop, nil)
		want(t, got, 200, "")
		want(t, k.post("/revoke", a, url.Values{"token": {k.connect(a, nil).body.RefreshToken}}), 200, "")
		want(t, k.refresh(a, got.body.RefreshToken, nil), 200, "")
	})
}

// D30: everything before the generation is checked first, so a rotated token
// that fails any of it ends nothing.
func TestD30_NothingBeforeTheGenerationEndsAGrant(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a, b := k.operatorApp(registration.AuthClientSecretPost, appRedirect), k.register(loopbackRedirect)
		rotated := k.connect(a, nil).body.RefreshToken
		newest := k.refresh(a, rotated, nil).body.RefreshToken
		k.Clock.Advance(2 * time.Minute) // from here on its use is an alarm
		wrong := a
		wrong.secret = "wrong"
		forged := []byte(rotated)
		forged[len(forged)-2] ^= 1
		for name, tt := range map[string]struct {
			as      app
			token   string
			changes url.Values
			status  int
			code    string
		}{
			"D30 string":                {a, rotated[:len(rotated)-1], nil, 400, "invalid_grant"},
			"D30 tag":                   {a, string(forged), nil, 400, "invalid_grant"},
			"D30 client authentication": {wrong, rotated, nil, 401, "invalid_client"},
			"D30 client_id":             {b, rotated, nil, 400, "invalid_grant"},
			"D30 resource":              {a, rotated, url.Values{"resource": {testkit.OtherResource}}, 400, "invalid_target"},
			"D30 scope":                 {a, rotated, url.Values{"scope": {"admin"}}, 400, "invalid_scope"},
			"D30 two parameters":        {a, rotated, url.Values{"scope": {"files:read", "files:read"}}, 400, "invalid_request"},
		} {
			t.Run(name, func(t *testing.T) {
				k.t = t
				k.denied(tt.status, tt.code, func() answer { return k.refresh(tt.as, tt.token, tt.changes) })
			})
		}
		k.t = t
		got := k.refresh(a, newest, nil)
		want(t, got, 200, "")
		k.wantReuse(a, rotated)
	})
}

// D30: one generation ahead of the row is a commit that was lost.
func TestD30_OneAheadIsHealed(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		k.connect(a, nil)
		g := k.theGrant()
		got := k.refresh(a, k.minted(g, 2), nil)
		want(t, got, 200, "")
		if after := k.theGrant(); after.Generation != 3 || !after.EndedAt.IsZero() || got.body.RefreshToken != k.minted(g, 3) {
			t.Errorf("healed to generation %d", after.Generation)
		}
		if !strings.Contains(k.Logs.String(), "grant.healed") {
			t.Error("the log does not say so")
		}
		want(t, k.refresh(a, k.minted(g, 2), nil), 200, "") // its window is open
		k.wantReuse(a, k.minted(g, 1))
	})
}

// The commit of the redemption itself was lost: the code's expiry does not end
// what the client already holds.
func TestD30_OneAheadOfTheCodeIsHealed(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthClientSecretPost, appRedirect)
		code := k.code(a, nil)
		g := k.theGrant()
		k.Clock.Advance(10 * time.Minute)
		want(t, k.refresh(a, k.minted(g, 1), nil), 200, "")
		after := k.theGrant()
		if after.Generation != 2 || after.AuthMethod != registration.AuthClientSecretPost || after.RefreshExpiresAt.IsZero() {
			t.Errorf("healed grant: %+v", after)
		}
		k.denied(400, "invalid_grant", func() answer { return k.redeem(a, code, nil) })
		want(t, k.refresh(a, k.minted(g, 2), nil), 200, "")
	})
}

// D30: further ahead cannot be: refused, the grant stays, and the operator learns.
func TestD30_FurtherAheadIsCritical(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		token := k.connect(a, nil).body.RefreshToken
		g := k.theGrant()
		for i, generation := range []int{3, 4, 1 << 30, 1<<31 - 1} {
			k.changesOnly(func() { want(t, k.refresh(a, k.minted(g, generation), nil), 400, "invalid_grant") }, "audit_events")
			events := named(t, k, "grant.generation_ahead")
			if len(events) != i+1 || events[0].GrantID != g.ID || events[0].Outcome != "failure" || events[0].Detail["severity"] != "critical" {
				t.Errorf("events: %+v", events)
			}
		}
		if !strings.Contains(k.Logs.String(), `"level":"ERROR"`) {
			t.Error("no line that an operator must act on")
		}
		want(t, k.refresh(a, token, nil), 200, "")
		if list := named(t, k, "grant.reuse_detected"); len(list) != 0 {
			t.Errorf("reuse events: %+v", list)
		}
	})
}
