package sqlstore_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestConsents(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx := t.Context()
		first := consent.Consent{Subject: "mina", ClientID: "quill", RedirectURI: "http://localhost/cb", Resource: "https://mcp.example",
			Scopes: []string{"a", "b"}, StayConnected: true, DocumentHash: "hash", CreatedAt: at, UpdatedAt: at.Add(time.Minute)}
		requireFull(t, reflect.ValueOf(first), "Consent")
		put := func(c consent.Consent) {
			t.Helper()
			if err := db.PutConsent(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		get := func(c consent.Consent) (consent.Consent, error) {
			return db.GetConsent(ctx, c.Subject, c.ClientID, c.RedirectURI, c.Resource)
		}
		put(first)
		if got, err := get(first); err != nil || !cmp.Equal(got, first) {
			t.Errorf("GetConsent: %v\n%s", err, cmp.Diff(first, got))
		}

		again := first
		again.Scopes, again.StayConnected, again.DocumentHash = []string{"a"}, false, "other"
		again.CreatedAt, again.UpdatedAt = at.Add(time.Hour), at.Add(time.Hour)
		put(again)
		again.CreatedAt = first.CreatedAt // PutConsent keeps it
		if got, err := get(first); err != nil || !cmp.Equal(got, again) {
			t.Errorf("after a second PutConsent: %v\n%s", err, cmp.Diff(again, got))
		}

		other := first
		other.Subject = "noor"
		elsewhere := first
		elsewhere.Resource = "https://other.example"
		put(other)
		put(elsewhere)
		if n, err := db.CountSubjects(ctx, "quill", "mina"); err != nil || n != 1 {
			t.Errorf("CountSubjects but mina = %d, %v; want 1", n, err)
		}
		for uri, want := range map[string]bool{first.RedirectURI: true, "http://localhost/other": false} {
			if has, err := db.HasConsent(ctx, "mina", "quill", uri); err != nil || has != want {
				t.Errorf("HasConsent(%q) = %t, %v; want %t", uri, has, err, want)
			}
		}

		if err := db.DeleteConsents(ctx, "", "", ""); err == nil {
			t.Error("DeleteConsents without any argument deleted everything")
		}
		if err := db.DeleteConsents(ctx, "mina", "quill", "https://mcp.example"); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name string
			c    consent.Consent
			left bool
		}{{"named", first, false}, {"other person", other, true}, {"other resource", elsewhere, true}} {
			_, err := get(tt.c)
			if left := err == nil; left != tt.left || err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("after DeleteConsents the row of the %s: %v, want it left: %t", tt.name, err, tt.left)
			}
		}
		if err := db.DeleteConsents(ctx, "", "quill", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := get(other); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after DeleteConsents of the client: %v, want store.ErrNotFound", err)
		}
	})
}
