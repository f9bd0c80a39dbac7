package authserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// keyApp is a client that authenticates by private_key_jwt.
type keyApp struct {
	app
	k   *kit
	key *testkit.ClientKey
}

// keyApps are a client of the operator and one that registered itself, of each
// algorithm that is named.
func (k *kit) keyApps(algs ...string) (apps []keyApp) {
	k.t.Helper()
	for _, alg := range algs {
		key := testkit.NewClientKey(k.t, alg, "k1")
		apps = append(apps,
			keyApp{k.keyClient(registration.AddOptions{JWKS: testkit.JWKS(k.t, key)}), k, key},
			keyApp{k.registerKeys(`"jwks":` + string(testkit.JWKS(k.t, key))), k, key})
	}
	return apps
}

// keyClient adds a client with keys as the operator does.
func (k *kit) keyClient(o registration.AddOptions) app {
	k.t.Helper()
	o.Name, o.RedirectURIs, o.AuthMethod = "Atlas", []string{appRedirect}, registration.AuthPrivateKeyJWT
	c, secret, err := k.App.Clients.Add(k.ctx, o)
	if err != nil || secret != "" || c.SecretHash != nil {
		k.t.Fatalf("add client with keys: secret %t, %v", secret != "", err)
	}
	return app{id: c.ID, method: registration.AuthPrivateKeyJWT, redirect: appRedirect}
}

// registerKeys registers a client with keys by RFC 7591.
func (k *kit) registerKeys(keys string) app {
	k.t.Helper()
	got := k.tryRegisterKeys(keys)
	var out struct {
		ClientID string          `json:"client_id"`
		Secret   string          `json:"client_secret"`
		Method   string          `json:"token_endpoint_auth_method"`
		JWKS     json.RawMessage `json:"jwks"`
		JWKSURI  string          `json:"jwks_uri"`
	}
	if err := json.Unmarshal([]byte(got.raw), &out); err != nil || got.status != http.StatusCreated {
		k.t.Fatalf("register: %d %s", got.status, got.raw)
	}
	if out.Secret != "" || out.Method != registration.AuthPrivateKeyJWT || (out.JWKS == nil) == (out.JWKSURI == "") {
		k.t.Errorf("registered as %s", got.raw)
	}
	return app{id: out.ClientID, method: registration.AuthPrivateKeyJWT, redirect: appRedirect}
}

func (k *kit) tryRegisterKeys(keys string) answer {
	k.t.Helper()
	return k.raw("POST", "/register", `{"client_name":"Quill","redirect_uris":["`+appRedirect+`"],"token_endpoint_auth_method":"private_key_jwt",`+keys+`}`,
		http.Header{"Content-Type": {"application/json"}})
}

// assertion is the client's proof for one request, with changes.
func (a keyApp) assertion(header, changes map[string]any) url.Values {
	a.k.t.Helper()
	claims := testkit.AssertionClaims(a.id, testkit.Issuer, a.k.Clock.Now())
	maps.Copy(claims, changes)
	return url.Values{"client_assertion_type": {testkit.AssertionType}, "client_assertion": {a.key.Sign(a.k.t, header, claims)}}
}

// prove is assertion without changes.
func (a keyApp) prove() url.Values { return a.assertion(nil, nil) }

// proven adds a proof to a form.
func (a keyApp) proven(form url.Values) url.Values { return changed(a.prove(), form) }

// private_key_jwt works at code, refresh and revocation, with issuer and token
// endpoint as audience, with each algorithm.
func TestRFC7523_ClientAuthentication(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		k := newKit(t, db)
		for _, a := range k.keyApps("ES256", "EdDSA", "RS256", "PS256") {
			first := k.redeem(a.app, k.code(a.app, nil), a.prove())
			want(t, first, 200, "")
			second := k.refresh(a.app, first.body.RefreshToken, a.assertion(map[string]any{"typ": "client-authentication+jwt"},
				map[string]any{"aud": testkit.Issuer + "/token"}))
			want(t, second, 200, "")
			// RFC 7521 §4.2: client_id may stand beside it
			third := k.refresh(a.app, second.body.RefreshToken, a.proven(url.Values{"client_id": {a.id}}))
			want(t, third, 200, "")
			got := k.post("/revoke", a.app, a.proven(url.Values{"token": {third.body.RefreshToken}}))
			if got.status != 200 {
				t.Errorf("revoke: %d %s", got.status, got.raw)
			}
			want(t, k.refresh(a.app, third.body.RefreshToken, a.prove()), 400, "invalid_grant")
		}
		if live := k.live(); len(live) != 0 {
			t.Errorf("%d grants live", len(live))
		}
	})
}

