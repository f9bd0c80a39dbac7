package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const wellKnown = "/.well-known/oauth-authorization-server"

// document fetches a JSON document.
func (k *kit) document(rawURL string) map[string]any {
	k.t.Helper()
	resp, err := k.Client().Get(rawURL)
	if err != nil {
		k.t.Fatal(err)
	}
	raw := testkit.Body(k.t, resp)
	var doc map[string]any
	if err := json.Unmarshal([]byte(raw), &doc); err != nil || resp.StatusCode != http.StatusOK {
		k.t.Fatalf("%s: %d %s", rawURL, resp.StatusCode, raw)
	}
	return doc
}

// TestMM01_A6: each way in which a response reaches a client carries the issuer
// of the metadata, once.
func TestMM01_A6_Iss(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		const issuer = "https://id.example.com/tenant"
		k := newKit(t, db, func(c *config.Config) { c.Issuer = issuer })
		doc := k.document("https://id.example.com" + wellKnown + "/tenant")
		if doc["issuer"] != issuer || doc["authorization_response_iss_parameter_supported"] != true {
			t.Fatalf("MM-01 metadata: issuer %v, flag %v", doc["issuer"], doc["authorization_response_iss_parameter_supported"])
		}
		a := k.operatorApp(registration.AuthNone, appRedirect)
		wantIss := func(t *testing.T, u *url.URL, member string) {
			t.Helper()
			if u == nil || !slices.Equal(u.Query()["iss"], []string{issuer}) || u.Query().Get(member) == "" || len(u.Query()["state"]) != 1 {
				t.Errorf("response %v, want %s and one iss %s", u, member, issuer)
			}
		}
		k.sub("MM-01 A6 error", func(t *testing.T) {
			wantIss(t, k.open(k.person, k.authorizeURL(a, values("response_type", "x"))).Leaves, "error")
		})
		k.sub("MM-01 A6 error behind the button of D14", func(t *testing.T) {
			page := k.open(k.person, k.authorizeURL(k.register(appRedirect), values("response_type", "x")))
			i := slices.IndexFunc(page.Links, func(l string) bool { return strings.HasPrefix(l, appRedirect) })
			u, err := url.Parse(page.Links[max(i, 0)])
			if err != nil {
				t.Fatal(err)
			}
			wantIss(t, u, "error")
		})
		k.sub("MM-01 A6 access_denied", func(t *testing.T) {
			page, err := k.person.Deny(k.ctx, k.toConsent(k.person, k.authorizeURL(a, nil)))
			if err != nil {
				t.Fatal(err)
			}
			wantIss(t, page.Leaves, "error")
			if code := page.Leaves.Query().Get("error"); code != "access_denied" {
				t.Errorf("error = %s", code)
			}
		})
		k.sub("MM-01 A6 success from the return page", func(t *testing.T) {
			u, err := k.person.Authorize(k.ctx, k.authorizeURL(a, nil))
			if err != nil {
				t.Fatal(err)
			}
			wantIss(t, u, "code")
		})
		k.sub("MM-01 A6 success at once", func(t *testing.T) {
			wantIss(t, k.open(k.person, k.authorizeURL(a, nil)).Leaves, "code")
		})
		k.sub("MM-01 A6 redirect URI with a query", func(t *testing.T) {
			q := k.register(appRedirect + "?tenant=1&x=%20y")
			u, err := k.person.Authorize(k.ctx, k.authorizeURL(q, nil))
			if err != nil {
				t.Fatal(err)
			}
			wantIss(t, u, "code")
			if !strings.HasPrefix(u.String(), q.redirect+"&") {
				t.Errorf("leads to %s, want %s and more", u, q.redirect)
			}
		})
	})
}

// TestMM02: nothing the request says of the server's name is believed.
func TestMM02_HostHeader(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		paths := []string{wellKnown, "/.well-known/openid-configuration", "/jwks.json", "/authorize", "/sign-in", "/token"}
		for _, path := range paths {
			k.sub("MM-02 Host "+path, func(t *testing.T) {
				for _, host := range []string{"evil.example", "id.example.com.evil.example", "id.example.com:8443", "localhost"} {
					got := k.fetch(path, http.Header{"Host": {host}})
					if got.status != http.StatusMisdirectedRequest || strings.Contains(got.raw, "evil.example") {
						t.Errorf("Host %s: %d %s", host, got.status, got.raw)
					}
					if cc := got.header.Get("Cache-Control"); cc != "no-store" {
						t.Errorf("Host %s: Cache-Control %q", host, cc)
					}
				}
			})
		}
		k.sub("MM-02 forwarding headers of anybody", func(t *testing.T) {
			for _, path := range paths[:3] {
				plain := k.fetch(path, nil)
				got := k.fetch(path, http.Header{"X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Proto": {"http"},
					"Forwarded": {"host=evil.example"}, "X-Original-Url": {"/evil"}, "Origin": {"https://evil.example"}})
				if got.status != 200 || got.raw != plain.raw {
					t.Errorf("%s: %d %s, want the same as without", path, got.status, got.raw)
				}
			}
		})
	})
}

