package authserver_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// badResources are the values of AU-01 and AU-02 by name.
func badResources() map[string]string {
	return map[string]string{
		"AU-01 unknown":            "https://elsewhere.example/mcp",
		"AU-01 sibling path":       "https://mcp.example.com/filesystem",
		"AU-01 parent of both":     "https://mcp.example.com/",
		"AU-01 the issuer":         testkit.Issuer,
		"AU-01 another scheme":     "http://mcp.example.com/files",
		"AU-01 dots out of a path": testkit.Resource + "/../secret",
		"AU-01 encoded dots":       testkit.Resource + "/%2e%2e/secret",
		"AU-02 relative":           "/files",
		"AU-02 fragment":           testkit.Resource + "#x",
		"AU-02 empty fragment":     testkit.Resource + "#",
		"AU-02 empty":              "",
		"AU-02 not a URL":          "files",
		"AU-02 not a web URL":      "urn:files",
		"AU-02 8 KiB":              testkit.Resource + "/" + strings.Repeat("a", 8<<10),
		"AU-02 userinfo":           "https://user@mcp.example.com/files",
		"AU-02 a space":            testkit.Resource + " ",
	}
}

func TestAU_Authorize(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		c := k.newCast()
		for name, value := range badResources() {
			k.sub(name, func(*testing.T) { k.refusedAtAuthorize(c, values("resource", value), "invalid_target") })
		}
		k.sub("AU-01 D5 two resources", func(*testing.T) {
			k.refusedAtAuthorize(c, url.Values{"resource": {testkit.Resource, testkit.OtherResource}}, "invalid_target")
		})
		k.sub("AU-01 a good one beside an unknown one", func(*testing.T) {
			k.refusedAtAuthorize(c, url.Values{"resource": {testkit.Resource, "https://elsewhere.example"}}, "invalid_target")
		})
	})
}

func TestAU_Token(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		token := k.connect(a, nil).body.RefreshToken
		bad := badResources()
		bad["AU-04 A26 the other resource"] = testkit.OtherResource
		for name, value := range bad {
			k.sub(name, func(t *testing.T) {
				code := k.code(a, nil)
				k.denied(400, "invalid_target", func() answer { return k.redeem(a, code, values("resource", value)) })
				k.unburned(a, code)
				k.denied(400, "invalid_target", func() answer { return k.refresh(a, token, values("resource", value)) })
				next := k.refresh(a, token, nil)
				want(t, next, 200, "")
				token = next.body.RefreshToken
			})
		}
		k.sub("AU-04 A26 both resources", func(t *testing.T) {
			code := k.code(a, nil)
			k.denied(400, "invalid_target", func() answer {
				return k.redeem(a, code, url.Values{"resource": {testkit.Resource, testkit.OtherResource}})
			})
			k.unburned(a, code)
		})
	})
}

// TestAU06: a client with a list of resources gets no other.
func TestAU06_ResourceNotForThisClient(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		c := k.newCast()
		for _, a := range []app{c.trusted, c.approved, c.stranger} {
			row, err := k.DB.GetClient(k.ctx, a.id)
			if err != nil {
				t.Fatal(err)
			}
			row.Resources = []string{testkit.OtherResource}
			if err := k.DB.UpdateClient(k.ctx, row); err != nil {
				t.Fatal(err)
			}
		}
		k.sub("AU-06 at authorize", func(*testing.T) { k.refusedAtAuthorize(c, nil, "invalid_target") })
		k.sub("AU-06 resource omitted: the default is none of its own", func(*testing.T) {
			k.refusedAtAuthorize(c, url.Values{"resource": nil, "scope": nil}, "invalid_target")
		})
		k.sub("AU-06 its own", func(t *testing.T) {
			got := k.connectAt(c.trusted, testkit.OtherResource)
			if aud := claims(t, got.body.AccessToken)["aud"]; aud != testkit.OtherResource {
				t.Errorf("aud = %v", aud)
			}
		})
	})
}

// connectAt walks to tokens for a resource, with its default scopes.
func (k *kit) connectAt(a app, res ...string) answer {
	k.t.Helper()
	return k.connect(a, url.Values{"resource": res, "scope": nil})
}

