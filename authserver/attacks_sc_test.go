package authserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestSC_Refused(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		c := k.newCast()
		for _, tt := range []struct{ name, scope string }{
			{"SC-01 double quote", `files:read "x"`},
			{"SC-01 backslash", `files:read a\b`},
			{"SC-01 line feed", "files:read\nfiles:write"},
			{"SC-01 tab", "files:read\tfiles:write"},
			{"SC-01 escape", "files:read\x1b"},
			{"SC-01 delete", "files:read\x7f"},
			{"SC-01 non-ASCII", "files:read fichiers:é"},
			{"SC-01 no-break space", "files:read\u00a0files:write"},
			{"SC-03 all unknown", "nothing nowhere"},
			{"SC-03 unknown beside protocol scopes", "nothing openid offline_access"},
			{"SC-03 another case", "FILES:READ"},
			{"SC-03 a scope of another resource", "notes:read"},
		} {
			k.sub(tt.name, func(*testing.T) { k.refusedAtAuthorize(c, values("scope", tt.scope), "invalid_scope") })
		}
	})
}

// scopes of a token and of its response must agree (A22, A27).
func wantScope(t *testing.T, got answer, scope string) {
	t.Helper()
	want(t, got, 200, "")
	if in, _ := claims(t, got.body.AccessToken)["scope"].(string); got.body.Scope != scope || in != scope {
		t.Errorf("scope %q in the response and %q in the token, want %q", got.body.Scope, in, scope)
	}
}

func TestSC03_A27_Granted(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a, trusted := k.register(appRedirect), k.operatorApp(registration.AuthNone, appRedirect)
		for _, tt := range []struct {
			name, asked string
			a           app
			want        string
		}{
			{"SC-03 A27 unknown scopes are dropped, the granted are listed", "openid email profile mcp:all files:write files:read", a, "files:write files:read"},
			{"SC-03 A27 repeated scopes and spaces", " files:read  files:read ", a, "files:read"},
			{"A27 none asked: the defaults of the resource", "", a, "files:read"},
			{"A27 D26 protocol scopes only: the defaults", "openid profile", a, "files:read"},
			{"SC-04 restricted scope for a client that registered itself", "files:read admin", a, "files:read"},
			{"SC-04 restricted scope is no default", "", trusted, "files:read"},
			{"SC-04 restricted scope for an operator's client", "files:read admin", trusted, "files:read admin"},
		} {
			k.sub(tt.name, func(t *testing.T) { wantScope(t, k.connectAll(tt.a, tt.asked), tt.want) })
		}
		k.sub("SC-04 only the restricted scope", func(t *testing.T) {
			page := k.open(k.person, k.authorizeURL(k.register(appRedirect), values("scope", "admin")))
			wantPage(t, page, http.StatusBadRequest)
		})
		k.sub("SC-04 not by registering it", func(t *testing.T) {
			k.register(appRedirect)
			body := `{"client_name":"Quill","redirect_uris":["` + appRedirect + `"],"token_endpoint_auth_method":"none","scope":"files:read admin"}`
			resp, err := k.Client().Post(k.URL("/register"), "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if raw := testkit.Body(t, resp); resp.StatusCode != http.StatusCreated || strings.Contains(raw, "admin") {
				t.Errorf("registered: %d %s", resp.StatusCode, raw)
			}
		})
	})
}

// connectAll walks to tokens with every scope of the page allowed.
func (k *kit) connectAll(a app, scope string) answer {
	k.t.Helper()
	page, err := k.person.ToConsent(k.ctx, k.authorizeURL(a, values("scope", scope)))
	if err != nil {
		k.t.Fatal(err)
	}
	if page.Leaves == nil {
		if page.Form("/consent") == nil {
			k.t.Fatalf("%d %q, want the consent page", page.Status, page.Heading)
		}
		if page, err = k.person.Allow(k.ctx, page, page.Form("/consent").Boxes["scope"]...); err != nil || page.Leaves == nil {
			k.t.Fatalf("allow: %v", err)
		}
	}
	return k.redeem(a, page.Leaves.Query().Get("code"), nil)
}