func TestCA08_Assertions(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.keyApps("ES256")[1]
		thief := a
		thief.key = testkit.NewClientKey(t, "ES256", "k1")
		code := k.code(a.app, nil)
		now := k.Clock.Now().Unix()
		hs := strings.Split(a.prove().Get("client_assertion"), ".")
		none := "eyJhbGciOiJub25lIn0." + hs[1] + "."
		for name, form := range map[string]url.Values{
			"alg none":                  {"client_assertion": {none}},
			"alg none with a signature": {"client_assertion": {none + hs[2]}},
			"alg HS256":                 a.assertion(map[string]any{"alg": "HS256"}, nil),
			"bad signature":             thief.prove(),
			"exp past":                  a.assertion(nil, map[string]any{"exp": now - 61, "iat": now - 100}),
			"exp in eleven minutes":     a.assertion(nil, map[string]any{"exp": now + 660}),
			"no jti":                    a.assertion(nil, map[string]any{"jti": nil}),
			"iss is not sub":            a.assertion(nil, map[string]any{"iss": "another"}),
			"sub is not client_id":      changed(a.prove(), url.Values{"client_id": {"another"}}),
			"of another client":         a.assertion(nil, map[string]any{"iss": "another", "sub": "another"}),
			"aud of another server":     a.assertion(nil, map[string]any{"aud": "https://evil.example"}),
			"two audiences":             a.assertion(nil, map[string]any{"aud": []string{testkit.Issuer, testkit.Issuer + "/token"}}),
			"access token typ":          a.assertion(map[string]any{"typ": "at+jwt"}, nil),
			"not a JWT":                 {"client_assertion": {"x"}},
			"no assertion":              {"client_assertion": nil},
			"no type":                   changed(a.prove(), url.Values{"client_assertion_type": nil}),
			"SAML type":                 changed(a.prove(), url.Values{"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:saml2-bearer"}}),
		} {
			if form.Get("client_assertion_type") == "" && name != "no type" {
				form.Set("client_assertion_type", testkit.AssertionType)
			}
			t.Run("CA-08 "+name, func(t *testing.T) {
				got := k.denied(401, "invalid_client", func() answer { return k.redeem(a.app, code, form) })
				if got.header.Get("WWW-Authenticate") != "" {
					t.Errorf("WWW-Authenticate = %q, but Basic was not used", got.header.Get("WWW-Authenticate"))
				}
			})
		}
		first := k.redeem(a.app, code, a.prove())
		want(t, first, 200, "")
		k.denied(401, "invalid_client", func() answer { return k.refresh(a.app, first.body.RefreshToken, thief.prove()) })
		want(t, k.refresh(a.app, first.body.RefreshToken, a.prove()), 200, "")
		if strings.Contains(k.Logs.String(), hs[2]) {
			t.Error("an assertion is in the log")
		}
	})
}

// An unknown client, a wrong key, a switched-off client and one with another
// method are told the same (CA-02).
func TestCA02_AssertionsLookTheSame(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.keyApps("ES256")[0]
		code := k.code(a.app, nil)
		thief, unknown, public := a, a, a
		thief.key = testkit.NewClientKey(t, "ES256", "k1")
		unknown.id = "abcdefghijklmnopqrstuvwxyz"
		public.app = k.register(appRedirect)
		answers := map[string]answer{}
		for name, as := range map[string]keyApp{"wrong key": thief, "unknown client": unknown, "public client": public} {
			answers[name] = k.denied(401, "invalid_client", func() answer { return k.redeem(as.app, code, as.prove()) })
		}
		if _, err := k.App.Clients.Disable(k.ctx, a.id); err != nil {
			t.Fatal(err)
		}
		answers["disabled"] = k.denied(401, "invalid_client", func() answer { return k.redeem(a.app, code, a.prove()) })
		for name, got := range answers {
			if got.raw != answers["wrong key"].raw {
				t.Errorf("%s: %s", name, got.raw)
			}
		}
	})
}

