package authserver_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// inactive is the whole answer about a token that is not active, or not the
// asker's business.
const inactive = `{"active":false}`

// resourceApp gives a resource its credential, which is presented as a client's.
func (k *kit) resourceApp(res string) app {
	k.t.Helper()
	r, secret, err := k.App.Resources.AddCredential(k.ctx, res)
	if err != nil {
		k.t.Fatal(err)
	}
	return app{id: r.Credential.ID, secret: secret.Reveal(), method: registration.AuthClientSecretBasic}
}

// introspect asks about a token.
func (k *kit) introspect(who app, token string) answer {
	k.t.Helper()
	return k.post("/introspect", who, values("token", token))
}

// wantInactive checks IR-03: 200 and nothing but that it is not active.
func wantInactive(t *testing.T, got answer) {
	t.Helper()
	want(t, got, 200, "")
	if got.raw != inactive {
		t.Errorf("answer %s, want %s", got.raw, inactive)
	}
}

// wantActive checks that a token is active and returns the answer's members.
func wantActive(t *testing.T, got answer) map[string]any {
	t.Helper()
	want(t, got, 200, "")
	var m map[string]any
	if err := json.Unmarshal([]byte(got.raw), &m); err != nil || m["active"] != true {
		t.Fatalf("answer %s, want an active token", got.raw)
	}
	return m
}

// TestRFC7662_Answer: what is said of a token is what it says itself, without
// grant_id and auth_time (D35).
func TestRFC7662_Answer(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		server, a := k.resourceApp(testkit.Resource), k.operatorApp(registration.AuthClientSecretPost, appRedirect)
		token := k.connect(a, nil).body.AccessToken
		expected := claims(t, token)
		delete(expected, "grant_id")
		delete(expected, "auth_time")
		expected["active"], expected["token_type"] = true, "Bearer"
		for name, who := range map[string]app{"the MCP server": server, "the MCP server by its body": {id: server.id, secret: server.secret,
			method: registration.AuthClientSecretPost}, "the client": a} {
			got := k.introspect(who, token)
			if diff := cmp.Diff(expected, wantActive(t, got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if got.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: Content-Type %q", name, got.header.Get("Content-Type"))
			}
		}
		if strings.Contains(k.Logs.String(), token) {
			t.Error("the token is in the log")
		}
	})
}

// TestIR01: who cannot prove who they are learns nothing, a public client neither
// (RFC 7662 §2.1).
func TestIR01_Callers(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		server, a := k.resourceApp(testkit.Resource), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		public := k.register(appRedirect)
		token, publics := k.connect(a, nil).body.AccessToken, k.connect(public, nil).body.AccessToken
		for name, tt := range map[string]struct {
			who   app
			token string
		}{
			"IR-01 nobody":                           {app{}, token},
			"IR-01 a wrong secret of an MCP server":  {guessing(server, "wrong"), token},
			"IR-01 no secret of an MCP server":       {guessing(server, ""), token},
			"IR-01 an id alone":                      {app{id: server.id, method: registration.AuthNone}, token},
			"IR-01 an unknown credential":            {app{id: "rs~" + strings.Repeat("a", 26), secret: server.secret, method: registration.AuthClientSecretBasic}, token},
			"IR-01 the prefix alone":                 {guessing(app{id: "rs~", method: registration.AuthClientSecretBasic}, server.secret), token},
			"IR-01 a wrong secret of a client":       {guessing(a, "wrong"), token},
			"IR-01 no secret of a client":            {app{id: a.id, method: registration.AuthNone}, token},
			"IR-01 a secret of another":              {guessing(a, server.secret), token},
			"IR-01 a client's secret for a server":   {guessing(server, a.secret), token},
			"IR-01 an unknown client":                {app{id: "nobody", method: registration.AuthNone}, token},
			"IR-01 a public client of its own token": {public, publics},
			"IR-01 the resource for its id":          {app{id: testkit.Resource, secret: server.secret, method: registration.AuthClientSecretPost}, token},
		} {
			k.sub(name, func(t *testing.T) {
				got := k.denied(401, "invalid_client", func() answer { return k.introspect(tt.who, tt.token) })
				if basic := tt.who.method == registration.AuthClientSecretBasic; basic != strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Basic ") {
					t.Errorf("WWW-Authenticate = %q", got.header.Get("WWW-Authenticate"))
				}
			})
		}
		k.sub("IR-01 a Bearer token", func(*testing.T) {
			got := k.introspectWith(http.Header{"Authorization": {"Bearer " + token}}, "token="+token)
			want(k.t, got, 401, "invalid_client")
		})
		k.sub("IR-01 two credentials", func(*testing.T) {
			k.denied(400, "invalid_request", func() answer {
				return k.post("/introspect", server, values("token", token, "client_secret", a.secret))
			})
		})
		k.sub("IR-01 a credential is no client", func(*testing.T) {
			if registration.IsClientID(server.id) {
				t.Errorf("a client could be called %s", server.id)
			}
			k.denied(401, "invalid_client", func() answer {
				return k.post("/token", server, values("grant_type", "client_credentials", "resource", testkit.Resource))
			})
			k.denied(401, "invalid_client", func() answer { return k.post("/revoke", server, values("token", token)) })
			wantPage(k.t, k.open(k.person, k.authorizeURL(app{id: server.id, redirect: appRedirect}, nil)), http.StatusBadRequest)
		})
		k.sub("IR-01 wrong secrets wait (CA-12)", func(t *testing.T) {
			k.remote = "198.51.100.7:1"
			defer func() { k.remote = "" }()
			for range 100 {
				if got := k.introspect(guessing(server, "wrong"), token); got.status == http.StatusTooManyRequests {
					want(t, k.introspect(server, token), http.StatusTooManyRequests, "temporarily_unavailable")
					k.remote = "" // the server itself, from elsewhere
					wantActive(t, k.introspect(server, token))
					return
				}
			}
			t.Error("100 wrong secrets in a row were all looked at")
		})
		wantActive(t, k.introspect(server, token))
	})
}