// TestSC06: what was allowed once covers no more than that.
func TestSC06_RememberedConsent(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		read, more := values("scope", "files:read"), values("scope", "files:read files:write")
		k.connect(a, read)
		k.sub("SC-06 the same again is not asked", func(t *testing.T) {
			page := k.open(k.person, k.authorizeURL(a, read))
			if page.Leaves == nil {
				t.Fatalf("%d %q, want a code", page.Status, page.Heading)
			}
			wantScope(t, k.redeem(a, page.Leaves.Query().Get("code"), nil), "files:read")
		})
		k.sub("SC-06 one more is asked", func(t *testing.T) {
			page := k.toConsent(k.person, k.authorizeURL(a, more))
			if !strings.Contains(page.Heading, "asks for one more permission") || !strings.Contains(page.Body, "<dd>files:write</dd>") {
				t.Errorf("%q, want files:write asked for alone\n%s", page.Heading, page.Body)
			}
			wantRedirect(t, k.open(k.person, k.authorizeURL(a, values("scope", "files:read files:write", "prompt", "none"))), a, "consent_required")
		})
		k.sub("SC-06 refused, the addition stays refused", func(t *testing.T) {
			if _, err := k.person.Deny(k.ctx, k.toConsent(k.person, k.authorizeURL(a, more))); err != nil {
				t.Fatal(err)
			}
			k.toConsent(k.person, k.authorizeURL(a, more))
		})
		k.sub("A30 prompt=consent asks again", func(*testing.T) {
			k.toConsent(k.person, k.authorizeURL(a, values("scope", "files:read", "prompt", "consent")))
		})
	})
}

func TestSC07_Unticked(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		all := values("scope", "files:read files:write files:delete")
		page := k.toConsent(k.person, k.authorizeURL(a, all))
		back, err := k.person.Allow(k.ctx, page, "files:delete")
		if err != nil || back.Leaves == nil {
			t.Fatalf("allow: %v", err)
		}
		got := k.redeem(a, back.Leaves.Query().Get("code"), nil)
		wantScope(t, got, "files:read files:delete")
		wantScope(t, k.refresh(a, got.body.RefreshToken, nil), "files:read files:delete")
		k.denied(400, "invalid_scope", func() answer {
			return k.refresh(a, got.body.RefreshToken, values("scope", "files:read files:write"))
		})
	})
}

func TestSC08_SwappedScope(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		page := k.toConsent(k.person, k.authorizeURL(a, nil))
		k.Clock.Advance(time.Second)
		for _, scope := range []string{"files:delete", "admin", "notes:read", "files:read", "files:write files:delete", "offline_access"} {
			k.sub("SC-08 "+scope, func(t *testing.T) {
				k.unchanged(func() {
					wantPage(t, k.submit(k.person, page, page.Form("/consent"), values("decision", "allow", "scope", scope)), http.StatusBadRequest)
				})
			})
		}
		back, err := k.person.Allow(k.ctx, page)
		if err != nil || back.Leaves == nil {
			t.Fatalf("SC-08 the page still works: %v", err)
		}
		wantScope(t, k.redeem(a, back.Leaves.Query().Get("code"), nil), "files:read files:write")
	})
}

// TestSC06_NewScopeOfTheResource: a scope that a resource gains later is not covered.
func TestSC06_NewScopeOfTheResource(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		plain := values("scope", "")
		k.connect(a, plain)
		if _, err := k.App.Resources.Update(k.ctx, testkit.Resource, func(r *resource.Resource) error {
			r.Scopes = append(r.Scopes, resource.Scope{Name: "files:share", Default: true})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		k.toConsent(k.person, k.authorizeURL(a, plain))
	})
}
