package sqlstore_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// noon is when the tests of this package happen.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC) }

// filled returns a T none of whose fields is zero and no two times of which are
// equal, so that a forgotten or swapped column shows.
func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	s := reflect.ValueOf(&v).Elem()
	for i := range s.NumField() {
		name := s.Type().Field(i).Name
		switch f := s.Field(i); f.Interface().(type) {
		case string:
			f.SetString(name + " 'é' \"x\"; --")
		case bool:
			f.SetBool(true)
		case int:
			f.SetInt(int64(i + 1))
		case time.Time:
			f.Set(reflect.ValueOf(noon().Add(time.Duration(i) * time.Hour)))
		default:
			t.Fatalf("filled: add the type of %T.%s", v, name)
		}
	}
	return v
}

func TestUsers(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		full := filled[login.User](t)
		bare := login.User{ID: "bare", Email: "B@x.example", EmailKey: "b@x.example", CreatedAt: noon(), UpdatedAt: noon()}
		for _, u := range []login.User{full, bare} {
			if err := db.CreateUser(ctx, u); err != nil {
				t.Fatal(err)
			}
			if got, err := db.GetUser(ctx, u.ID); err != nil || !cmp.Equal(got, u) {
				t.Errorf("GetUser(%q): %v\n%s", u.ID, err, cmp.Diff(u, got))
			}
			if got, err := db.GetUserByEmail(ctx, u.EmailKey); err != nil || !cmp.Equal(got, u) {
				t.Errorf("GetUserByEmail(%q): %v\n%s", u.EmailKey, err, cmp.Diff(u, got))
			}
		}
		double := bare
		double.ID = "double"
		if err := db.CreateUser(ctx, double); !errors.Is(err, store.ErrExists) {
			t.Errorf("CreateUser with a taken address = %v, want store.ErrExists", err)
		}
		if n, err := db.CountUsers(ctx); err != nil || n != 2 {
			t.Errorf("CountUsers = %d, %v; want 2", n, err)
		}
		if list, err := db.ListUsers(ctx); err != nil || !cmp.Equal(list, []login.User{full, bare}) {
			t.Errorf("ListUsers = %v, %v; want both by address", list, err)
		}

		changed := full
		changed.ID, changed.CreatedAt, changed.EmailKey = bare.ID, bare.CreatedAt, "c@x.example"
		if err := db.UpdateUser(ctx, changed); err != nil {
			t.Fatal(err)
		}
		if got, err := db.GetUser(ctx, bare.ID); err != nil || !cmp.Equal(got, changed) {
			t.Errorf("after UpdateUser: %v\n%s", err, cmp.Diff(changed, got))
		}
		taken := changed
		taken.EmailKey = full.EmailKey
		if err := db.UpdateUser(ctx, taken); !errors.Is(err, store.ErrExists) {
			t.Errorf("UpdateUser to a taken address = %v, want store.ErrExists", err)
		}
		if err := db.DeleteUser(ctx, bare.ID); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"GetUser": second(db.GetUser(ctx, bare.ID)), "UpdateUser": db.UpdateUser(ctx, changed),
			"DeleteUser": db.DeleteUser(ctx, bare.ID), "TouchUser": db.TouchUser(ctx, bare.ID, noon()),
			"GetUserByEmail": second(db.GetUserByEmail(ctx, "c@x.example")),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s of a removed account = %v, want store.ErrNotFound", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A sign-in is recorded only while the account is as it was when its password
// was checked (SL-10).
func TestSL10_RecordSignIn(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, later := t.Context(), noon().Add(time.Hour)
		u := login.User{ID: "u", EmailKey: "u@x.example", PasswordHash: "old", CreatedAt: noon(), UpdatedAt: noon()}
		if err := db.CreateUser(ctx, u); err != nil {
			t.Fatal(err)
		}
		if ok, err := db.RecordSignIn(ctx, "u", "other", "new", later); ok || err != nil {
			t.Errorf("RecordSignIn after a password change = %v, %v; want false", ok, err)
		}
		if ok, err := db.RecordSignIn(ctx, "u", "old", "new", later); !ok || err != nil {
			t.Errorf("RecordSignIn = %v, %v; want true", ok, err)
		}
		want := u
		want.PasswordHash, want.LastSignInAt = "new", later
		if got, err := db.GetUser(ctx, "u"); err != nil || !cmp.Equal(got, want) {
			t.Errorf("after RecordSignIn: %v\n%s", err, cmp.Diff(want, got))
		}
		want.DisabledAt = later
		if err := db.UpdateUser(ctx, want); err != nil {
			t.Fatal(err)
		}
		if ok, err := db.RecordSignIn(ctx, "u", "new", "new", later); ok || err != nil {
			t.Errorf("RecordSignIn of a disabled account = %v, %v; want false", ok, err)
		}
	})
}
