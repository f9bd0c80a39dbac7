package authserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// keyed is a client of a document that authenticates by private_key_jwt.
func (w *world) keyed(path, jwksURI string, key *testkit.ClientKey) keyApp {
	a := w.site.publish(path, map[string]any{"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": jwksURI}, appRedirect)
	a.method = registration.AuthPrivateKeyJWT
	return keyApp{a, w.kit, key}
}

// CA-08, CA-09 and CA-01 again for a client of a document, whose keys are fetched.
func TestCA08_CA09_ClientOfADocument(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		key := testkit.NewClientKey(t, "ES256", "k1")
		var jwks any
		if err := json.Unmarshal(testkit.JWKS(t, key), &jwks); err != nil {
			t.Fatal(err)
		}
		w.set("/keys", jwks)
		a := w.keyed("/client.json", "https://quill.example/keys", key)
		thief, rs := a, a
		thief.key, rs.key = testkit.NewClientKey(t, "ES256", "k1"), testkit.NewClientKey(t, "RS256", "k1")
		code, now := w.code(a.app, nil), w.Clock.Now().Unix()
		parts := strings.Split(a.prove().Get("client_assertion"), ".")
		for name, form := range map[string]url.Values{
			"CA-08 alg none":         changed(a.prove(), values("client_assertion", "eyJhbGciOiJub25lIn0."+parts[1]+".")),
			"CA-08 HS256":            a.assertion(map[string]any{"alg": "HS256"}, nil),
			"CA-08 another key":      thief.prove(),
			"CA-08 another key type": rs.prove(),
			"CA-08 exp past":         a.assertion(nil, map[string]any{"exp": now - 61, "iat": now - 120}),
			"CA-08 exp far away":     a.assertion(nil, map[string]any{"exp": now + 660}),
			"CA-08 no jti":           a.assertion(nil, map[string]any{"jti": nil}),
			"CA-08 iss is not sub":   a.assertion(nil, map[string]any{"iss": "https://quill.example/other.json"}),
			"CA-08 another's id":     a.assertion(nil, map[string]any{"iss": a.id + "/", "sub": a.id + "/"}),
			"CA-01 nothing":          {"client_id": {a.id}},
			"CA-13 a secret":         {"client_id": {a.id}, "client_secret": {"secret"}},
		} {
			w.sub(name, func(*testing.T) {
				w.denied(401, "invalid_client", func() answer { return w.redeem(a.app, code, form) })
			})
		}
		proof := a.prove()
		first := w.redeem(a.app, code, proof)
		want(t, first, 200, "")
		again := &kit{Server: w.Again(t), t: t, ctx: w.ctx}
		for name, k := range map[string]*kit{"CA-09 replay": w.kit, "CA-09 replay at another process": again} {
			w.sub(name, func(*testing.T) {
				w.denied(401, "invalid_client", func() answer { return k.refresh(a.app, first.body.RefreshToken, proof) })
			})
		}
		want(t, again.refresh(a.app, first.body.RefreshToken, a.prove()), 200, "")
		if n := w.host.Requests(); n > 3 {
			t.Errorf("%d fetches, want the document, and the keys once a process", n)
		}
	})
}

// CA-11 for a document: its jwks_uri leads nowhere that the document itself could
// not be. One that can never work is refused with the document, as at /register
// (DR-08): its client would get a code and nothing for it. One that another method
// can do without is let be.
func TestCA11_KeysOfADocument(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		key := testkit.NewClientKey(t, "ES256", "k1")
		w.dns.Set("private.example", addresses("10.0.0.1"))
		w.dns.Set("mixed.example", addresses(publicAddress, "127.0.0.1"))
		w.dns.Set("metadata.example", addresses("169.254.169.254"))
		for name, uri := range map[string]string{
			"an address": "https://10.0.0.1/keys", "the metadata service": "https://169.254.169.254/keys", "another port": "https://quill.example:8443/keys",
			"localhost": "https://localhost/keys", "this server": testkit.Issuer + "/jwks.json", "http": "http://quill.example/keys",
		} {
			path := "/" + strings.ReplaceAll(name, " ", "-")
			w.sub("DR-08 CA-11 "+name, func(*testing.T) {
				w.invalid(w.keyed(path+".json", uri, key).id)
			})
			if name == "http" {
				continue // which is no URL of keys for anybody
			}
			w.sub("DR-08 needs none of "+name, func(*testing.T) {
				w.connect(w.publish(path+"-or-none.json", map[string]any{"token_endpoint_auth_method": "private_key_jwt",
					"token_endpoint_auth_methods_supported": []string{"none", "private_key_jwt"}, "jwks_uri": uri}, appRedirect), nil)
			})
		}
		for name, uri := range map[string]string{
			"private by DNS": "https://private.example/keys", "mixed answers": "https://mixed.example/keys",
			"metadata by DNS": "https://metadata.example/keys",
		} {
			w.sub("CA-11 "+name, func(t *testing.T) {
				a := w.keyed("/"+strings.ReplaceAll(name, " ", "-")+".json", uri, key)
				code := w.code(a.app, nil)
				got := w.denied(401, "invalid_client", func() answer { return w.redeem(a.app, code, a.prove()) })
				if strings.Contains(got.raw, "10.0.0.1") || strings.Contains(got.raw, "refused") {
					t.Errorf("the answer tells what stands there: %s", got.raw)
				}
			})
		}
		w.heardNothing(t)
	})
}

