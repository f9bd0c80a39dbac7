package authserver_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// machine adds a client of the operator that may use client_credentials alone.
func (k *kit) machine(method, scope string, resources ...string) app {
	k.t.Helper()
	c, secret, err := k.App.Clients.Add(k.ctx, registration.AddOptions{Name: "Nightly job", AuthMethod: method,
		GrantTypes: []string{registration.GrantClientCredentials}, Resources: resources, Scope: scope})
	if err != nil {
		k.t.Fatal(err)
	}
	return app{id: c.ID, secret: secret.Reveal(), method: method}
}

// credentials asks for a token of client_credentials.
func (k *kit) credentials(a app, changes url.Values) answer {
	k.t.Helper()
	return k.post("/token", a, changed(url.Values{"grant_type": {"client_credentials"}}, changes))
}

func TestD23_ClientCredentials(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, method := range []string{registration.AuthClientSecretBasic, registration.AuthClientSecretPost} {
			a := k.machine(method, "files:read files:write", testkit.Resource)
			got := k.credentials(a, nil)
			want(t, got, 200, "")
			if got.body.TokenType != "Bearer" || got.body.ExpiresIn != 600 || got.body.Scope != "files:read files:write" {
				t.Errorf("%s: %s", method, got.raw)
			}
			if strings.Contains(got.raw, "refresh_token") {
				t.Error("TK-07 RFC 6749 §4.4.3: a refresh token")
			}
			c := claims(t, got.body.AccessToken)
			if c["sub"] != a.id || c["client_id"] != a.id || c["aud"] != testkit.Resource || c["scope"] != "files:read files:write" {
				t.Errorf("D7: claims %v", c)
			}
			for _, name := range []string{"auth_time", "grant_id"} {
				if _, ok := c[name]; ok {
					t.Errorf("D7: %s in the token of a machine", name)
				}
			}
			if w := call(t, k.mcpServer(testkit.Resource, nil), got.body.AccessToken, ""); w.Code != 200 {
				t.Errorf("the middleware answers %d: %s", w.Code, w.Body)
			}
			if w := call(t, k.mcpServer(testkit.OtherResource, nil), got.body.AccessToken, ""); w.Code != 401 {
				t.Errorf("AU-07 another MCP server answers %d", w.Code)
			}
		}
		if n := len(k.grants()); n != 0 {
			t.Errorf("D10: %d rows of grants, but nobody approved anything", n)
		}
		if !slices.Contains(k.metadata()["grant_types_supported"].([]any), any("client_credentials")) {
			t.Error("A5: client_credentials is not in grant_types_supported")
		}
		if !strings.Contains(k.Logs.String(), `"grant_type":"client_credentials"`) {
			t.Error("D35: no log line for the token")
		}
	})
}

func TestD23_ClientCredentialsResource(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		one := k.machine(registration.AuthClientSecretBasic, "", testkit.Resource)
		two := k.machine(registration.AuthClientSecretBasic, "", testkit.Resource, testkit.OtherResource)
		for _, tt := range []struct {
			name      string
			a         app
			resources []string
			want      string // the aud, or an error code
		}{
			{"the only one may be left out", one, nil, testkit.Resource},
			{"the only one named", one, []string{testkit.Resource}, testkit.Resource},
			{"A23 another spelling", one, []string{"HTTPS://MCP.example.com:443/files/"}, testkit.Resource},
			{"A24 below it", one, []string{testkit.Resource + "/sub"}, testkit.Resource},
			{"another that is registered", one, []string{testkit.OtherResource}, "invalid_target"},
			{"AU-01 unknown", one, []string{"https://evil.example"}, "invalid_target"},
			{"AU-02 relative", one, []string{"/files"}, "invalid_target"},
			{"two at once", two, []string{testkit.Resource, testkit.OtherResource}, "invalid_target"},
			{"one of two", two, []string{testkit.OtherResource}, testkit.OtherResource},
			{"which of two, though one is the default", two, nil, "invalid_target"},
		} {
			k.sub(tt.name, func(t *testing.T) {
				got := k.credentials(tt.a, url.Values{"resource": tt.resources})
				if !strings.HasPrefix(tt.want, "https:") {
					want(t, got, 400, tt.want)
					return
				}
				want(t, got, 200, "")
				if aud := claims(t, got.body.AccessToken)["aud"]; aud != tt.want {
					t.Errorf("aud = %v, want %s", aud, tt.want)
				}
			})
		}
		if _, err := k.App.Resources.Remove(k.ctx, testkit.Resource); err != nil {
			t.Fatal(err)
		}
		k.denied(400, "invalid_target", func() answer { return k.credentials(one, nil) })
	})
}