// RFC 6749 §2.3: one method a request, and it is the registered one; at refresh
// the one of the code (D8).
func TestCA08_OneMethod(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.keyApps("EdDSA")[1]
		first := k.redeem(a.app, k.code(a.app, nil), a.prove())
		want(t, first, 200, "")
		token := first.body.RefreshToken
		for name, tt := range map[string]struct {
			as     app
			form   url.Values
			status int
			code   string
		}{
			"nothing":              {app{id: a.id, method: registration.AuthNone}, nil, 401, "invalid_client"},
			"a secret":             {app{id: a.id, secret: "x", method: registration.AuthClientSecretPost}, nil, 401, "invalid_client"},
			"Basic":                {app{id: a.id, secret: "x", method: registration.AuthClientSecretBasic}, nil, 401, "invalid_client"},
			"assertion and secret": {a.app, a.proven(url.Values{"client_secret": {"x"}}), 400, "invalid_request"},
			"assertion and Basic":  {app{id: a.id, method: registration.AuthClientSecretBasic}, a.prove(), 400, "invalid_request"},
			"two assertions":       {a.app, url.Values{"client_assertion_type": {testkit.AssertionType}, "client_assertion": {"a", "b"}}, 400, "invalid_request"},
		} {
			t.Run(name, func(t *testing.T) {
				k.denied(tt.status, tt.code, func() answer { return k.refresh(tt.as, token, tt.form) })
			})
		}
		want(t, k.refresh(a.app, token, a.prove()), 200, "")
		basic := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		as := keyApp{app{id: basic.id, method: registration.AuthPrivateKeyJWT, redirect: appRedirect}, k, a.key}
		code := k.code(basic, nil)
		k.denied(401, "invalid_client", func() answer { return k.redeem(as.app, code, as.prove()) })
	})
}

func TestCA09_Replay(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.keyApps("ES256")[0]
		proof := a.prove()
		first := k.redeem(a.app, k.code(a.app, nil), proof)
		want(t, first, 200, "")
		token := first.body.RefreshToken
		got := k.denied(401, "invalid_client", func() answer { return k.refresh(a.app, token, proof) })
		if !strings.Contains(got.raw, "used before") {
			t.Errorf("the developer is not told why: %s", got.raw)
		}
		// after a restart, and in another process
		again := &kit{Server: k.Again(t), t: t, ctx: k.ctx}
		k.denied(401, "invalid_client", func() answer { return again.refresh(a.app, token, proof) })
		k.denied(401, "invalid_client", func() answer { return k.post("/revoke", a.app, changed(proof, url.Values{"token": {token}})) })
		// collecting does not forget it while it would be accepted
		k.Clock.Advance(119 * time.Second) // a minute of life and one of skew, less a second
		if err := k.DB.Collect(k.ctx, k.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		k.denied(401, "invalid_client", func() answer { return again.refresh(a.app, token, proof) })
		k.Clock.Advance(time.Second)
		if err := k.DB.Collect(k.ctx, k.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		if dump := testkit.Dump(k.ctx, t, k.DB); strings.Contains(section(dump, "used_assertions"), a.id) {
			t.Error("an expired row was not collected")
		}
		k.denied(401, "invalid_client", func() answer { return again.refresh(a.app, token, proof) })
		// another client may use the same jti
		b := k.keyApps("ES256")[1]
		jti := map[string]any{"jti": "the same"}
		want(t, k.refresh(a.app, token, a.assertion(nil, jti)), 200, "")
		want(t, k.redeem(b.app, k.code(b.app, nil), b.assertion(nil, jti)), 200, "")
	})
}

// section returns a table's lines of a dump.
func section(dump, table string) string {
	var b strings.Builder
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, table) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestCA09_ParallelReplay(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.keyApps("ES256")[0]
		first := k.redeem(a.app, k.code(a.app, nil), a.prove())
		want(t, first, 200, "")
		// inside the retry window a refresh can be repeated: only the jti decides
		answers := race(t, k, a.app, a.proven(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first.body.RefreshToken}}))
		if ok, lost := count(answers, 200, ""), count(answers, 401, "invalid_client"); ok != 1 || lost != racers-1 {
			t.Errorf("%d accepted and %d invalid_client, want 1 and %d", ok, lost, racers-1)
		}
	})
}

// A refused request uses up no assertion, unless it was the assertion that was
// right (A18).
func TestA18_AssertionIsUsedLast(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.keyApps("ES256")[0]
		if _, err := k.App.Clients.Disable(k.ctx, a.id); err != nil {
			t.Fatal(err)
		}
		proof := a.prove()
		k.denied(401, "invalid_client", func() answer { return k.refresh(a.app, "x", proof) })
		if _, err := k.App.Clients.Enable(k.ctx, a.id); err != nil {
			t.Fatal(err)
		}
		k.denied(401, "invalid_client", func() answer {
			return k.refresh(a.app, "x", changed(maps.Clone(proof), url.Values{"client_id": {"another"}}))
		})
		first := k.redeem(a.app, k.code(a.app, nil), proof)
		want(t, first, 200, "")
		// a wrong verifier with a right assertion keeps the code
		code := k.code(a.app, nil)
		want(t, k.redeem(a.app, code, a.proven(url.Values{"code_verifier": {strings.Repeat("x", 50)}})), 400, "invalid_grant")
		want(t, k.redeem(a.app, code, a.prove()), 200, "")
	})
}

