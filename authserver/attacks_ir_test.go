package authserver_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestIR05_RevokeUnknown(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a, other := k.register(appRedirect), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		mine, theirs := k.connect(a, nil), k.connect(other, nil)
		unused := k.code(other, nil)
		for name, token := range map[string]string{
			"garbage":                      "nothing",
			"a random refresh token":       "ost_rt_" + strings.Repeat("A", 72),
			"one character changed":        flip(mine.body.RefreshToken),
			"one character missing":        mine.body.RefreshToken[:len(mine.body.RefreshToken)-1],
			"a code's prefix on a refresh": strings.Replace(mine.body.RefreshToken, "ost_rt_", "ost_ac_", 1),
			"a forged access token":        flip(mine.body.AccessToken),
			"another client's refresh":     theirs.body.RefreshToken,
			"another client's access":      theirs.body.AccessToken,
			"another client's code":        unused,
			"markup and NUL-like text":     "<script>%00' OR 1=1 --",
			"64 KiB less the rest":         strings.Repeat("a", 60<<10),
		} {
			k.sub("IR-05 "+name, func(t *testing.T) {
				k.unchanged(func() {
					got := k.post("/revoke", a, values("token", token))
					want(t, got, 200, "")
					if got.raw != "" {
						t.Errorf("body %q, want none", got.raw)
					}
				})
			})
		}
		k.sub("IR-05 no token", func(*testing.T) {
			k.denied(400, "invalid_request", func() answer { return k.post("/revoke", a, values()) })
		})
		k.sub("IR-05 wrong secret", func(*testing.T) {
			wrong := other
			wrong.secret = "wrong"
			k.denied(401, "invalid_client", func() answer { return k.post("/revoke", wrong, values("token", theirs.body.RefreshToken)) })
		})
		want(t, k.refresh(a, mine.body.RefreshToken, nil), 200, "")
		want(t, k.refresh(other, theirs.body.RefreshToken, nil), 200, "")
		k.unburned(other, unused)
	})
}

// flip changes a character that carries only whole bits.
func flip(token string) string {
	i := len(token) - 4
	c := byte('A')
	if token[i] == c {
		c = 'B'
	}
	return token[:i] + string(c) + token[i+1:]
}

func TestIR07_StorageFailure(t *testing.T) {
	eachRaw(t, func(t *testing.T, k *kit, raw *sql.DB) {
		a := k.register(appRedirect)
		token := k.connect(a, nil).body.RefreshToken
		if strings.HasSuffix(t.Name(), "postgres") {
			k.sub("IR-07 the disk is full when the grant is to end", func(t *testing.T) {
				k.exec(raw, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
					$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$`)
				k.exec(raw, `CREATE TRIGGER full_disk BEFORE UPDATE ON grants FOR EACH ROW EXECUTE FUNCTION full_disk()`)
				got := k.denied(503, "temporarily_unavailable", func() answer { return k.post("/revoke", a, values("token", token)) })
				if got.header.Get("Retry-After") == "" || strings.Contains(got.raw, "space") {
					t.Errorf("answer %v %s", got.header, got.raw)
				}
				k.exec(raw, `DROP TRIGGER full_disk ON grants`)
			})
		}
		if list := k.live(); len(list) != 1 {
			t.Fatalf("%d live grants, want 1", len(list))
		}
		if err := k.DB.Close(); err != nil {
			t.Fatal(err)
		}
		got := k.post("/revoke", a, values("token", token))
		want(t, got, 503, "temporarily_unavailable")
		if got.header.Get("Retry-After") == "" {
			t.Error("IR-07: no Retry-After")
		}
	})
}

func (k *kit) exec(raw *sql.DB, query string, args ...any) {
	k.t.Helper()
	if _, err := raw.ExecContext(k.ctx, query, args...); err != nil {
		k.t.Fatal(err)
	}
}

// TestIR08_IR09: whatever string of a grant is revoked, the whole grant ends, once.
// An access token at large lives on for its ten minutes where nobody asks about it;
// who asks hears of the end at once (TestIR09_IntrospectAfterTheEnd).
func TestIR08_IR09_Revoke(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, a := range []app{k.register(appRedirect), k.operatorApp(registration.AuthClientSecretBasic, appRedirect), k.operatorApp(registration.AuthClientSecretPost, appRedirect)} {
			for _, hint := range []string{"", "refresh_token", "access_token", "nonsense"} {
				for _, kind := range []string{"refresh token", "rotated refresh token", "access token"} {
					k.sub("IR-08 IR-09 "+kind+" hinted as "+hint+" by "+a.method, func(t *testing.T) {
						kept := k.connect(a, nil)
						first := k.connect(a, nil)
						second := k.refresh(a, first.body.RefreshToken, nil)
						token := map[string]string{"refresh token": second.body.RefreshToken,
							"rotated refresh token": first.body.RefreshToken, "access token": first.body.AccessToken}[kind]
						before := len(k.live())
						form := values("token", token)
						if hint != "" {
							form.Set("token_type_hint", hint)
						}
						for range 2 { // the second finds nothing, and says the same
							want(t, k.post("/revoke", a, form), 200, "")
						}
						if n := len(k.live()); n != before-1 {
							t.Errorf("%d live grants, want %d", n, before-1)
						}
						id, _ := claims(t, second.body.AccessToken)["grant_id"].(string)
						if g, err := k.DB.GetGrant(k.ctx, id); err != nil || g.EndReason != grant.ReasonRevoked || g.Salt != nil {
							t.Errorf("grant ended as %q with %d bytes of salt (%v)", g.EndReason, len(g.Salt), err)
						}
						for _, dead := range []string{first.body.RefreshToken, second.body.RefreshToken} {
							k.denied(400, "invalid_grant", func() answer { return k.refresh(a, dead, nil) })
						}
						want(t, k.refresh(a, kept.body.RefreshToken, nil), 200, "")
					})
				}
			}
		}
		k.sub("IR-09 an unused code", func(*testing.T) {
			a := k.register(appRedirect)
			code := k.code(a, nil)
			want(k.t, k.post("/revoke", a, values("token", code)), 200, "")
			k.denied(400, "invalid_grant", func() answer { return k.redeem(a, code, nil) })
		})
		events := named(t, k, "grant.revoked")
		if len(events) != 37 {
			t.Errorf("%d audit events, want one a grant: 37", len(events))
		}
		for _, e := range events {
			if e.Subject == "" || e.Resource != testkit.Resource || e.GrantID == "" || e.Actor != e.ClientID {
				t.Errorf("event does not say who lost what: %+v", e)
			}
		}
	})
}