func TestD23_ClientCredentialsScope(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, r := range []resource.Resource{
			{Identifier: "https://plain.example.com/mcp", Name: "No scopes"},
			{Identifier: "https://strict.example.com/mcp", Name: "Restricted", Scopes: []resource.Scope{{Name: "root", Restricted: true}}},
		} {
			if _, err := k.App.Resources.Add(k.ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct {
			name, row, res, asked string
			want                  string // the scope granted, or an error code
		}{
			{"all of the row", "files:read files:delete", testkit.Resource, "", "files:read files:delete"},
			{"less than the row", "files:read files:write", testkit.Resource, "files:read", "files:read"},
			{"D13 more than the row is dropped", "files:read", testkit.Resource, "files:read files:delete", "files:read"},
			{"nothing of the row", "files:read", testkit.Resource, "files:delete", "invalid_scope"},
			{"SC-01 unknown", "files:read", testkit.Resource, "files:fly", "invalid_scope"},
			{"SC-04 restricted, on the row", "admin", testkit.Resource, "admin", "admin"},
			{"SC-04 restricted, not on the row", "", testkit.Resource, "admin", "invalid_scope"},
			{"a row without scope has the defaults", "", testkit.Resource, "", "files:read"},
			{"and no more than them", "", testkit.Resource, "files:write", "invalid_scope"},
			{"D26 protocol scopes mean nothing", "files:read", testkit.Resource, "openid offline_access", "files:read"},
			{"of two resources, those of this one", "files:read notes:read", testkit.OtherResource, "", "notes:read"},
			{"none of this resource", "files:read", testkit.OtherResource, "", "invalid_scope"},
			{"SC-02 malformed", "files:read", testkit.Resource, "a\"b", "invalid_scope"},
			{"a resource without scopes", "", "https://plain.example.com/mcp", "", ""},
			{"what is on the row, there", "tools", "https://plain.example.com/mcp", "tools", "tools"},
			{"what is not on the row, there", "tools", "https://plain.example.com/mcp", "other", "invalid_scope"},
			{"anything, there, from a row without scope", "", "https://plain.example.com/mcp", "tools", "invalid_scope"},
			{"nothing is default", "", "https://strict.example.com/mcp", "", "invalid_scope"},
		} {
			k.sub(tt.name, func(t *testing.T) {
				a := k.machine(registration.AuthClientSecretPost, tt.row, tt.res)
				got := k.credentials(a, url.Values{"scope": {tt.asked}})
				if strings.HasPrefix(tt.want, "invalid") {
					want(t, got, 400, tt.want)
					return
				}
				want(t, got, 200, "")
				if scope, _ := claims(t, got.body.AccessToken)["scope"].(string); got.body.Scope != tt.want || scope != tt.want {
					t.Errorf("granted %q, in the token %q, want %q", got.body.Scope, scope, tt.want)
				}
			})
		}
	})
}

// A token without a person never rests on the list of grant types alone.
func TestTK07_ClientCredentialsOnlyOfTheOperatorsClients(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": []string{appRedirect}})
		if status != 201 {
			t.Fatalf("%d %v", status, doc)
		}
		own := app{id: doc["client_id"].(string), secret: doc["client_secret"].(string), method: registration.AuthClientSecretBasic}
		public := k.operatorApp(registration.AuthNone, appRedirect)
		for name, a := range map[string]app{"TK-07 DR-19 self-registered, and verified": own, "TK-07 public": public} {
			c, err := k.DB.GetClient(k.ctx, a.id)
			if err != nil {
				t.Fatal(err)
			}
			// as a mistake of ours, or a hand in the database, could leave the row
			c.Metadata.GrantTypes = append(c.Metadata.GrantTypes, registration.GrantClientCredentials)
			c.Resources, c.VerifiedAt = []string{testkit.Resource}, k.Clock.Now()
			if err := k.DB.UpdateClient(k.ctx, c); err != nil {
				t.Fatal(err)
			}
			k.sub(name, func(*testing.T) {
				k.denied(400, "unauthorized_client", func() answer { return k.credentials(a, nil) })
			})
		}
		k.sub("TK-06 an operator's client without the grant", func(*testing.T) {
			a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
			k.denied(400, "unauthorized_client", func() answer { return k.credentials(a, nil) })
		})
		machine := k.machine(registration.AuthClientSecretBasic, "", testkit.Resource)
		k.sub("CA-01 without its secret", func(*testing.T) {
			bare := app{id: machine.id, method: registration.AuthNone}
			k.denied(401, "invalid_client", func() answer { return k.credentials(bare, nil) })
		})
		k.sub("CA-02 wrong secret", func(*testing.T) {
			wrong := machine
			wrong.secret += "x"
			k.denied(401, "invalid_client", func() answer { return k.credentials(wrong, nil) })
		})
		k.sub("CA-15 disabled", func(t *testing.T) {
			if _, err := k.App.Clients.Disable(k.ctx, machine.id); err != nil {
				t.Fatal(err)
			}
			k.denied(401, "invalid_client", func() answer { return k.credentials(machine, nil) })
		})
		k.sub("TK-06 it cannot ask for a person's grant", func(*testing.T) {
			other := k.machine(registration.AuthClientSecretBasic, "", testkit.Resource)
			k.stopped(k.authorizeURL(app{id: other.id, redirect: appRedirect}, nil))
		})
	})
}