func TestCA11_JWKSURI(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		key := testkit.NewClientKey(t, "ES256", "k1")
		jwks := testkit.JWKS(t, key)
		host := testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/good":
				_, _ = w.Write(jwks)
			case "/redirect":
				http.Redirect(w, r, "/good", http.StatusFound)
			case "/large":
				_, _ = w.Write(bytes.Repeat([]byte(" "), 10<<20))
			default:
				http.NotFound(w, r)
			}
		}))
		other := testkit.NewHTTPSHost(t, http.NotFoundHandler(), "other.example")
		outbound := testkit.OutboundOptions(host)
		_, port, _ := strings.Cut(other.Host, ":")
		outbound.OwnHosts = []string{"id.example.com"}
		client, err := netguard.New(outbound)
		if err != nil {
			t.Fatal(err)
		}
		k := &kit{Server: testkit.NewServerWithOutbound(t, db, client), t: t, ctx: t.Context()}
		k.person = k.Person()
		at := func(uri string) keyApp { return keyApp{k.registerKeys(`"jwks_uri":"` + uri + `"`), k, key} }

		good := at(host.URL + "/good")
		before := host.Requests()
		if before != 0 {
			t.Errorf("registration asked the host %d times", before)
		}
		first := k.redeem(good.app, k.code(good.app, nil), good.prove())
		want(t, first, 200, "")
		want(t, k.refresh(good.app, first.body.RefreshToken, good.prove()), 200, "")
		if n := host.Requests(); n != 1 {
			t.Errorf("%d fetches for two requests, want 1", n)
		}
		host.Resolver.Set("private.example", addresses("127.0.0.1"))
		host.Resolver.Set("metadata.example", addresses("169.254.169.254"))
		host.Resolver.Set("mixed.example", addresses(publicAddress, "10.0.0.1"))
		private := map[string]string{"private address": "https://127.0.0.1:" + port + "/good", "loopback name": "https://localhost:" + port + "/good",
			"metadata service": "https://169.254.169.254/latest", "other port": "https://private.example:" + port + "/good",
			"10/8": "https://10.0.0.1/keys", "ourselves": testkit.Issuer + "/jwks.json"}
		for name, uri := range private {
			t.Run("DR-08 CA-11 "+name, func(*testing.T) {
				k.denied(400, "invalid_client_metadata", func() answer { return k.tryRegisterKeys(`"jwks_uri":"` + uri + `"`) })
			})
		}
		// the operator is told the same; and what an older version let into a row is not asked either
		inRow := func(uri string) keyApp {
			_, _, err := k.App.Clients.Add(k.ctx, registration.AddOptions{Name: "Atlas", RedirectURIs: []string{appRedirect},
				AuthMethod: registration.AuthPrivateKeyJWT, JWKSURI: uri})
			if !errors.Is(err, registration.ErrKeysURL) {
				t.Errorf("DR-08 the operator adds %s: %v", uri, err)
			}
			a := k.keyClient(registration.AddOptions{JWKSURI: host.URL + "/good"})
			if _, err := k.App.Clients.Update(k.ctx, a.id, registration.UpdateOptions{JWKSURI: &uri}); !errors.Is(err, registration.ErrKeysURL) {
				t.Errorf("DR-08 the operator changes to %s: %v", uri, err)
			}
			c, err := k.DB.GetClient(k.ctx, a.id)
			c.Metadata.JWKSURI = uri
			if err := errors.Join(err, k.DB.UpdateClient(k.ctx, c)); err != nil {
				t.Fatal(err)
			}
			return keyApp{a, k, key}
		}
		apps := map[string]keyApp{
			"redirect": at(host.URL + "/redirect"), "10 MB": at(host.URL + "/large"), "missing": at(host.URL + "/missing"),
			"private by DNS": at("https://private.example/good"), "metadata service by DNS": at("https://metadata.example/good"),
			"private beside public": at("https://mixed.example/good"), "no such name": at("https://none.example/good"),
		}
		for name, uri := range private {
			apps["of the operator: "+name] = inRow(uri)
		}
		for name, a := range apps {
			t.Run("CA-11 "+name, func(t *testing.T) {
				code := k.code(a.app, nil)
				got := k.denied(401, "invalid_client", func() answer { return k.redeem(a.app, code, a.prove()) })
				if strings.Contains(got.raw, "127.0.0.1") || strings.Contains(got.raw, "jwks_uri") {
					t.Errorf("the answer tells what stands there: %s", got.raw)
				}
			})
		}
		if n := other.Requests(); n != 0 {
			t.Errorf("a private host saw %d requests", n)
		}
		for _, uri := range []string{"http://client.example/k", "https://u:p@client.example/k", "file:///etc/passwd", ""} {
			want(t, k.tryRegisterKeys(fmt.Sprintf(`"jwks_uri":%q`, uri)), 400, "invalid_client_metadata")
		}
	})
}

