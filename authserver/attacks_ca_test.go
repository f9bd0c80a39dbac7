package authserver_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// confidential makes a client of each confidential method.
func (k *kit) confidential() []app {
	k.t.Helper()
	return []app{k.operatorApp(registration.AuthClientSecretBasic, appRedirect), k.operatorApp(registration.AuthClientSecretPost, appRedirect)}
}

func TestCA01_ConfidentialClientWithoutSecret(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range k.confidential() {
			bare := app{id: a.id, method: registration.AuthNone, redirect: a.redirect}
			empty := app{id: a.id, method: a.method, redirect: a.redirect}
			code := k.code(a, nil)
			for _, as := range []app{bare, empty} {
				k.denied(401, "invalid_client", func() answer { return k.redeem(as, code, nil) })
			}
			first := k.redeem(a, code, nil)
			want(t, first, 200, "")
			for _, as := range []app{bare, empty} {
				k.denied(401, "invalid_client", func() answer { return k.refresh(as, first.body.RefreshToken, nil) })
			}
			want(t, k.refresh(a, first.body.RefreshToken, nil), 200, "")
		}
	})
}

func TestCA02_UnknownClientLooksLikeAWrongSecret(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range k.confidential() {
			code := k.code(a, nil)
			wrong, unknown := a, a
			wrong.secret = "wrong"
			unknown.id = "abcdefghijklmnopqrstuvwxyz"
			one := k.denied(401, "invalid_client", func() answer { return k.redeem(wrong, code, nil) })
			two := k.denied(401, "invalid_client", func() answer { return k.redeem(unknown, code, nil) })
			if one.raw != two.raw {
				t.Errorf("answers differ:\n%s\n%s", one.raw, two.raw)
			}
			for _, got := range []answer{one, two} {
				challenge := got.header.Get("WWW-Authenticate")
				if (a.method == registration.AuthClientSecretBasic) != (challenge == `Basic realm="ostiary"`) {
					t.Errorf("%s: WWW-Authenticate = %q", a.method, challenge)
				}
			}
			want(t, k.redeem(a, code, nil), 200, "")
		}
		// malformed Basic says no more
		for _, header := range []string{"Basic", "Basic !", "Basic Og==", "Basic " + "YQ==", "basic eDp5"} {
			got := k.denied(401, "invalid_client", func() answer {
				return k.raw("POST", "/token", "grant_type=refresh_token&refresh_token=x", http.Header{"Authorization": {header}})
			})
			if got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%q: no challenge", header)
			}
		}
	})
}

func TestCA05_PublicClientWithASecret(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		for _, method := range []string{registration.AuthClientSecretBasic, registration.AuthClientSecretPost} {
			as := app{id: a.id, secret: "something", method: method, redirect: a.redirect}
			k.denied(401, "invalid_client", func() answer { return k.redeem(as, code, nil) })
		}
		first := k.redeem(a, code, nil)
		want(t, first, 200, "")
		as := app{id: a.id, secret: "something", method: registration.AuthClientSecretPost}
		k.denied(401, "invalid_client", func() answer { return k.refresh(as, first.body.RefreshToken, nil) })
		// RFC 6749 §2.3: one method a request, and one client
		both := app{id: a.id, method: registration.AuthClientSecretBasic, redirect: a.redirect}
		k.denied(400, "invalid_request", func() answer {
			return k.refresh(both, first.body.RefreshToken, url.Values{"client_secret": {"x"}})
		})
		k.denied(400, "invalid_request", func() answer {
			return k.refresh(both, first.body.RefreshToken, url.Values{"client_id": {"another"}})
		})
		want(t, k.refresh(a, first.body.RefreshToken, nil), 200, "")
	})
}

func TestCA07_ExpiredOrRotatedSecret(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range k.confidential() {
			first := k.connect(a, nil)
			c, err := k.DB.GetClient(k.ctx, a.id)
			if err != nil {
				t.Fatal(err)
			}
			c.SecretExpiresAt = k.Clock.Now().Add(time.Minute)
			if err := k.DB.UpdateClient(k.ctx, c); err != nil {
				t.Fatal(err)
			}
			second := k.refresh(a, first.body.RefreshToken, nil)
			want(t, second, 200, "")
			k.Clock.Advance(time.Minute)
			k.denied(401, "invalid_client", func() answer { return k.refresh(a, second.body.RefreshToken, nil) })

			rotated := oauth.NewSecret()
			c.SecretExpiresAt, c.SecretHash = time.Time{}, registration.HashSecret(c.ID, rotated)
			if err := k.DB.UpdateClient(k.ctx, c); err != nil {
				t.Fatal(err)
			}
			k.denied(401, "invalid_client", func() answer { return k.refresh(a, second.body.RefreshToken, nil) })
			a.secret = rotated.Reveal()
			want(t, k.refresh(a, second.body.RefreshToken, nil), 200, "")
		}
	})
}