// A token without a grant cannot be revoked, and the answer says so (RFC 7009 §2.2.1).
func TestRFC7009_TokenOfClientCredentials(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a, other := k.machine(registration.AuthClientSecretBasic, "", testkit.Resource), k.machine(registration.AuthClientSecretBasic, "", testkit.Resource)
		person := k.connect(k.operatorApp(registration.AuthClientSecretBasic, appRedirect), nil)
		token := k.credentials(a, nil).body.AccessToken
		k.denied(400, "unsupported_token_type", func() answer { return k.post("/revoke", a, url.Values{"token": {token}}) })
		if got := k.post("/revoke", other, url.Values{"token": {token}}); got.status != 200 {
			t.Errorf("IR-05 another client learns of the token: %d", got.status)
		}
		if live := k.live(); len(live) != 1 || person.body.AccessToken == "" {
			t.Errorf("%d live grants, want the person's", len(live))
		}
	})
}

// TestStatementsClientCredentials: two statements a token; once an hour a third
// one notes that the client is in use.
func TestStatementsClientCredentials(t *testing.T) {
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
			a := k.machine(registration.AuthClientSecretBasic, "files:read", testkit.Resource)
			for i, most := range []int64{3, 2, 2} {
				n.Store(0)
				want(t, k.credentials(a, nil), 200, "")
				if got := n.Load(); got > most {
					t.Errorf("token %d took %d statements, want at most %d", i, got, most)
				}
				k.Clock.Advance(time.Minute)
			}
			first := k.Clock.Now().Add(-3 * time.Minute)
			if c, err := k.DB.GetClient(k.ctx, a.id); err != nil || !c.LastUsedAt.Equal(first) {
				t.Errorf("last used at %s, want %s (%v)", c.LastUsedAt, first, err)
			}
			k.Clock.Advance(time.Hour)
			want(t, k.credentials(a, nil), 200, "")
			if c, err := k.DB.GetClient(k.ctx, a.id); err != nil || !c.LastUsedAt.Equal(k.Clock.Now()) {
				t.Errorf("last used at %s, want now (%v)", c.LastUsedAt, err)
			}
		})
	}
}

// What a machine's token opens follows its scope, as anybody's does.
func TestSC09_MachineTokenAtTheMiddleware(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.machine(registration.AuthClientSecretBasic, "files:read", testkit.Resource)
		token := k.credentials(a, nil).body.AccessToken
		mcp := k.mcpServer(testkit.Resource, map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "look"}: {"files:read"}, {Method: "tools/call", Name: "remove"}: {"files:delete"}})
		message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}`
		for tool, status := range map[string]int{"look": 200, "remove": 403} {
			if w := call(t, mcp, token, fmt.Sprintf(message, tool)); w.Code != status {
				t.Errorf("%s: %d, want %d: %s", tool, w.Code, status, w.Body)
			}
		}
		k.Clock.Advance(15 * time.Minute)
		if w := call(t, mcp, token, ""); w.Code != 401 {
			t.Errorf("JW-14 after its 10 minutes and the tolerance: %d", w.Code)
		}
		if list, err := k.DB.ListGrants(k.ctx, grant.Filter{ClientID: a.id}); err != nil || len(list) != 0 {
			t.Errorf("grants %v (%v)", list, err)
		}
	})
}