// A client registers public keys only: one that sends others has lost them.
func TestRFC7591_PrivateKeysAreRefused(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		key := testkit.NewClientKey(t, "RS256", "k1")
		k.denied(400, "invalid_client_metadata", func() answer {
			return k.tryRegisterKeys(`"jwks":{"keys":[` + string(key.PrivateJWK(t)) + `]}`)
		})
	})
}

// Wrong secrets wait after 30 a minute, by client and source (CA-12).
func TestCA12_WrongSecrets(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range k.confidential() {
			first := k.connect(a, nil)
			wrong := a
			wrong.secret = "wrong"
			for range 30 {
				want(t, k.refresh(wrong, first.body.RefreshToken, nil), 401, "invalid_client")
			}
			for _, as := range []app{wrong, a} { // a guess that is right must not be told from one that is wrong
				got := k.refresh(as, first.body.RefreshToken, nil)
				want(t, got, 429, "temporarily_unavailable")
				if got.header.Get("Retry-After") == "" {
					t.Error("429 without Retry-After")
				}
			}
			// others are not in its way: from elsewhere, and other clients here
			elsewhere := k.from("198.51.100.7:1234")
			second := elsewhere.refresh(a, first.body.RefreshToken, nil)
			want(t, second, 200, "")
			other := k.operatorApp(a.method, appRedirect)
			k.connect(other, nil)
			k.Clock.Advance(2 * time.Second)
			want(t, k.refresh(a, second.body.RefreshToken, nil), 200, "")
		}
	})
}

// A URL client with a secret or unknown here is told so, and nothing is fetched.
func TestCA14_UnknownURLClientAtToken(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		host := testkit.NewHTTPSHost(t, http.NotFoundHandler())
		k := &kit{Server: testkit.NewServerWithHosts(t, db, []*testkit.HTTPSHost{host}), t: t, ctx: t.Context()}
		key := testkit.NewClientKey(t, "ES256", "k1")
		a := keyApp{app{id: host.URL + "/client.json", method: registration.AuthPrivateKeyJWT, redirect: appRedirect}, k, key}
		for name, got := range map[string]func() answer{
			"CA-14 none": func() answer {
				return k.refresh(app{id: a.id, method: registration.AuthNone}, "x", nil)
			},
			"CA-14 Basic": func() answer {
				return k.refresh(app{id: url.QueryEscape(a.id), method: registration.AuthClientSecretBasic}, "x", nil)
			},
			"CA-14 assertion": func() answer { return k.refresh(a.app, "x", a.prove()) },
			"CA-13 secret": func() answer {
				return k.refresh(app{id: a.id, secret: "x", method: registration.AuthClientSecretPost}, "x", nil)
			},
		} {
			t.Run(name, func(t *testing.T) { k.denied(401, "invalid_client", got) })
		}
		if n := host.Requests(); n != 0 {
			t.Errorf("the token endpoint fetched %d documents", n)
		}
	})
}

// from is k as a client at another address sees it.
func (k *kit) from(remote string) *kit {
	other := *k
	other.remote = remote
	return &other
}

// Many clients with their own keys do not disturb one another.
func TestRFC7523_ManyClients(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		apps := k.keyApps("ES256", "EdDSA")
		codes := make([]string, len(apps))
		for i, a := range apps {
			codes[i] = k.code(a.app, nil)
		}
		proofs := make([]url.Values, len(apps))
		for i, a := range apps {
			proofs[i] = a.proven(url.Values{"grant_type": {"authorization_code"}, "code": {codes[i]}, "code_verifier": {verifier}})
		}
		var all sync.WaitGroup
		for i, a := range apps {
			all.Go(func() {
				if got, err := k.tryPost("/token", a.app, proofs[i]); err != nil || got.status != 200 {
					t.Errorf("%s: %d %s %v", a.key.Alg, got.status, got.raw, err)
				}
			})
		}
		all.Wait()
	})
}