// RFC 6749 §2.3.1: every server takes Basic for a secret; the go-sdk and the
// Inspector choose by the server's list, whatever was registered.
func TestA17_SecretEitherWay(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		methods := []string{registration.AuthClientSecretBasic, registration.AuthClientSecretPost}
		for i, registered := range methods {
			a := k.operatorApp(registered, appRedirect)
			a.method = methods[1-i]
			first := k.connect(a, nil)
			want(t, k.refresh(a, first.body.RefreshToken, nil), 200, "")
			a.secret += "x"
			k.denied(401, "invalid_client", func() answer { return k.refresh(a, first.body.RefreshToken, nil) })
			a.secret = ""
			k.denied(401, "invalid_client", func() answer { return k.refresh(a, first.body.RefreshToken, nil) })
		}
	})
}

// After a rotation machines are changed one by one: both secrets work, for every
// grant and endpoint, until the date.
func TestCA07_TwoSecretsSideBySide(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, method := range []string{registration.AuthClientSecretBasic, registration.AuthClientSecretPost} {
			person, machine := k.operatorApp(method, appRedirect), k.machine(method, "", testkit.Resource)
			token := k.connect(person, nil).body.RefreshToken
			use := func(a, m app) []func() answer {
				return []func() answer{
					func() answer { return k.refresh(a, token, nil) },
					func() answer { return k.credentials(m, nil) },
					func() answer { return k.post("/revoke", a, url.Values{"token": {"unknown"}}) },
				}
			}
			olds, news := []app{person, machine}, []app{person, machine}
			for i, a := range olds {
				_, secret, err := k.App.Clients.RotateSecret(k.ctx, a.id, registration.RotateOptions{Rotation: oauth.Rotation{OldUntil: k.Clock.Now().Add(time.Minute)}})
				if err != nil {
					t.Fatal(err)
				}
				news[i].secret = secret.Reveal()
			}
			for name, apps := range map[string][]app{"old": olds, "new": news} {
				for i, fn := range use(apps[0], apps[1]) {
					if got := fn(); got.status != 200 {
						t.Errorf("CA-07 %s, %s secret, use %d: %d %s", method, name, i, got.status, got.raw)
					}
				}
			}
			k.Clock.Advance(time.Minute)
			for _, fn := range use(olds[0], olds[1]) {
				k.denied(401, "invalid_client", fn)
			}
			want(t, k.credentials(news[1], nil), 200, "")
		}
	})
}

func TestCA15_DeletedClient(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range append(k.confidential(), k.register(loopbackRedirect)) {
			first, code := k.connect(a, nil), k.code(a, nil)
			if ended, err := k.App.Clients.Remove(k.ctx, a.id); err != nil || ended != 2 {
				t.Fatalf("remove client: %d grants ended, %v", ended, err)
			}
			for _, got := range []answer{
				k.denied(401, "invalid_client", func() answer { return k.refresh(a, first.body.RefreshToken, nil) }),
				k.denied(401, "invalid_client", func() answer { return k.redeem(a, code, nil) }),
			} {
				if (got.header.Get("WWW-Authenticate") != "") != (a.method == registration.AuthClientSecretBasic) {
					t.Errorf("%s: WWW-Authenticate = %q", a.method, got.header.Get("WWW-Authenticate"))
				}
			}
			if live := k.live(); len(live) != 0 {
				t.Errorf("%d live grants of a deleted client", len(live))
			}
		}
	})
}

// A disabled client answers like an unknown one; its grants wait for it.
func TestCA15_DisabledClient(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		first, code := k.connect(a, nil), k.code(a, nil)
		if _, err := k.App.Clients.Disable(k.ctx, a.id); err != nil {
			t.Fatal(err)
		}
		k.denied(401, "invalid_client", func() answer { return k.refresh(a, first.body.RefreshToken, nil) })
		k.denied(401, "invalid_client", func() answer { return k.redeem(a, code, nil) })
		if _, err := k.App.Clients.Enable(k.ctx, a.id); err != nil {
			t.Fatal(err)
		}
		want(t, k.refresh(a, first.body.RefreshToken, nil), 200, "")
		want(t, k.redeem(a, code, nil), 200, "")
	})
}
