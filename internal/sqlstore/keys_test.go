package sqlstore_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestSigningKeys(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		ctx := t.Context()
		at := time.Date(2026, 3, 1, 12, 0, 0, int(5*time.Millisecond), time.UTC)
		first := keys.Key{KID: "b", Algorithm: "ES256", PublicJWK: json.RawMessage(`{"kty":"EC"}`), PrivateSealed: []byte{0, 1, 255},
			CreatedAt: at, ActiveAt: at, RetireAt: at.Add(time.Hour)}
		second := keys.Key{KID: "a", Algorithm: "ES256", PublicJWK: json.RawMessage(`{}`), PrivateSealed: []byte{2},
			CreatedAt: at, ActiveAt: at.Add(time.Minute)}
		for _, k := range []keys.Key{second, first} {
			if err := db.CreateKey(ctx, k); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.CreateKey(ctx, first); !errors.Is(err, store.ErrExists) {
			t.Errorf("the same kid again: %v, want ErrExists", err)
		}
		list, err := db.ListKeys(ctx)
		if diff := cmp.Diff([]keys.Key{first, second}, list); diff != "" || err != nil {
			t.Errorf("ListKeys: %v\n%s", err, diff)
		}
		if err := db.SetKeyTimes(ctx, "x", at, at); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("SetKeyTimes of an unknown kid: %v, want ErrNotFound", err)
		}
		second.ActiveAt, second.RetireAt = at.Add(2*time.Minute), at.Add(2*time.Hour)
		if err := db.SetKeyTimes(ctx, "a", second.ActiveAt, second.RetireAt); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			now  time.Time
			want int
		}{{first.RetireAt.Add(-time.Millisecond), 0}, {first.RetireAt, 1}, {first.RetireAt, 0}} {
			if n, err := db.DeleteRetiredKeys(ctx, tt.now); n != tt.want || err != nil {
				t.Errorf("DeleteRetiredKeys(%v) = %d, %v; want %d", tt.now, n, err, tt.want)
			}
		}
		list, err = db.ListKeys(ctx)
		if diff := cmp.Diff([]keys.Key{second}, list); diff != "" || err != nil {
			t.Errorf("ListKeys: %v\n%s", err, diff)
		}
	})
}

func TestServerValues(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		ctx := t.Context()
		if _, err := db.GetServerValue(ctx, "issuer"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("GetServerValue before: %v, want ErrNotFound", err)
		}
		for _, v := range []string{"one", "two"} {
			if err := db.PutServerValue(ctx, "issuer", v); err != nil {
				t.Fatal(err)
			}
		}
		if v, err := db.GetServerValue(ctx, "issuer"); v != "one" || err != nil {
			t.Errorf("GetServerValue = %q, %v; want the first value", v, err)
		}
		c := keys.SecretCheck{KID: 255, Value: []byte{0, 255}, CreatedAt: time.UnixMilli(1).UTC()}
		if err := db.CreateSecretCheck(ctx, c); err != nil {
			t.Fatal(err)
		}
		if err := db.CreateSecretCheck(ctx, c); !errors.Is(err, store.ErrExists) {
			t.Errorf("the same kid again: %v, want ErrExists", err)
		}
		list, err := db.ListSecretChecks(ctx)
		if diff := cmp.Diff([]keys.SecretCheck{c}, list); diff != "" || err != nil {
			t.Errorf("ListSecretChecks: %v\n%s", err, diff)
		}
	})
}

func TestResources(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		ctx := t.Context()
		at := time.UnixMilli(1772366400123).UTC()
		full := resource.Resource{Identifier: "https://b.example/", Canonical: "https://b.example", Name: "B ünïcode ' \" \\", Default: true,
			ClaimedName: "b", CreatedAt: at, UpdatedAt: at.Add(time.Second), Scopes: []resource.Scope{{Name: "a", Title: "T", Detail: "D",
				Risk: resource.RiskChanges, Required: true, Default: true, Group: "G", Implies: []string{"b"}, Restricted: true}, {Name: "b"}}}
		bare := resource.Resource{Identifier: "https://a.example", Canonical: "https://a.example", Name: "A", CreatedAt: at, UpdatedAt: at}
		for _, r := range []resource.Resource{full, bare} {
			if err := db.CreateResource(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		list, err := db.ListResources(ctx)
		if diff := cmp.Diff([]resource.Resource{bare, full}, list); diff != "" || err != nil {
			t.Errorf("ListResources: %v\n%s", err, diff)
		}
		second := bare
		second.Canonical, second.Identifier, second.Default = "https://c.example", "https://c.example", true
		if err := db.CreateResource(ctx, second); !errors.Is(err, store.ErrExists) {
			t.Errorf("D6 a second default: %v, want ErrExists", err)
		}
		full.Name, full.Default, full.Scopes, full.UpdatedAt = "B2", false, nil, at.Add(time.Minute)
		if err := db.UpdateResource(ctx, full); err != nil {
			t.Fatal(err)
		}
		got, err := db.GetResource(ctx, full.Canonical)
		if diff := cmp.Diff(full, got); diff != "" || err != nil {
			t.Errorf("GetResource: %v\n%s", err, diff)
		}
		if err := db.UpdateResource(ctx, second); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("UpdateResource of an unknown one: %v, want ErrNotFound", err)
		}
		if err := db.DeleteResource(ctx, full.Canonical); err != nil {
			t.Fatal(err)
		}
		if err := db.DeleteResource(ctx, full.Canonical); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("DeleteResource again: %v, want ErrNotFound", err)
		}
	})
}
