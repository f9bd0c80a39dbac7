package authserver_test

import (
	"net/url"
	"testing"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestFlow(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range []app{
			k.register(loopbackRedirect),
			k.register(appRedirect),
			k.operatorApp(registration.AuthNone, appRedirect),
			k.operatorApp(registration.AuthClientSecretBasic, appRedirect),
			k.operatorApp(registration.AuthClientSecretPost, appRedirect),
		} {
			t.Run(a.method, func(t *testing.T) {
				k.t = t
				first := k.connect(a, nil)
				c := claims(t, first.body.AccessToken)
				if c["iss"] != testkit.Issuer || c["aud"] != testkit.Resource || c["client_id"] != a.id || c["scope"] != "files:read files:write" {
					t.Errorf("claims = %v", c)
				}
				if first.body.TokenType != "Bearer" || first.body.ExpiresIn != 600 || first.body.Scope != "files:read files:write" {
					t.Errorf("response = %s", first.raw)
				}
				second := k.refresh(a, first.body.RefreshToken, nil)
				want(t, second, 200, "")
				if second.body.RefreshToken == first.body.RefreshToken {
					t.Error("the refresh token was not rotated")
				}
				want(t, k.post("/revoke", a, url.Values{"token": {second.body.RefreshToken}}), 200, "")
				want(t, k.refresh(a, second.body.RefreshToken, nil), 400, "invalid_grant")
			})
		}
	})
}