// CA-15 for a document: a blocked client is told what an unknown one is, its
// grants are dead, and its document does not bring it back.
func TestCA15_BlockedClientOfADocument(t *testing.T) {
	eachWorld(t, []string{"quill.example"}, func(t *testing.T, w *world) {
		a := w.site.publish("/client.json", nil, loopbackRedirect)
		held, code := w.connect(a, nil), w.code(a, nil)
		if ended, err := w.App.Clients.Block(w.ctx, a.id); err != nil || ended != 2 {
			t.Fatalf("block: %d grants ended, %v", ended, err)
		}
		w.denied(401, "invalid_client", func() answer { return w.refresh(a, held.body.RefreshToken, nil) })
		w.denied(401, "invalid_client", func() answer { return w.redeem(a, code, nil) })
		w.Clock.Advance(48 * time.Hour)
		before := w.host.Requests()
		w.stopped(w.authorizeURL(a, nil))
		if w.host.Requests() != before || len(w.live()) != 0 {
			t.Errorf("%d fetches of a blocked client, %d live grants", w.host.Requests()-before, len(w.live()))
		}
	})
}

// CA-02, the timing: to whoever has no code of the client, which would name it, an
// unknown client costs the statements that a wrong secret or key does, so that
// only microseconds tell them apart.
func TestCA02_TheSameWork(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, ...testkit.DatabaseOption) *sqlstore.Store{
		"sqlite": testkit.OpenSQLite, "postgres": testkit.OpenPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			k := newKit(t, open(t, func(o *sqlstore.Options) { o.OnStatement = func(context.Context, string) { n.Add(1) } }))
			own := k.code(k.register(appRedirect), nil) // the attacker's
			cost := func(a app, code string, form url.Values) int64 {
				t.Helper()
				n.Store(0)
				want(t, k.redeem(a, code, form), 401, "invalid_client")
				return n.Load()
			}
			for _, code := range []string{"ost_ac_x", own} {
				for _, a := range k.confidential() {
					wrong, unknown := a, a
					wrong.secret, unknown.id = "wrong", "abcdefghijklmnopqrstuvwxyz"
					if w, u := cost(wrong, code, nil), cost(unknown, code, nil); w != u || w == 0 {
						t.Errorf("CA-02 %s: a wrong secret takes %d statements, an unknown client %d", a.method, w, u)
					}
				}
				a := k.keyApps("ES256")[0]
				thief, unknown := a, a
				thief.key, unknown.id = testkit.NewClientKey(t, "ES256", "k1"), "abcdefghijklmnopqrstuvwxyz"
				if w, u := cost(a.app, code, thief.prove()), cost(a.app, code, unknown.prove()); w != u || w == 0 {
					t.Errorf("CA-02 assertions: a wrong key takes %d statements, an unknown client %d", w, u)
				}
			}
		})
	}
}

// CA-12: a thousand secrets in a minute; the client itself, from elsewhere, goes on.
func TestCA12_ThousandSecrets(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		token := k.connect(a, nil).body.RefreshToken
		wrong, elsewhere := a, k.from("198.51.100.7:1234")
		answers := map[int]int{}
		for i := range 1000 {
			wrong.secret = oauth.NewSecret().Reveal()
			got := k.refresh(wrong, token, nil)
			if answers[got.status]++; got.status == http.StatusTooManyRequests && got.header.Get("Retry-After") == "" {
				t.Fatal("429 without Retry-After")
			}
			if i%250 == 249 {
				got := elsewhere.refresh(a, token, nil)
				want(t, got, 200, "")
				token = got.body.RefreshToken
			}
		}
		if answers[401] != 30 || answers[429] != 970 {
			t.Errorf("CA-12: answers %v, want 30 attempts and then 429", answers)
		}
	})
}
