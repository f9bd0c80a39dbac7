package authserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// eachWith is each for a configuration.
func eachWith(t *testing.T, opt testkit.ServerOption, fn func(t *testing.T, k *kit)) {
	t.Helper()
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) { fn(t, newKit(t, db, opt)) })
}

// publicClient is the metadata of a client whose name makes it another one.
func publicClient(name string) map[string]any {
	return map[string]any{"redirect_uris": []string{appRedirect}, "token_endpoint_auth_method": "none", "client_name": name}
}

// registerWith registers with a bearer token, "" for none.
func (k *kit) registerWith(token string, metadata any) answer {
	k.t.Helper()
	body, err := json.Marshal(metadata)
	if err != nil {
		k.t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return k.raw(http.MethodPost, "/register", string(body), header)
}

// DR-01: who has no good token registers nothing.
func TestDR01_InitialAccessTokens(t *testing.T) {
	eachWith(t, func(c *config.Config) { c.Registration = "token" }, func(t *testing.T, k *kit) {
		tokens := &registration.InitialAccessTokens{Store: k.DB, Tx: k.DB, Audit: k.DB, Now: k.Clock.Now}
		add := func(life time.Duration) (id, token string) {
			t.Helper()
			added, secret, err := tokens.Add(k.ctx, registration.NewInitialAccessToken{Name: "Atlas", Uses: 1, Life: life})
			if err != nil {
				t.Fatal(err)
			}
			return added.ID, secret.Reveal()
		}
		refused := func(name, token, challenge string) {
			k.sub("DR-01 "+name, func(t *testing.T) {
				got := k.denied(401, "invalid_token", func() answer { return k.registerWith(token, publicClient(name)) })
				if c := got.header.Get("WWW-Authenticate"); c != challenge {
					t.Errorf("WWW-Authenticate = %q, want %q", c, challenge)
				}
			})
		}
		_, used := add(time.Hour)
		if got := k.registerWith(used, publicClient("Atlas")); got.status != http.StatusCreated {
			t.Fatalf("a good token: %d %s", got.status, got.raw)
		}
		id, removed := add(time.Hour)
		if err := tokens.Remove(k.ctx, id); err != nil {
			t.Fatal(err)
		}
		_, expired := add(time.Minute)
		_, good := add(time.Hour)
		k.Clock.Advance(time.Minute)
		const invalid = `Bearer error="invalid_token"`
		refused("missing", "", "Bearer")
		refused("wrong", "ost_iat_"+strings.Repeat("A", 43), invalid)
		refused("reused", used, invalid)
		refused("removed", removed, invalid)
		refused("expired", expired, invalid)
		refused("an access token", k.connect(k.operatorApp(registration.AuthNone, appRedirect), nil).body.AccessToken, invalid)
		k.sub("DR-01 in the query", func(*testing.T) {
			k.denied(401, "invalid_token", func() answer {
				return k.raw(http.MethodPost, "/register?access_token="+good, `{"redirect_uris":["`+appRedirect+`"]}`, http.Header{"Content-Type": {"application/json"}})
			})
		})
		if got := k.registerWith(good, publicClient("Atlas 2")); got.status != http.StatusCreated {
			t.Errorf("a good token after all that: %d %s", got.status, got.raw)
		}
	})
}

// DR-02: being signed in is no privilege here.
func TestDR02_SignedInPerson(t *testing.T) {
	for mode, status := range map[string]int{"closed": 403, "token": 401} {
		t.Run("DR-02 "+mode, func(t *testing.T) {
			eachWith(t, func(c *config.Config) { c.Registration = mode }, func(t *testing.T, k *kit) {
				k.connect(k.operatorApp(registration.AuthNone, appRedirect), nil)
				browser := k.Client()
				browser.Jar = k.person.Jar()
				k.changesOnly(func() {
					body, err := json.Marshal(publicClient("Quill"))
					if err != nil {
						t.Fatal(err)
					}
					resp, err := browser.Post(k.URL("/register"), "application/json", bytes.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					raw := testkit.Body(t, resp)
					code := map[int]string{403: `"access_denied"`, 401: `"invalid_token"`}[status]
					if resp.StatusCode != status || !strings.Contains(raw, code) {
						t.Errorf("%d %s, want %d %s", resp.StatusCode, raw, status, code)
					}
				})
				if mode == "closed" && k.metadata()["registration_endpoint"] != nil {
					t.Error("DR-01: the metadata names an endpoint that is closed")
				}
			})
		})
	}
}

// DR-08: keys that no client should send leave no row, and registration asks nobody.
func TestDR08_Keys(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		key := testkit.NewClientKey(t, "ES256", "k1")
		set := string(testkit.JWKS(t, key))
		for name, keys := range map[string]string{
			"both":                       `"jwks":` + set + `,"jwks_uri":"https://quill.example/keys"`,
			"neither":                    `"client_uri":"https://quill.example"`,
			"a private key":              `"jwks":{"keys":[` + string(key.PrivateJWK(t)) + `]}`,
			"a private key among public": `"jwks":{"keys":[` + set[len(`{"keys":[`):len(set)-2] + "," + string(key.PrivateJWK(t)) + `]}`,
			"a symmetric key":            `"jwks":{"keys":[{"kty":"oct","kid":"1","k":"` + strings.Repeat("A", 43) + `"}]}`,
			"no keys":                    `"jwks":{"keys":[]}`,
			"jwks_uri at 10.0.0.1":       `"jwks_uri":"https://10.0.0.1/keys"`,
			"jwks_uri of the metadata":   `"jwks_uri":"https://169.254.169.254/keys"`,
			"jwks_uri by http":           `"jwks_uri":"http://quill.example/keys"`,
			"jwks_uri at another port":   `"jwks_uri":"https://quill.example:8443/keys"`,
			"jwks_uri of this server":    `"jwks_uri":"` + testkit.Issuer + `/jwks.json"`,
			"jwks_uri is a file":         `"jwks_uri":"file:///etc/passwd"`,
		} {
			w.sub("DR-08 "+name, func(*testing.T) {
				got := w.denied(400, "invalid_client_metadata", func() answer { return w.tryRegisterKeys(keys) })
				if strings.Contains(got.raw, "client_id") {
					t.Errorf("a refusal with a client: %s", got.raw)
				}
			})
		}
		w.registerKeys(`"jwks_uri":"https://quill.example/keys"`)
		if asked, tried := w.dns.Asked(), w.attempts(); len(asked) != 0 || len(tried) != 0 {
			t.Errorf("registration looked up %q and connected to %q", asked, tried)
		}
		w.heardNothing(t)
	})
}

