package sqlstore_test

import (
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestDevices(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		for _, d := range []login.Device{
			{ID: "d", Subject: "a", CreatedAt: noon(), ExpiresAt: noon().Add(time.Hour)},
			{ID: "d", Subject: "a", CreatedAt: noon(), ExpiresAt: noon().Add(2 * time.Hour)}, // extends the first
			{ID: "d", Subject: "b", CreatedAt: noon(), ExpiresAt: noon().Add(time.Hour)},
		} {
			if err := db.PutDevice(ctx, d); err != nil {
				t.Fatal(err)
			}
		}
		check := func(id, subject string, after time.Duration, want bool) {
			t.Helper()
			if got, err := db.KnowsDevice(ctx, id, subject, noon().Add(after)); got != want || err != nil {
				t.Errorf("KnowsDevice(%q, %q) after %v = %v, %v; want %v", id, subject, after, got, err, want)
			}
		}
		check("d", "a", time.Hour, true)
		check("d", "a", 2*time.Hour, false)
		check("d", "b", 0, true)
		check("d", "b", time.Hour, false)
		check("e", "a", 0, false)
		check("", "", 0, false)
		if err := db.DeleteDevices(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		check("d", "a", 0, false)
		check("d", "b", 0, true)
	})
}