// guessing is a caller with another secret.
func guessing(a app, secret string) app {
	a.secret = secret
	return a
}

// introspectWith sends a form with headers of its own.
func (k *kit) introspectWith(h http.Header, form string) answer {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.URL("/introspect"), strings.NewReader(form))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header = h
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := k.send(req)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// TestRFC7662_ClientMethods: a client asks by every method that it has at /token.
func TestRFC7662_ClientMethods(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, method := range []string{registration.AuthClientSecretBasic, registration.AuthClientSecretPost} {
			a := k.operatorApp(method, appRedirect)
			wantActive(t, k.introspect(a, k.connect(a, nil).body.AccessToken))
		}
		signer := k.keyApps("ES256")[0]
		got := k.redeem(signer.app, k.code(signer.app, nil), signer.prove())
		want(t, got, 200, "")
		proof := signer.prove()
		wantActive(t, k.post("/introspect", signer.app, changed(proof, values("token", got.body.AccessToken))))
		k.sub("an assertion is good once", func(*testing.T) {
			again := k.post("/introspect", signer.app, changed(proof, values("token", got.body.AccessToken)))
			want(k.t, again, 401, "invalid_client")
		})
	})
}

// TestIR02: a token is nobody's business but its audience's and its client's; a
// refresh token nobody's but its client's (RT-12).
func TestIR02_OthersTokens(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		files, notes := k.resourceApp(testkit.Resource), k.resourceApp(testkit.OtherResource)
		a, other := k.operatorApp(registration.AuthClientSecretBasic, appRedirect), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		first := k.connect(a, nil)
		atNotes := k.connectAt(a, testkit.OtherResource)
		for name, tt := range map[string]struct {
			who   app
			token string
		}{
			"IR-02 of another audience":       {notes, first.body.AccessToken},
			"IR-02 the other way round":       {files, atNotes.body.AccessToken},
			"IR-02 RT-12 a refresh token":     {files, first.body.RefreshToken},
			"IR-02 another client's":          {other, first.body.AccessToken},
			"IR-02 another client's refresh":  {other, first.body.RefreshToken},
			"IR-02 an audience within it":     {files, k.forge(map[string]any{"aud": testkit.Resource + "/deep"})},
			"IR-02 another spelling of it":    {files, k.forge(map[string]any{"aud": testkit.Resource + "/"})},
			"IR-02 its credential's id":       {files, k.forge(map[string]any{"aud": files.id})},
			"IR-02 no audience":               {files, k.forge(map[string]any{"aud": nil})},
			"IR-02 two audiences":             {files, k.forge(map[string]any{"aud": []string{testkit.Resource, testkit.OtherResource}})},
			"IR-02 the client as an audience": {a, k.forge(map[string]any{"aud": a.id})},
		} {
			k.sub(name, func(t *testing.T) {
				k.unchanged(func() { wantInactive(t, k.introspect(tt.who, tt.token)) })
			})
		}
		wantActive(t, k.introspect(files, first.body.AccessToken))
		wantActive(t, k.introspect(notes, atNotes.body.AccessToken))
		wantActive(t, k.introspect(a, atNotes.body.AccessToken))
	})
}

