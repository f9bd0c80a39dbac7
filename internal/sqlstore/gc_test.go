package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// aGrant is a grant of client c whose code ended at codeEnds.
func aGrant(id string, generation int, codeEnds, ends time.Time) grant.Grant {
	return grant.Grant{ID: id, ClientID: "c", Subject: "a", Resource: "https://mcp.example", Salt: []byte("salt"),
		Generation: generation, CodeExpiresAt: codeEnds, ExpiresAt: ends, CreatedAt: codeEnds.Add(-time.Minute)}
}

func TestST10_Collect(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, now := t.Context(), noon()
		year := now.Add(365 * 24 * time.Hour)
		kept := map[string]grant.Grant{
			"code":          aGrant("code", 0, now.Add(time.Minute), year),
			"code just now": aGrant("code just now", 0, now.Add(-time.Hour+time.Millisecond), year),
			"live":          aGrant("live", 7, now.Add(-300*24*time.Hour), year),
			"just expired":  aGrant("just expired", 7, now.Add(-300*24*time.Hour), now.Add(-time.Hour+time.Millisecond)),
		}
		gone := map[string]grant.Grant{
			"unused":          aGrant("unused", 0, now.Add(-time.Hour), year),
			"unused for long": aGrant("unused for long", 0, now.Add(-8*24*time.Hour), year),
			"expired":         aGrant("expired", 7, now.Add(-300*24*time.Hour), now.Add(-time.Hour)),
		}
		for _, set := range []map[string]grant.Grant{kept, gone} {
			for _, g := range set {
				if err := db.CreateGrant(ctx, g); err != nil {
					t.Fatal(err)
				}
			}
		}
		old := now.Add(-10 * 365 * 24 * time.Hour)
		err := errors.Join(
			db.CreateClient(ctx, registration.Client{ID: "c", Kind: registration.KindDynamic, CreatedAt: old, UpdatedAt: old}),
			db.CreateKey(ctx, keys.Key{KID: "k", Algorithm: "ES256", PrivateSealed: []byte("sealed"), CreatedAt: old, ActiveAt: old}),
			db.PutDevice(ctx, login.Device{ID: "d1", Subject: "a", CreatedAt: old, ExpiresAt: now}),
			db.PutDevice(ctx, login.Device{ID: "d1", Subject: "b", CreatedAt: old, ExpiresAt: now.Add(time.Second)}),
		)
		if err != nil {
			t.Fatal(err)
		}
		for jti, expires := range map[string]time.Time{"expired": now, "live": now.Add(time.Millisecond)} {
			if fresh, err := db.UseAssertion(ctx, "c", []byte(jti), expires, old); !fresh || err != nil {
				t.Fatalf("use assertion: %v, %v", fresh, err)
			}
		}
		if err := db.Collect(ctx, now); err != nil {
			t.Fatal(err)
		}
		for jti, want := range map[string]bool{"expired": true, "live": false} {
			if fresh, err := db.UseAssertion(ctx, "c", []byte(jti), now.Add(time.Hour), old); fresh != want || err != nil {
				t.Errorf("%s assertion: usable %v, %v; want %v", jti, fresh, err, want)
			}
		}
		for id := range kept {
			if _, err := db.GetGrant(ctx, id); err != nil {
				t.Errorf("grant %q: %v, want it kept", id, err)
			}
		}
		for id := range gone {
			if _, err := db.GetGrant(ctx, id); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("grant %q: %v, want store.ErrNotFound", id, err)
			}
		}
		if _, err := db.GetClient(ctx, "c"); err != nil {
			t.Errorf("client: %v, want it kept", err)
		}
		if list, err := db.ListKeys(ctx); err != nil || len(list) != 1 {
			t.Errorf("keys: %v, %v; want it kept", list, err)
		}
		for subject, want := range map[string]bool{"a": false, "b": true} {
			if known, err := db.KnowsDevice(ctx, "d1", subject, old); known != want || err != nil {
				t.Errorf("device of %s: %v, %v; want %v", subject, known, err, want)
			}
		}
	})
}

// No statement deletes more than a batch, and nothing is left over.
func TestST10_CollectInBatches(t *testing.T) {
	t.Parallel()
	const rows = 2500
	var deletes atomic.Int32
	watch := func(o *sqlstore.Options) {
		o.OnStatement = func(_ context.Context, query string) {
			if strings.HasPrefix(query, "DELETE FROM guesses") {
				deletes.Add(1)
			}
		}
	}
	db := testkit.OpenSQLite(t, watch)
	err := db.InTx(t.Context(), func(ctx context.Context) error {
		for i := range rows {
			if _, err := db.CountGuess(ctx, fmt.Sprint(i), noon(), noon().Add(time.Hour)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Collect(t.Context(), noon().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if deletes.Load() != 3 {
		t.Errorf("%d statements for %d rows, want 3", deletes.Load(), rows)
	}
	for _, name := range []string{"0", "2499"} {
		if _, err := db.GetGuess(t.Context(), name, noon()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("guess %s: %v, want store.ErrNotFound", name, err)
		}
	}
}

// Of several processes on one database one collects, once a minute.
func TestST10_OneProcessCollects(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"sqlite": testkit.SQLitePath, "postgres": testkit.PostgresURL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := url(t)
			var processes []*sqlstore.Store
			for range 2 {
				db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: shared, MaxConns: 2})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				processes = append(processes, db)
			}
			for minute := range 3 {
				now := noon().Add(time.Duration(minute) * time.Minute)
				for _, at := range []struct {
					now  time.Time
					want int32
				}{{now, 1}, {now.Add(30 * time.Second), 0}} {
					var collected atomic.Int32
					var all sync.WaitGroup
					for i := range 8 {
						all.Go(func() {
							did, err := processes[i%2].CollectInTurn(t.Context(), at.now)
							if err != nil {
								t.Errorf("CollectInTurn: %v", err)
							}
							if did {
								collected.Add(1)
							}
						})
					}
					all.Wait()
					if collected.Load() != at.want {
						t.Errorf("at %v %d collected, want %d", at.now, collected.Load(), at.want)
					}
				}
			}
		})
	}
}