// DR-09: a statement counts when an issuer that the operator named signed it, and
// never otherwise.
func TestDR09_SoftwareStatements(t *testing.T) {
	key, foreign := testkit.NewClientKey(t, "ES256", "k1"), testkit.NewClientKey(t, "ES256", "k1")
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, testkit.JWKS(t, key), 0o600); err != nil {
		t.Fatal(err)
	}
	claimed := map[string]any{"iss": "https://publisher.example", "client_name": "Your Bank", "redirect_uris": []string{"https://bank.example/cb"}}
	unsigned := "eyJhbGciOiJub25lIn0." + strings.Split(key.Sign(t, nil, claimed), ".")[1] + "."
	metadata := func(statement string) map[string]any {
		m := publicClient("Quill")
		m["software_statement"] = statement
		return m
	}
	t.Run("DR-09 nobody is trusted", func(t *testing.T) {
		each(t, func(t *testing.T, k *kit) {
			for name, statement := range map[string]string{"signed": key.Sign(t, nil, claimed), "unsigned": unsigned} {
				status, doc := k.registerRaw("application/json", metadata(statement))
				if status != http.StatusCreated || doc["client_name"] != "Quill" || fmt.Sprint(doc["redirect_uris"]) != "["+appRedirect+"]" || doc["software_statement"] != nil {
					t.Errorf("%s: %d %v; want it ignored", name, status, doc)
				}
			}
		})
	})
	for _, mode := range []string{"open", "statement"} {
		t.Run("DR-09 one is trusted, "+mode, func(t *testing.T) {
			eachWith(t, func(c *config.Config) {
				c.Registration, c.SoftwareStatementIssuers = mode, []string{"https://publisher.example " + file}
			}, func(t *testing.T, k *kit) {
				for name, statement := range map[string]string{
					"unsigned":       unsigned,
					"another's key":  foreign.Sign(t, nil, claimed),
					"another issuer": key.Sign(t, nil, changedClaims(claimed, "iss", "https://evil.example")),
					"no issuer":      key.Sign(t, nil, changedClaims(claimed, "iss", nil)),
					"cut":            strings.TrimSuffix(key.Sign(t, nil, claimed), "A") + "!",
					"not a JWT":      "x",
				} {
					k.sub("DR-09 "+name, func(t *testing.T) {
						if mode == "open" && strings.Contains(name, "issuer") {
							return // of somebody else: ignored, as above
						}
						k.changesOnly(func() {
							if status, doc := k.registerRaw("application/json", metadata(statement)); status != 400 || doc["error"] != "invalid_software_statement" {
								t.Errorf("%d %v", status, doc)
							}
						})
					})
				}
				status, doc := k.registerRaw("application/json", metadata(key.Sign(t, nil, claimed)))
				if status != http.StatusCreated || doc["client_name"] != "Your Bank" || fmt.Sprint(doc["redirect_uris"]) != "[https://bank.example/cb]" {
					t.Errorf("a good one: %d %v", status, doc)
				}
			})
		})
	}
}

