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

// A machine that is blocked or removed between its authentication and its token
// gets none, and is told what it will be told from then on (A19).
func TestD23_A19_MachineGoneMeanwhile(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, ...testkit.DatabaseOption) *sqlstore.Store{
		"sqlite": testkit.OpenSQLite, "postgres": testkit.OpenPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var atTouch atomic.Pointer[func()]
			k := newKit(t, open(t, func(o *sqlstore.Options) {
				o.OnStatement = func(_ context.Context, q string) {
					if strings.HasPrefix(q, "UPDATE clients SET last_used_at") {
						if fn := atTouch.Swap(nil); fn != nil {
							(*fn)()
						}
					}
				}
			}))
			for name, end := range map[string]func(context.Context, string) (int, error){
				"blocked": k.App.Clients.Block, "removed": k.App.Clients.Remove,
			} {
				a := k.machine(registration.AuthClientSecretBasic, "", testkit.Resource)
				gone := func() {
					if _, err := end(k.ctx, a.id); err != nil {
						t.Error(err)
					}
				}
				atTouch.Store(&gone)
				got := k.credentials(a, nil)
				want(t, got, 401, "invalid_client")
				if got.body.AccessToken != "" || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Basic") {
					t.Errorf("%s: %v %s", name, got.header, got.raw)
				}
			}
		})
	}
}