func TestMM03_JWKS(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		if _, err := k.App.Keys.Rotate(k.ctx, false); err != nil {
			t.Fatal(err)
		}
		got := k.fetch("/jwks.json", nil)
		if cc := got.header.Get("Cache-Control"); got.status != 200 || !strings.Contains(cc, "max-age=300") || strings.Contains(cc, "no-store") {
			t.Errorf("MM-03 %d, Cache-Control %q", got.status, cc)
		}
		var set struct{ Keys []map[string]string }
		if err := json.Unmarshal([]byte(got.raw), &set); err != nil || len(set.Keys) != 2 {
			t.Fatalf("MM-03 %d keys (%v), want the active and the next", len(set.Keys), err)
		}
		if set.Keys[0]["kid"] == set.Keys[1]["kid"] || set.Keys[0]["kid"] == "" {
			t.Error("MM-03 kid is not unique")
		}
		for _, key := range set.Keys {
			for name := range key {
				if !slices.Contains([]string{"kty", "kid", "alg", "use", "crv", "x", "y"}, name) {
					t.Errorf("MM-03 member %s is published", name)
				}
			}
			if key["kty"] != "EC" || key["alg"] != "ES256" || key["use"] != "sig" {
				t.Errorf("MM-03 key %v", key)
			}
		}
	})
}

// TestMM04_Rotation: with the real middleware, tokens survive a rotation and none
// outlives its key.
func TestMM04_Rotation(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		first := k.connect(a, nil)
		// a token that would outlive its key, as a stolen key could make one
		undead := k.forge(map[string]any{"exp": k.Clock.Now().Add(24 * time.Hour).Unix()})
		mcp := k.mcpServer(testkit.Resource, nil)
		wantStatus := func(s http.Handler, token string, status int) {
			t.Helper()
			if got := call(t, s, token, ""); got.Code != status {
				t.Errorf("MM-04 %d, want %d: %s", got.Code, status, got.Body)
			}
		}
		wantStatus(mcp, first.body.AccessToken, 200)
		if _, err := k.App.Keys.Rotate(k.ctx, false); err != nil {
			t.Fatal(err)
		}
		k.Clock.Advance(7 * time.Minute) // the next key signs 6 minutes after it was published (D28)
		k.reloadKeys()
		second := k.refresh(a, first.body.RefreshToken, nil)
		want(t, second, 200, "")
		if kid(t, first.body.AccessToken) == kid(t, second.body.AccessToken) {
			t.Fatal("MM-04 the old key still signs")
		}
		fresh := k.mcpServer(testkit.Resource, nil)
		wantStatus(fresh, first.body.AccessToken, 200)
		wantStatus(fresh, second.body.AccessToken, 200)
		wantStatus(fresh, undead, 200)
		k.Clock.Advance(2 * time.Hour) // longer than any server may let a token live
		k.reloadKeys()
		third := k.refresh(a, second.body.RefreshToken, nil)
		want(t, third, 200, "")
		later := k.mcpServer(testkit.Resource, nil)
		wantStatus(later, third.body.AccessToken, 200)
		wantStatus(later, first.body.AccessToken, 401)
		wantStatus(later, undead, 401)
	})
}

func (k *kit) reloadKeys() {
	k.t.Helper()
	if err := k.App.Keys.Reload(k.ctx); err != nil {
		k.t.Fatal(err)
	}
}

// TestMM05: what is not there is 404, never a page of an app.
func TestMM05_UnknownPaths(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, path := range []string{"/.well-known/unknown", wellKnown + "/tenant", "/tenant" + wellKnown, "/tenant/.well-known/openid-configuration",
			"/.well-known/oauth-protected-resource", "/.well-known/", "/unknown", "/authorize/", "/token/", "/token/x", "/authorize/x",
			"/metrics", "/debug/pprof/", "/healthz", "/introspect/", "/introspect/x", "/userinfo", "/index.html", "/static/../token"} {
			k.sub("MM-05 "+path, func(t *testing.T) {
				got := k.fetch(path, nil)
				if got.status != http.StatusNotFound || strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
					t.Errorf("%d %s: %s", got.status, got.header.Get("Content-Type"), got.raw)
				}
				if got := k.fetch(path, http.Header{"Accept": {"text/html"}}); got.status != http.StatusNotFound {
					t.Errorf("to a browser: %d", got.status)
				}
			})
		}
	})
}
