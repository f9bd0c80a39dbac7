package sqlstore_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestGuesses(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, expires := t.Context(), noon().Add(time.Hour)
		for want := 1; want <= 3; want++ {
			if n, err := db.CountGuess(ctx, "g", noon(), expires); n != want || err != nil {
				t.Fatalf("CountGuess = %d, %v; want %d", n, err, want)
			}
		}
		until := noon().Add(time.Minute)
		if err := db.BlockGuess(ctx, "g", until); err != nil {
			t.Fatal(err)
		}
		if n, err := db.CountGuess(ctx, "g", noon(), expires); n != 4 || err != nil {
			t.Fatalf("CountGuess = %d, %v; want 4", n, err)
		}
		want := login.Guess{Name: "g", Failures: 4, BlockedUntil: until, ExpiresAt: expires}
		if got, err := db.GetGuess(ctx, "g", noon()); err != nil || !cmp.Equal(got, want) {
			t.Errorf("GetGuess: %v\n%s", err, cmp.Diff(want, got))
		}
		if _, err := db.GetGuess(ctx, "g", expires); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("GetGuess of an expired row = %v, want store.ErrNotFound", err)
		}
		if n, err := db.CountGuess(ctx, "g", expires, expires.Add(time.Hour)); n != 1 || err != nil {
			t.Errorf("CountGuess of an expired row = %d, %v; want it to begin at 1", n, err)
		}
		if got, err := db.GetGuess(ctx, "g", expires); err != nil || !got.BlockedUntil.IsZero() {
			t.Errorf("GetGuess after a new beginning = %+v, %v; want no block", got, err)
		}
		if err := db.DeleteGuess(ctx, "g"); err != nil {
			t.Fatal(err)
		}
		if err := db.BlockGuess(ctx, "g", until); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("BlockGuess of a forgotten row = %v, want store.ErrNotFound", err)
		}
	})
}

// SL-04: parallel failures are all counted.
func TestSL04_CountGuessInParallel(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := db.CountGuess(t.Context(), "g", noon(), noon().Add(time.Hour)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got, err := db.GetGuess(t.Context(), "g", noon()); err != nil || got.Failures != 20 {
			t.Errorf("GetGuess after 20 parallel failures = %+v, %v; want 20", got, err)
		}
	})
}
