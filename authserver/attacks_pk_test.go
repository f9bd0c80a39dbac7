package authserver_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// eachRaw is each with the same database as plain SQL, for rows that the server
// itself would never write.
func eachRaw(t *testing.T, fn func(t *testing.T, k *kit, raw *sql.DB)) {
	t.Helper()
	t.Parallel()
	for name, driver := range map[string]string{"sqlite": "sqlite", "postgres": "pgx"} {
		t.Run(name, func(t *testing.T) {
			at := testkit.SQLitePath
			if driver == "pgx" {
				at = testkit.PostgresURL
			}
			where := at(t)
			db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: where, MaxConns: 4, Synchronous: "NORMAL"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			raw, err := sql.Open(driver, where)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = raw.Close() })
			fn(t, newKit(t, db), raw)
		})
	}
}

func TestPK_Challenge(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		c := k.newCast()
		confidential := c
		confidential.trusted = k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		good := challenge(verifier)
		for _, tt := range []struct {
			name    string
			changes url.Values
		}{
			{"PK-01 no code_challenge", url.Values{"code_challenge": nil, "code_challenge_method": nil}},
			{"PK-01 method alone", url.Values{"code_challenge": nil}},
			{"PK-01 empty code_challenge", values("code_challenge", "")},
			{"PK-02 plain", values("code_challenge", verifier, "code_challenge_method", "plain")},
			{"PK-02 plain with an S256 challenge", values("code_challenge_method", "plain")},
			{"PK-02 s256", values("code_challenge_method", "s256")},
			{"PK-02 unknown method", values("code_challenge_method", "S512")},
			{"PK-02 not what S256 makes", values("code_challenge", "short")},
			{"PK-02 a character too many", values("code_challenge", good+"A")},
			{"PK-02 padded", values("code_challenge", good+"=")},
			{"PK-02 stray bits", values("code_challenge", good[:42]+"_")},
			{"PK-03 method omitted", url.Values{"code_challenge_method": nil}},
			{"PK-03 method empty", values("code_challenge_method", "")},
		} {
			k.sub(tt.name, func(*testing.T) {
				k.refusedAtAuthorize(c, tt.changes, "invalid_request")
				k.refusedAtAuthorize(confidential, tt.changes, "invalid_request")
			})
		}
	})
}

func TestPK_Verifier(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		other := strings.Repeat("another-verifier-", 3)
		for _, a := range []app{k.register(appRedirect), k.operatorApp(registration.AuthClientSecretPost, appRedirect)} {
			for _, tt := range []struct {
				name    string
				changes url.Values
				code    string
			}{
				{"PK-05 no code_verifier", url.Values{"code_verifier": nil}, "invalid_request"},
				{"PK-05 empty code_verifier", values("code_verifier", ""), "invalid_request"},
				{"PK-05 twice", url.Values{"code_verifier": {verifier, verifier}}, "invalid_request"},
				{"PK-06 wrong verifier", values("code_verifier", strings.Repeat("x", 43)), "invalid_grant"},
				{"PK-06 verifier of another request", values("code_verifier", other), "invalid_grant"},
				{"PK-06 verifier = challenge", values("code_verifier", challenge(verifier)), "invalid_grant"},
				{"PK-06 too short", values("code_verifier", verifier[:42]), "invalid_grant"},
				{"PK-06 too long", values("code_verifier", strings.Repeat("a", 129)), "invalid_grant"},
				{"PK-06 a foreign character", values("code_verifier", verifier+"+"), "invalid_grant"},
				{"PK-06 with a space behind", values("code_verifier", verifier+" "), "invalid_grant"},
			} {
				k.sub(tt.name+" "+a.method, func(t *testing.T) {
					second := k.code(a, values("code_challenge", challenge(other)))
					code := k.code(a, nil)
					k.denied(400, tt.code, func() answer { return k.redeem(a, code, tt.changes) })
					k.unburned(a, code)
					want(t, k.redeem(a, second, values("code_verifier", other)), 200, "")
				})
			}
		}
	})
}

// TestPK_StoredChallenge: a code whose row has no usable challenge is never
// redeemed, whatever the row says.
func TestPK_StoredChallenge(t *testing.T) {
	eachRaw(t, func(t *testing.T, k *kit, raw *sql.DB) {
		a := k.register(appRedirect)
		for _, tt := range []struct {
			name, stored string
			changes      url.Values
			code         string
		}{
			{"PK-08 PK-09 no challenge, with a verifier", "", nil, "invalid_grant"},
			// PK-05 comes first, and is no way round
			{"PK-08 no challenge, without a verifier", "", url.Values{"code_verifier": nil}, "invalid_request"},
			{"PK-08 plain challenge", verifier, nil, "invalid_grant"},
		} {
			k.sub(tt.name, func(t *testing.T) {
				code := k.code(a, nil)
				if _, err := raw.ExecContext(k.ctx, `UPDATE grants SET code_challenge = $1 WHERE generation = 0`, tt.stored); err != nil {
					t.Fatal(err)
				}
				k.denied(400, tt.code, func() answer { return k.redeem(a, code, tt.changes) })
			})
		}
	})
}
