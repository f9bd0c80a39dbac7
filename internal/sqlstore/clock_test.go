package sqlstore_test

import (
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestD27_DatabaseClock(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		before := time.Now().Add(-time.Second)
		now, shared, err := db.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if shared && (now.Before(before) || now.After(time.Now().Add(time.Second))) {
			t.Errorf("the database on this machine says %s", now)
		}
		if !shared && !now.IsZero() {
			t.Errorf("no clock, yet it says %s", now)
		}
	})
}