// TestAU08: an access token is no key to the server's own pages. They are no
// API, so decision D25's answer to nobody is the sign-in page, not 401.
func TestAU08_AccountWithAccessToken(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		got := k.connect(k.register(appRedirect), nil)
		for _, path := range []string{"/account", "/account/", "/admin", "/consent?request=x", "/authorize/continue?request=x"} {
			k.sub("AU-08 "+path, func(t *testing.T) {
				k.unchanged(func() {
					bare, withToken := k.fetch(path, nil), k.fetch(path, http.Header{"Authorization": {"Bearer " + got.body.AccessToken},
						"Cookie": {"__Host-session=" + got.body.AccessToken}})
					if withToken.status != bare.status || withToken.header.Get("Location") != bare.header.Get("Location") || withToken.status == 200 {
						t.Errorf("%d to %q with a token, %d to %q without", withToken.status, withToken.header.Get("Location"), bare.status, bare.header.Get("Location"))
					}
					if strings.Contains(withToken.raw, testkit.Email) {
						t.Error("the answer names the person")
					}
				})
			})
		}
	})
}

// fetch GETs a path as a program does.
func (k *kit) fetch(path string, header http.Header) answer {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.ctx, http.MethodGet, k.URL(path), nil)
	if err != nil {
		k.t.Fatal(err)
	}
	for name, vs := range header {
		req.Header[name] = vs
	}
	if host := header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	got, err := k.send(req)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

func TestAU10_ResourceOmitted(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		wantAud := func(t *testing.T, got answer) {
			t.Helper()
			want(t, got, 200, "")
			if aud := claims(t, got.body.AccessToken)["aud"]; aud != testkit.Resource {
				t.Errorf("aud = %v, want %s", aud, testkit.Resource)
			}
		}
		k.sub("AU-10 A25 D6 the default, at every step", func(t *testing.T) {
			first := k.connect(a, url.Values{"resource": nil})
			wantAud(t, first)
			wantAud(t, k.refresh(a, first.body.RefreshToken, nil))
		})
		k.sub("AU-10 A25 several and no default", func(t *testing.T) {
			if _, err := k.App.Resources.Update(k.ctx, testkit.Resource, func(r *resource.Resource) error { r.Default = false; return nil }); err != nil {
				t.Fatal(err)
			}
			k.unchanged(func() {
				wantRedirect(t, k.open(k.person, k.authorizeURL(a, url.Values{"resource": nil})), a, "invalid_target")
			})
		})
		k.sub("AU-10 A25 the only one", func(t *testing.T) {
			if _, err := k.App.Resources.Remove(k.ctx, testkit.OtherResource); err != nil {
				t.Fatal(err)
			}
			wantAud(t, k.connect(a, url.Values{"resource": nil}))
		})
		k.sub("AU-10 none at all", func(t *testing.T) {
			if _, err := k.App.Resources.Remove(k.ctx, testkit.Resource); err != nil {
				t.Fatal(err)
			}
			k.unchanged(func() {
				wantRedirect(t, k.open(k.person, k.authorizeURL(a, url.Values{"resource": nil})), a, "invalid_target")
			})
		})
	})
}

// TestA23_A24: how clients spell a resource changes nothing of its audience.
func TestA23_A24_Spellings(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		const alone = "https://one.example.com/mcp"
		if _, err := k.App.Resources.Add(k.ctx, resource.Resource{Identifier: alone, Name: "One"}); err != nil {
			t.Fatal(err)
		}
		a := k.register(appRedirect)
		for _, tt := range []struct {
			name string
			sent []string
			want string
		}{
			{"A23 trailing slash", []string{testkit.Resource + "/"}, testkit.Resource},
			{"A23 case of scheme and host", []string{"HTTPS://MCP.example.com/files"}, testkit.Resource},
			{"A23 default port", []string{"https://mcp.example.com:443/files"}, testkit.Resource},
			{"A23 D5 two spellings are one", []string{testkit.Resource, testkit.Resource + "/"}, testkit.Resource},
			{"A24 descendant", []string{testkit.Resource + "/v1/mcp"}, testkit.Resource},
			{"A24 origin of the only resource there", []string{"https://one.example.com"}, alone},
			{"A24 origin with a slash", []string{"https://one.example.com/"}, alone},
		} {
			k.sub(tt.name, func(t *testing.T) {
				code := k.code(a, url.Values{"resource": tt.sent, "scope": nil})
				got := k.redeem(a, code, url.Values{"resource": tt.sent})
				want(t, got, 200, "")
				if aud := claims(t, got.body.AccessToken)["aud"]; aud != tt.want {
					t.Errorf("aud = %v, want %s byte-exact", aud, tt.want)
				}
				want(t, k.refresh(a, got.body.RefreshToken, url.Values{"resource": tt.sent}), 200, "")
			})
		}
	})
}
