package keys_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func stored(t *testing.T, db *sqlstore.Store) map[string]keys.Key {
	t.Helper()
	list, err := db.ListKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byKID := map[string]keys.Key{}
	for _, k := range list {
		byKID[k.KID] = k
	}
	return byKID
}

func TestD28_RetireRetiring(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		s, c := ensured(t, db)
		token, old := sign(t, s)
		c.Add(time.Second)
		if _, err := s.Rotate(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		c.Add(time.Minute)
		done, err := s.Retire(t.Context(), old, false)
		if err != nil || done.Key.State != keys.StateRetiring || done.Replaced || done.Signing.State != keys.StateActive {
			t.Fatalf("Retire = %+v, %v", done, err)
		}
		if kids := published(t, s); !slices.Equal(kids, []string{done.Signing.KID}) {
			t.Errorf("MM-04 published %v", kids)
		}
		if _, _, err := s.Verify("at+jwt", token); !errors.Is(err, keys.ErrSignature) {
			t.Errorf("MM-04 a token of the removed key: %v", err)
		}
		if _, ok := stored(t, db)[old]; ok {
			t.Error("the private half is still there")
		}
		if _, err := s.Retire(t.Context(), old, true); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("again: %v, want ErrNotFound", err)
		}
		events, err := db.ListEvents(t.Context(), 1)
		if err != nil || events[0].Name != "key.retired" || events[0].Detail["kid"] != old || events[0].Actor != "operator" {
			t.Errorf("D35 %+v (%v)", events, err)
		}
	})
}

// Calling off a rotation must not let the key that goes on signing expire.
func TestD28_RetireNext(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		s, c := ensured(t, db)
		_, active := sign(t, s)
		rotation, err := s.Rotate(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		done, err := s.Retire(t.Context(), rotation.Next.KID, false)
		if err != nil || done.Key.State != keys.StateNext || done.Signing.KID != active || done.Replaced {
			t.Fatalf("Retire = %+v, %v", done, err)
		}
		if k := stored(t, db)[active]; !k.RetireAt.IsZero() {
			t.Errorf("the key that signs retires at %s", k.RetireAt)
		}
		c.Add(24 * time.Hour)
		reload(t, s)
		if _, kid := sign(t, s); kid != active || !slices.Equal(published(t, s), []string{active}) {
			t.Errorf("a day later %s signs, published %v", kid, published(t, s))
		}
	})
}

// Of several that wait, one is called off: the key before is published until the
// tokens have expired that it signs up to the next one.
func TestD28_RetireOneOfTwoNext(t *testing.T) {
	for _, first := range []bool{true, false} {
		secrets, c := keys.GenerateSecrets(), &clock{now: t0}
		db := testkit.OpenSQLite(t)
		s := newSetOf(t, db, secrets, c, keys.ES256)
		_, active := sign(t, s)
		one, _, err := newSetOf(t, db, secrets, c, keys.EdDSA).Adopt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Add(time.Minute)
		two, _, err := s.Adopt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gone, stays := one, two
		if !first {
			gone, stays = two, one
		}
		if _, err := s.Retire(t.Context(), gone.KID, false); err != nil {
			t.Fatal(err)
		}
		rows := stored(t, db)
		if want := stays.ActiveAt.Add(11 * time.Minute); !rows[active].RetireAt.Equal(want) || !rows[stays.KID].RetireAt.IsZero() {
			t.Errorf("first %t: active until %s, want %s; the next until %s", first, rows[active].RetireAt, want, rows[stays.KID].RetireAt)
		}
	}
}

func TestD28_RetireActive(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		for _, waits := range []bool{false, true} {
			s, c := ensured(t, testkit.OpenSQLite(t))
			if waits {
				s, c = ensured(t, db)
			}
			c.Add(time.Second)
			token, active := sign(t, s)
			var waiting string
			if waits {
				rotation, err := s.Rotate(t.Context(), false)
				if err != nil {
					t.Fatal(err)
				}
				waiting = rotation.Next.KID
			}
			before := published(t, s)
			if _, err := s.Retire(t.Context(), active, false); !errors.Is(err, keys.ErrActive) || !slices.Equal(published(t, s), before) {
				t.Fatalf("waits %t: Retire = %v, published %v; want ErrActive and nothing changed", waits, err, published(t, s))
			}
			done, err := s.Retire(t.Context(), active, true)
			if err != nil || !done.Replaced || done.Signing.State != keys.StateActive || done.Key.KID != active {
				t.Fatalf("waits %t: Retire = %+v, %v", waits, done, err)
			}
			if waits && done.Signing.KID != waiting {
				t.Errorf("a third key was made: %+v", done.Signing)
			}
			if _, kid := sign(t, s); kid != done.Signing.KID || !slices.Equal(published(t, s), []string{kid}) {
				t.Errorf("waits %t: %s signs, published %v", waits, kid, published(t, s))
			}
			if _, _, err := s.Verify("at+jwt", token); !errors.Is(err, keys.ErrSignature) {
				t.Errorf("waits %t: a token of the retired key: %v", waits, err)
			}
		}
	})
}

// The last of several waiting keys signs now, and those before it never do.
func TestRotateNowOvertakes(t *testing.T) {
	secrets, c := keys.GenerateSecrets(), &clock{now: t0}
	db := testkit.OpenSQLite(t)
	s := newSetOf(t, db, secrets, c, keys.ES256)
	overtaken, _, err := newSetOf(t, db, secrets, c, keys.EdDSA).Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := s.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Add(time.Second)
	done, err := s.Rotate(t.Context(), true)
	if err != nil || done.Next.KID != last.KID || len(done.Previous) != 1 {
		t.Fatalf("Rotate = %+v, %v", done, err)
	}
	c.Add(10 * time.Minute)
	reload(t, s)
	if _, kid := sign(t, s); kid != last.KID || slices.Contains(published(t, s), overtaken.KID) {
		t.Errorf("%s signs, published %v", kid, published(t, s))
	}
}
