package sqlstore_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestCA09_UseAssertion(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		now, ends := noon(), noon().Add(time.Minute)
		use := func(client, jti string, expires, at time.Time) bool {
			t.Helper()
			fresh, err := db.UseAssertion(t.Context(), client, []byte(jti), expires, at)
			if err != nil {
				t.Error(err)
			}
			return fresh
		}
		for _, tt := range []struct {
			name, client, jti string
			at                time.Time
			want              bool
		}{
			{"first", "a", "1", now, true},
			{"again", "a", "1", now, false},
			{"in its last moment", "a", "1", ends.Add(-time.Millisecond), false},
			{"another jti", "a", "2", now, true},
			{"another client", "b", "1", now, true},
			{"when it has expired", "a", "1", ends, true},
		} {
			if got := use(tt.client, tt.jti, ends, tt.at); got != tt.want {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
		var won atomic.Int32
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if use("a", "raced", ends, now) {
					won.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of 20 used one jti, want 1", won.Load())
		}
	})
}
