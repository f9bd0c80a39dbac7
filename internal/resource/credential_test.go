package resource_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// credential reads a resource's credential.
func credential(t *testing.T, a *resource.Admin, identifier string) resource.Credential {
	t.Helper()
	r, err := a.Get(t.Context(), identifier)
	if err != nil {
		t.Fatal(err)
	}
	return r.Credential
}

func TestCredentialRefuses(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		a, ctx := newAdmin(db), t.Context()
		add(t, a, resource.Resource{Identifier: files})
		with, _, err := a.AddWithCredential(ctx, resource.Resource{Identifier: mail})
		if err != nil || !with.Credential.Exists() || registration.IsClientID(with.Credential.ID) {
			t.Fatalf("%+v, %v", with, err)
		}
		before := testkit.Dump(ctx, t, db)
		rotate := func(identifier string, o oauth.Rotation) error {
			_, _, err := a.RotateSecret(ctx, identifier, o)
			return err
		}
		for name, tt := range map[string]struct {
			do   func() error
			want error
		}{
			"a second credential":        {func() error { _, _, err := a.AddCredential(ctx, mail); return err }, store.ErrExists},
			"of an unknown resource":     {func() error { _, _, err := a.AddCredential(ctx, "https://nobody.example"); return err }, store.ErrNotFound},
			"a resource that is there":   {func() error { _, _, err := a.AddWithCredential(ctx, resource.Resource{Identifier: files}); return err }, store.ErrExists},
			"rotate without credential":  {func() error { return rotate(files, oauth.Rotation{}) }, resource.ErrNoCredential},
			"rotate an unknown resource": {func() error { return rotate("https://nobody.example", oauth.Rotation{}) }, store.ErrNotFound},
			"remove without credential":  {func() error { _, err := a.RemoveCredential(ctx, files); return err }, resource.ErrNoCredential},
			"end without an old secret":  {func() error { _, err := a.EndOldSecret(ctx, mail); return err }, oauth.ErrNoOldSecret},
		} {
			if err := tt.do(); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", name, err, tt.want)
			}
		}
		err = rotate(mail, oauth.Rotation{OldUntil: t0.Add(oauth.MaxKeepOld + time.Second)})
		if oauth.Code(err) != "invalid_request" {
			t.Errorf("an old secret for more than a year: %v", err)
		}
		if after := testkit.Dump(ctx, t, db); after != before {
			t.Errorf("a refusal changed rows:\n%s", after)
		}
		if _, err := db.ResourceByCredential(ctx, ""); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the credential without an id is %v", err)
		}
	})
}

// Of several who rotate at once one does; the others are told that a secret would
// end which nobody spoke of.
func TestCA07_RotateAtOnce(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		a := newAdmin(db)
		_, first, err := a.AddWithCredential(t.Context(), resource.Resource{Identifier: files})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var secrets []oauth.Secret
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				_, secret, err := a.RotateSecret(t.Context(), files, oauth.Rotation{OldUntil: t0.Add(time.Hour)})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					secrets = append(secrets, secret)
				case !errors.Is(err, oauth.ErrSecretRotating):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(secrets) != 1 {
			t.Fatalf("%d rotations, want 1", len(secrets))
		}
		c := credential(t, a, files)
		for name, tt := range map[string]struct {
			secret oauth.Secret
			at     time.Time
			good   bool
		}{
			"the new one":                   {secrets[0], t0, true},
			"the old one":                   {first, t0, true},
			"the old one at its end":        {first, t0.Add(time.Hour), false},
			"the new one then":              {secrets[0], t0.Add(time.Hour), true},
			"no secret":                     {"", t0, false},
			"the hash for the secret":       {oauth.Secret(c.SecretHash), t0, false},
			"one with a character in front": {"a" + first, t0, false},
		} {
			if got := c.CheckSecret(tt.secret, tt.at); got != tt.good {
				t.Errorf("%s: %t, want %t", name, got, tt.good)
			}
		}
		if moved := (resource.Credential{ID: "rs~other", StoredSecret: c.StoredSecret}); moved.CheckSecret(secrets[0], t0) {
			t.Error("ST-02: the hash is good under another id")
		}
		if none := (resource.Credential{}); none.CheckSecret("", t0) || none.CheckSecret(first, t0) {
			t.Error("no credential matches a secret")
		}
		if bytes.Equal(c.SecretHash, registration.HashSecret(c.ID, secrets[0])) {
			t.Error("the hash is that of a client's secret")
		}
	})
}