func changedClaims(claims map[string]any, name string, v any) map[string]any {
	m := map[string]any{}
	for n, old := range claims {
		m[n] = old
	}
	m[name] = v
	return m
}

// DR-13: 10,000 registrations from one source stop at the budget; another source
// and the people of clients that are there go on.
func TestDR13_TenThousandOverHTTP(t *testing.T) {
	const budget = 40
	eachWith(t, func(c *config.Config) { c.RegistrationPerHour, c.RegistrationPerHourTotal = budget, 2*budget }, func(t *testing.T, k *kit) {
		first := k.register(appRedirect)
		token := k.connect(first, nil).body.RefreshToken
		rows := func() int {
			t.Helper()
			list, err := k.DB.ListClients(k.ctx)
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		before := rows()
		statuses := map[int]int{}
		other := k.from("198.51.100.7:1")
		for i := range 10_000 {
			got := k.registerWith("", publicClient(fmt.Sprint("App ", i)))
			statuses[got.status]++
			if got.status == http.StatusTooManyRequests && (got.header.Get("Retry-After") == "" || got.body.Error != "temporarily_unavailable") {
				t.Fatalf("429 with %v: %s", got.header, got.raw)
			}
			if i == 5000 {
				if got := other.registerWith("", publicClient("Other")); got.status != http.StatusCreated {
					t.Errorf("another source in the middle: %d %s", got.status, got.raw)
				}
			}
		}
		if statuses[http.StatusCreated] != budget || statuses[http.StatusTooManyRequests] != 10_000-budget || len(statuses) != 2 {
			t.Errorf("answers %v, want %d clients and 429 for the rest", statuses, budget)
		}
		if n := rows() - before; n != budget+1 {
			t.Errorf("the table grew by %d rows, want %d and the other source's", n, budget)
		}
		if got := k.refresh(first, token, nil); got.status != http.StatusOK {
			t.Errorf("a client with a grant was evicted: %d %s", got.status, got.raw)
		}
		k.sub("DR-13 from 1000 sources", func(t *testing.T) {
			statuses := map[int]int{}
			for i := range 1000 {
				from := k.from(fmt.Sprintf("203.0.%d.%d:1", i/250, i%250))
				statuses[from.registerWith("", publicClient(fmt.Sprint("Far ", i))).status]++
			}
			if statuses[http.StatusCreated] != budget-1 || statuses[http.StatusTooManyRequests] != 1000-budget+1 {
				t.Errorf("answers %v, want what is left of the budget of all", statuses)
			}
			if n := rows() - before; n != 2*budget {
				t.Errorf("the table grew by %d rows, want %d", n, 2*budget)
			}
		})
	})
}

// A38: a hosted client registers for each connection, all from one address. What
// people approve gives its place back.
func TestDR13_A38_HostedClients(t *testing.T) {
	eachWith(t, func(c *config.Config) { c.RegistrationPerHour = 5 }, func(t *testing.T, k *kit) {
		hosted := k.from("160.79.104.10:443")
		for i := range 20 {
			got := hosted.registerWith("", publicClient(fmt.Sprint("Claude ", i)))
			var doc struct {
				ClientID string `json:"client_id"`
			}
			if err := json.Unmarshal([]byte(got.raw), &doc); err != nil || got.status != http.StatusCreated {
				t.Fatalf("A38 connection %d: %d %s", i, got.status, got.raw)
			}
			k.connect(app{id: doc.ClientID, method: registration.AuthNone, redirect: appRedirect}, nil)
		}
		for i := range 5 {
			if got := hosted.registerWith("", publicClient(fmt.Sprint("Stray ", i))); got.status != http.StatusCreated {
				t.Fatalf("stray %d: %d", i, got.status)
			}
		}
		want(t, hosted.registerWith("", publicClient("One more")), 429, "temporarily_unavailable")
	})
}

// DR-16: a client that changes where people are sent back has no remembered consent.
func TestDR16_RememberedConsentIsDropped(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.managedApp()
		k.verify(a.app)
		k.connect(a.app, nil)
		if page := k.open(k.person, k.authorizeURL(a.app, nil)); page.Leaves == nil {
			t.Fatalf("D11: a verified client is remembered: %d %q", page.Status, page.Heading)
		}
		got, _ := k.manage("PUT", a, map[string]any{"client_id": a.id, "client_name": "Atlas",
			"redirect_uris": []string{appRedirect, "https://app.example.net/more"}, "token_endpoint_auth_method": registration.AuthClientSecretPost})
		if got.status != http.StatusOK {
			t.Fatalf("update: %d %s", got.status, got.raw)
		}
		k.toConsent(k.person, k.authorizeURL(a.app, nil))
		silent := k.open(k.person, k.authorizeURL(a.app, values("prompt", "none")))
		if silent.Leaves != nil && silent.Leaves.Query().Get("code") != "" {
			t.Error("DR-16: a silent code")
		}
	})
}