// TestIR03: of what is not active nothing else is said, whatever the reason.
func TestIR03_Inactive(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		server, a := k.resourceApp(testkit.Resource), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		live := k.connect(a, nil)
		unused := k.code(a, nil)
		code := k.code(a, nil)
		used := k.redeem(a, code, nil)
		want(t, used, 200, "")
		now := k.Clock.Now()
		good := claims(t, live.body.AccessToken)
		payload, err := json.Marshal(good)
		if err != nil {
			t.Fatal(err)
		}
		untyped, _, err := k.App.Keys.Sign("JWT", payload)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(live.body.AccessToken, ".")
		for name, token := range map[string]string{
			"garbage":                      "nothing",
			"blank":                        " ",
			"dots":                         "..",
			"no JSON":                      "AAAA.AAAA.AAAA",
			"alg none":                     "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0." + parts[1] + ".",
			"without signature":            parts[0] + "." + parts[1] + ".",
			"one character changed":        flip(live.body.AccessToken),
			"one character more":           live.body.AccessToken + "A",
			"a line break":                 live.body.AccessToken[:20] + "\n" + live.body.AccessToken[20:],
			"another typ":                  untyped,
			"another issuer":               k.forge(with(good, "iss", "https://other.example")),
			"expired":                      k.forge(with(good, "exp", now.Unix())),
			"no exp":                       k.forge(with(good, "exp", nil)),
			"exp that is text":             k.forge(with(good, "exp", "soon")),
			"exp beyond 64 bits":           k.forge(with(good, "exp", 1e30)),
			"an unknown grant":             k.forge(with(good, "grant_id", strings.Repeat("0", 32))),
			"a grant that is no id":        k.forge(with(good, "grant_id", "' OR 1=1 --")),
			"another client of the grant":  k.forge(with(good, "client_id", "other")),
			"another subject of the grant": k.forge(with(good, "sub", "other")),
			"no grant and no such client":  k.forge(with(with(good, "grant_id", nil), "client_id", "nobody")),
			"no grant of an app's token":   k.forge(with(good, "grant_id", nil)),
			"an unused code":               unused,
			"a used code":                  code,
			"a random refresh token":       "ost_rt_" + strings.Repeat("A", 72),
			"a refresh token changed":      flip(live.body.RefreshToken),
			"generation ahead":             k.minted(k.grantOf(live), 3),
			"60 KiB":                       strings.Repeat("a", 60<<10),
		} {
			k.sub("IR-03 "+name, func(t *testing.T) {
				k.unchanged(func() {
					wantInactive(t, k.introspect(server, token))
					wantInactive(t, k.introspect(a, token))
				})
			})
		}
		k.sub("IR-03 no token", func(*testing.T) {
			k.denied(400, "invalid_request", func() answer { return k.post("/introspect", server, values()) })
			k.denied(400, "invalid_request", func() answer { return k.introspect(server, "") })
		})
		k.sub("IR-03 the forgeries are good but for that", func(t *testing.T) {
			wantActive(t, k.introspect(server, k.forge(good)))
		})
		k.sub("IR-03 in the second of its exp", func(t *testing.T) {
			k.Clock.Advance(10*time.Minute - time.Second)
			wantActive(t, k.introspect(server, live.body.AccessToken))
			k.Clock.Advance(time.Second)
			wantInactive(t, k.introspect(server, live.body.AccessToken))
		})
		k.unburned(a, k.code(a, nil))
	})
}

// with returns claims with one changed.
func with(claims map[string]any, name string, value any) map[string]any {
	m := maps.Clone(claims)
	m[name] = value
	return m
}

// grantOf returns the grant behind an answer of /token.
func (k *kit) grantOf(got answer) grant.Grant {
	k.t.Helper()
	id, _ := claims(k.t, got.body.AccessToken)["grant_id"].(string)
	g, err := k.DB.GetGrant(k.ctx, id)
	if err != nil {
		k.t.Fatal(err)
	}
	return g
}
