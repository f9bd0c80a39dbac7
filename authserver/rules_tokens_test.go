package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// A20: a client that was removed cannot be told at /authorize, so the person is
// told what to do; and registered clients stay.
func TestA20_UnknownClientGetsAPageThatHelps(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		if _, err := k.App.Clients.Remove(k.ctx, a.id); err != nil {
			t.Fatal(err)
		}
		k.changesOnly(func() {
			page, err := k.person.Open(k.ctx, k.authorizeURL(a, nil))
			if err != nil || page.Status != http.StatusBadRequest || page.Leaves != nil {
				t.Fatalf("unknown client: %v %v", page, err)
			}
			if !strings.Contains(page.Body, a.id) || !strings.Contains(strings.ToLower(page.Body), "again") {
				t.Errorf("the page does not say how to start again:\n%s", page.Body)
			}
		})
	})
}

func TestA20_ClientsAreKept(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		idle, connected := k.register(loopbackRedirect), k.register(loopbackRedirect)
		token := k.connect(connected, nil).body.RefreshToken
		k.Clock.Advance(29 * 24 * time.Hour)
		token = k.refresh(connected, token, nil).body.RefreshToken
		k.Clock.Advance(29 * 24 * time.Hour)
		token = k.refresh(connected, token, nil).body.RefreshToken
		k.Clock.Advance(29 * 24 * time.Hour) // 87 days: the row of the idle one is young enough, too
		if err := k.DB.Collect(k.ctx, k.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		again := &kit{Server: k.Again(t), t: t, ctx: k.ctx, person: k.Person()} // a restart
		want(t, again.refresh(connected, token, nil), 200, "")
		again.connect(idle, nil)
	})
}

func TestA22_TokenResponse(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		for _, asked := range []string{"files:read files:write", "files:write files:read", "files:delete files:read files:write"} {
			got := k.connect(a, url.Values{"scope": {asked}}) // an operator's app: everything is ticked
			for _, got := range []answer{got, k.refresh(a, got.body.RefreshToken, nil)} {
				want(t, got, 200, "")
				if got.body.Scope != asked {
					t.Errorf("scope = %q, want %q as asked", got.body.Scope, asked)
				}
				var members map[string]any
				if err := json.Unmarshal([]byte(got.raw), &members); err != nil {
					t.Fatal(err)
				}
				if members["token_type"] != "Bearer" || members["expires_in"] != float64(600) || got.header.Get("Content-Type") != "application/json" {
					t.Errorf("response %s with %v", got.raw, got.header)
				}
				for name := range members {
					if !slices.Contains([]string{"access_token", "token_type", "expires_in", "refresh_token", "scope"}, name) {
						t.Errorf("member %q", name)
					}
				}
			}
		}
	})
}

// A25: who sends no resource gets the one the grant is for.
func TestA25_MissingResource(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		for _, tt := range []struct {
			name     string
			resource []string
			scope    string
			aud      string
		}{
			{"A25 authorize: the default", nil, "files:read", testkit.Resource},
			{"A25 token and refresh inherit", []string{testkit.OtherResource}, "notes:read", testkit.OtherResource},
		} {
			got := k.connect(a, url.Values{"resource": tt.resource, "scope": {tt.scope}, "state": {tt.name}})
			for _, got := range []answer{got, k.refresh(a, got.body.RefreshToken, nil)} {
				want(t, got, 200, "")
				if aud := claims(t, got.body.AccessToken)["aud"]; aud != tt.aud {
					t.Errorf("%s: aud = %v, want %s", tt.name, aud, tt.aud)
				}
			}
		}
	})
}

// A26: at /token, too, resource may be another spelling and nothing else.
func TestA26_ResourceAtRedemption(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		for _, r := range []string{testkit.OtherResource, "https://elsewhere.example/", "urn:x", testkit.Resource + "#", ""} {
			k.denied(400, "invalid_target", func() answer { return k.redeem(a, code, url.Values{"resource": {r}}) })
		}
		got := k.redeem(a, code, url.Values{"resource": {testkit.Resource + "/", testkit.Resource}})
		want(t, got, 200, "")
		if aud := claims(t, got.body.AccessToken)["aud"]; aud != testkit.Resource {
			t.Errorf("aud = %v", aud)
		}
	})
}

func TestA27_UnknownScopesAreDropped(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		for asked, granted := range map[string]string{
			"openid email profile files:read unknown": "files:read",
			"":                        "files:read", // ChatGPT's reconnect: the defaults
			"openid":                  "files:read", // D26: counts as none
			"files:write admin":       "files:write",
			"notes:read files:read x": "files:read",
		} {
			got := k.connect(a, url.Values{"scope": {asked}, "state": {"s" + asked}})
			// a required scope is granted with every other one
			have := strings.Fields(got.body.Scope)
			for _, scope := range strings.Fields(granted) {
				if !slices.Contains(have, scope) {
					t.Errorf("%q: granted %q, want %q", asked, got.body.Scope, granted)
				}
			}
			for _, scope := range []string{"openid", "email", "profile", "unknown", "admin", "notes:read", "x"} {
				if slices.Contains(have, scope) {
					t.Errorf("%q: granted %q", asked, got.body.Scope)
				}
			}
			if claims(t, got.body.AccessToken)["scope"] != got.body.Scope {
				t.Errorf("%q: token and answer differ", asked)
			}
		}
	})
}

// A29: refresh tokens do not depend on offline_access, and a client that lists
// no grant types gets them (D8).
func TestA29_RefreshTokensForEverybodyWhoMay(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for name, tt := range map[string]struct {
			grantTypes any
			refresh    bool
		}{
			"A29 lists nothing": {nil, true},
			"A29 lists both":    {[]string{"authorization_code", "refresh_token"}, true},
			"A29 lists others":  {[]string{"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"}, true},
			"A29 lists one":     {[]string{"authorization_code"}, false},
		} {
			metadata := map[string]any{"redirect_uris": []string{loopbackRedirect}, "token_endpoint_auth_method": "none"}
			if tt.grantTypes != nil {
				metadata["grant_types"] = tt.grantTypes
			}
			status, doc := k.registerRaw("application/json", metadata)
			if status != http.StatusCreated {
				t.Fatalf("%s: %d %v", name, status, doc)
			}
			a := app{id: doc["client_id"].(string), method: registration.AuthNone, redirect: loopbackRedirect}
			if got := k.connect(a, url.Values{"scope": {"files:read"}}); (got.body.RefreshToken != "") != tt.refresh {
				t.Errorf("%s: refresh token %v", name, got.body.RefreshToken != "")
			}
			echoed, _ := json.Marshal(doc["grant_types"])
			if strings.Contains(string(echoed), "refresh_token") != tt.refresh || strings.Contains(string(echoed), "device") {
				t.Errorf("%s: grant_types %s", name, echoed)
			}
		}
	})
}
