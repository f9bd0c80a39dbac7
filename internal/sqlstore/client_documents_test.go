package sqlstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestClientDocuments(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, at := t.Context(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		const id = "https://app.example/client.json"
		if _, err := db.GetClientDocument(ctx, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of nothing: %v", err)
		}
		failed := registration.ClientDocument{ClientID: id, FirstSeenAt: at, TriedAt: at, RetryAt: at.Add(time.Minute), Failures: 1,
			Problem: registration.ProblemUnread, Failure: "status 500"}
		good := registration.ClientDocument{ClientID: id, Hash: "h", ETag: `"1"`, LastModified: "then", FirstSeenAt: at,
			FetchedAt: at.Add(time.Hour), FreshUntil: at.Add(2 * time.Hour), TriedAt: at.Add(time.Hour)}
		again := good
		again.Failures, again.Problem, again.Failure = 1, registration.ProblemInvalid, "no"
		again.TriedAt, again.RetryAt = at.Add(3*time.Hour), at.Add(4*time.Hour)
		later := good
		later.FirstSeenAt = at.Add(time.Minute) // stays as it was
		for _, step := range []struct {
			name string
			do   func() error
			want registration.ClientDocument
		}{
			{"a failure first", func() error { return db.FailClientDocument(ctx, failed) }, failed},
			{"then a success", func() error { return db.PutClientDocument(ctx, later) }, good},
			{"a failure keeps what is known", func() error { return db.FailClientDocument(ctx, again) }, again},
		} {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			got, err := db.GetClientDocument(ctx, id)
			if err != nil || cmp.Diff(step.want, got) != "" {
				t.Errorf("%s: %v %s", step.name, err, cmp.Diff(step.want, got))
			}
		}
		if list, err := db.ListClientDocuments(ctx); err != nil || len(list) != 1 || cmp.Diff(again, list[0]) != "" {
			t.Errorf("list %v, %v", list, err)
		}
	})
}

// CI-14: of concurrent fetches no more than the budget are counted, each once.
func TestSpendFetch(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, now := t.Context(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		spend := func(now time.Time) bool {
			ok, err := db.SpendFetch(ctx, "site app.example", 7, now, now.Add(-time.Hour))
			if err != nil {
				t.Error(err)
			}
			return ok
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		spent := 0
		for range 20 {
			wg.Go(func() {
				if spend(now) {
					mu.Lock()
					spent++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if spent != 7 {
			t.Errorf("spent %d, want 7", spent)
		}
		if spend(now.Add(59*time.Minute)) || !spend(now.Add(time.Hour)) {
			t.Error("the window is not an hour")
		}
		if ok, err := db.SpendFetch(ctx, "site other.example", 7, now, now.Add(-time.Hour)); err != nil || !ok {
			t.Errorf("another name: %t, %v", ok, err)
		}
	})
}

// ST-10: what anybody can make goes again, what somebody decided on stays.
func TestCollect_ClientDocuments(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, now := t.Context(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		old, recent := now.AddDate(0, 0, -8), now.Add(-time.Hour)
		collect := func() error {
			_, err := db.DeleteUnusedDocuments(ctx, now.AddDate(0, 0, -7), 200)
			return errors.Join(err, db.Collect(ctx, now))
		}
		for i, tt := range []struct {
			name   string
			change func(*registration.Client)
			kind   registration.Kind
			tried  time.Time
			stays  bool
		}{
			{"never used", func(*registration.Client) {}, registration.KindCIMD, old, false},
			{"asked for an hour ago", func(*registration.Client) {}, registration.KindCIMD, recent, true},
			{"used", func(c *registration.Client) { c.LastUsedAt = old }, registration.KindCIMD, old, true},
			{"verified", func(c *registration.Client) { c.VerifiedAt = old }, registration.KindCIMD, old, true},
			{"blocked", func(c *registration.Client) { c.BlockedAt = old }, registration.KindCIMD, old, true},
			{"disabled", func(c *registration.Client) { c.DisabledAt = old }, registration.KindCIMD, old, true},
			{"of another kind", func(*registration.Client) {}, registration.KindOperator, old, true},
		} {
			c := registration.Client{ID: fmt.Sprintf("https://app.example/%d", i), Kind: tt.kind, CreatedAt: old, UpdatedAt: old}
			tt.change(&c)
			if err := errors.Join(db.CreateClient(ctx, c), db.PutClientDocument(ctx, registration.ClientDocument{ClientID: c.ID, Hash: "h",
				FirstSeenAt: old, FetchedAt: tt.tried, FreshUntil: tt.tried, TriedAt: tt.tried}), collect()); err != nil {
				t.Fatal(err)
			}
			_, err := db.GetClient(ctx, c.ID)
			if stays := err == nil; stays != tt.stays || err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: stays %t, want %t (%v)", tt.name, stays, tt.stays, err)
			}
			if _, err := db.GetClientDocument(ctx, c.ID); (err == nil) != tt.stays {
				t.Errorf("%s: its document: %v", tt.name, err)
			}
		}
		const nobody = "https://app.example/nobody"
		if err := errors.Join(db.FailClientDocument(ctx, registration.ClientDocument{ClientID: nobody, TriedAt: recent, RetryAt: recent}), db.Collect(ctx, now)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.GetClientDocument(ctx, nobody); err != nil {
			t.Errorf("a failure of an hour ago is gone: %v", err)
		}
		if err := db.Collect(ctx, now.AddDate(0, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.GetClientDocument(ctx, nobody); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a failure of yesterday stays: %v", err)
		}
	})
}
