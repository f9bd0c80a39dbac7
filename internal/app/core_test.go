package app_test

import (
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestD28_RotateKnowsNoLifetimeOfItsOwn rotates as a command line does whose
// access_token_lifetime is not the server's: the old key must stay published
// for the longest token that any server may have signed with it.
func TestD28_RotateKnowsNoLifetimeOfItsOwn(t *testing.T) {
	for _, immediate := range []bool{false, true} {
		cfg := config.Default()
		cfg.StateDir = t.TempDir()
		cfg.AccessTokenLifetime = time.Minute
		core, err := app.NewCore(t.Context(), app.Options{Config: cfg, Store: testkit.OpenSQLite(t)})
		if err != nil {
			t.Fatal(err)
		}
		done, err := core.Keys.Rotate(t.Context(), immediate)
		if err != nil {
			t.Fatal(err)
		}
		lastToken := done.Next.ActiveAt.Add(config.MaxAccessTokenLifetime)
		if len(done.Previous) != 1 || done.Previous[0].RetireAt.Before(lastToken) {
			t.Errorf("immediate %t: previous = %+v, want it published until %s or later", immediate, done.Previous, lastToken)
		}
	}
}
