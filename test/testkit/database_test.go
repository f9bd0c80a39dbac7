package testkit_test

import (
	"context"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// Each test gets a migrated database that no other test sees.
func TestEachDatabase(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
				ctx := context.Background()
				states, err := db.Migrations(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range states {
					if s.AppliedAt.IsZero() {
						t.Errorf("migration %s is pending", s.Name)
					}
				}
				if err := db.Append(ctx, audit.New(ctx, time.Unix(1, 0), audit.Event{Name: name})); err != nil {
					t.Fatal(err)
				}
				events, err := db.ListEvents(ctx, 10)
				if err != nil || len(events) != 1 || events[0].Name != name {
					t.Errorf("ListEvents = %v, %v; want the one event of this test", events, err)
				}
			})
		})
	}
}

func TestEmptyPostgresURL(t *testing.T) {
	t.Parallel()
	db, err := sqlstore.Open(context.Background(), sqlstore.Options{URL: testkit.EmptyPostgresURL(t), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if n, err := db.Migrate(context.Background()); err != nil || n == 0 {
		t.Errorf("Migrate of an empty database = %d, %v; want every migration applied", n, err)
	}
}