// DR-17: no way of reading a registration tells the secret again.
func TestDR17_SecretIsNotReadAgain(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.managedApp()
		got, doc := k.manage("GET", a, nil)
		if got.status != http.StatusOK || doc["client_id"] != a.id {
			t.Fatalf("read: %d %s", got.status, got.raw)
		}
		put, _ := k.manage("PUT", a, map[string]any{"client_id": a.id, "client_name": "Atlas 2", "redirect_uris": []string{appRedirect},
			"token_endpoint_auth_method": registration.AuthClientSecretPost, "client_secret": a.secret})
		if put.status != http.StatusOK {
			t.Fatalf("update: %d %s", put.status, put.raw)
		}
		for where, text := range map[string]string{"read": got.raw, "update": put.raw, "log": k.Logs.String(), "database": testkit.Dump(k.ctx, t, k.DB)} {
			if strings.Contains(text, a.secret) {
				t.Errorf("DR-17: the secret is in the %s", where)
			}
		}
		want(t, k.redeem(a.app, k.code(a.app, nil), nil), 200, "")
	})
}

// RT-13: a client that gives the refresh grant up is told so with every token it
// holds or gets, and no connection of its people ends by that.
func TestRT13_RefreshGrantGivenUp(t *testing.T) {
	t.Run("RT-13 by RFC 7592", func(t *testing.T) {
		each(t, func(t *testing.T, k *kit) {
			a := k.managedApp()
			grantTypes := func(list ...string) {
				t.Helper()
				got, doc := k.manage("PUT", a, map[string]any{"client_id": a.id, "client_name": "Atlas", "redirect_uris": []string{appRedirect},
					"token_endpoint_auth_method": registration.AuthClientSecretPost, "grant_types": list})
				if got.status != http.StatusOK || fmt.Sprint(doc["grant_types"]) != fmt.Sprint(list) {
					t.Fatalf("update: %d %s", got.status, got.raw)
				}
				a.token, _ = doc["registration_access_token"].(string)
			}
			held, code := k.connect(a.app, nil).body.RefreshToken, k.code(a.app, nil)
			grantTypes("authorization_code")
			k.denied(400, "unauthorized_client", func() answer { return k.refresh(a.app, held, nil) })
			for name, c := range map[string]string{"a code from before": code, "a new code": k.code(a.app, nil)} {
				got := k.redeem(a.app, c, nil)
				want(t, got, 200, "")
				if got.body.RefreshToken != "" {
					t.Errorf("%s: a refresh token", name)
				}
			}
			grantTypes("authorization_code", "refresh_token")
			want(t, k.refresh(a.app, held, nil), 200, "")
		})
	})
	t.Run("RT-13 by another document", func(t *testing.T) {
		eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
			a := w.site.publish("/client.json", nil, loopbackRedirect)
			held := w.connect(a, nil)
			w.site.publish("/client.json", map[string]any{"grant_types": []string{"authorization_code"}}, loopbackRedirect)
			w.Clock.Advance(2 * time.Hour)
			// D8, A29: a document that leaves the grant out has it still (Goose's does)
			fresh := w.connect(a, nil)
			if n := w.host.Requests(); n != 2 {
				t.Errorf("%d fetches, want the second document read", n)
			}
			for _, token := range []string{held.body.RefreshToken, fresh.body.RefreshToken} {
				want(t, w.refresh(a, token, nil), 200, "")
			}
		})
	})
}
