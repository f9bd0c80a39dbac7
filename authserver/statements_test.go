package authserver_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestStatements holds the token endpoint to two statements a request: client,
// account, resource and grant come in one SELECT, and one UPDATE decides. A
// client assertion is one more: the INSERT of its jti.
func TestStatements(t *testing.T) {
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
			for _, a := range []app{k.register(loopbackRedirect), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)} {
				code := k.code(a, nil)
				n.Store(0)
				first := k.redeem(a, code, nil)
				want(t, first, 200, "")
				if got := n.Swap(0); got > 2 {
					t.Errorf("%s: code took %d statements, want at most 2", a.method, got)
				}
				second := k.refresh(a, first.body.RefreshToken, nil)
				want(t, second, 200, "")
				if got := n.Swap(0); got > 2 {
					t.Errorf("%s: refresh took %d statements, want at most 2", a.method, got)
				}
				want(t, k.refresh(a, first.body.RefreshToken, nil), 200, "")
				if got := n.Swap(0); got != 1 {
					t.Errorf("%s: a repeat inside the window took %d statements, want 1", a.method, got)
				}
			}
			a := k.keyApps("ES256")[0]
			code := k.code(a.app, nil)
			n.Store(0)
			first := k.redeem(a.app, code, a.prove())
			want(t, first, 200, "")
			if got := n.Swap(0); got > 3 {
				t.Errorf("private_key_jwt: code took %d statements, want at most 3", got)
			}
			want(t, k.refresh(a.app, first.body.RefreshToken, a.prove()), 200, "")
			if got := n.Swap(0); got > 3 {
				t.Errorf("private_key_jwt: refresh took %d statements, want at most 3", got)
			}
		})
	}
}

// A request that is answered without asking reads what the person allowed once,
// whether it covers the request or what is beyond it was refused.
func TestStatementsOfRecall(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	k := newKit(t, testkit.OpenSQLite(t, func(o *sqlstore.Options) {
		o.OnStatement = func(_ context.Context, q string) {
			if strings.HasPrefix(q, "SELECT") && strings.Contains(q, "FROM consents") {
				n.Add(1)
			}
		}
	}))
	a := k.operatorApp(registration.AuthNone, appRedirect)
	k.connect(a, values("scope", oneScope))
	for range 3 {
		k.notNow(a, twoScopes)
	}
	for scope, most := range map[string]int64{oneScope: 2, twoScopes: 1} { // the code's transaction holds it, too
		n.Store(0)
		if page := k.open(k.person, k.authorizeURL(a, values("scope", scope))); page.Leaves == nil {
			t.Fatalf("%s: %d %q, want an answer without a page", scope, page.Status, page.Heading)
		}
		if got := n.Load(); got == 0 || got > most {
			t.Errorf("%s: the consent was read %d times, want at most %d", scope, got, most)
		}
	}
}
