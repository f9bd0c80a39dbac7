package keys_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const issuer = "https://as.example"

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// withKID returns s's first secret under another kid.
func withKID(t *testing.T, s *keys.Secrets, kid string) string {
	t.Helper()
	_, value, _ := bytes.Cut(bytes.TrimSpace(s.Encode()), []byte(" "))
	return kid + " " + string(value) + "\n"
}

func parse(t *testing.T, lines ...string) *keys.Secrets {
	t.Helper()
	s, err := keys.ParseSecrets([]byte(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestD2Verify(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		ctx := t.Context()
		first, second := keys.GenerateSecrets(), keys.GenerateSecrets()
		one, two := withKID(t, first, "1"), withKID(t, second, "2")
		for _, tt := range []struct {
			name, issuer string
			secrets      *keys.Secrets
			wantErr      string
		}{
			{name: "D2 secret missing", issuer: issuer, wantErr: "OSTIARY_SECRET"},
			{name: "first start", issuer: issuer, secrets: parse(t, one)},
			{name: "same again", issuer: issuer, secrets: parse(t, one)},
			{name: "D2 other issuer", issuer: issuer + "/other", secrets: parse(t, one), wantErr: "set issuer (OSTIARY_ISSUER, --issuer) to " + issuer},
			{name: "D2 other secret, same kid", issuer: issuer, secrets: parse(t, withKID(t, second, "1")), wantErr: "kid 1 is not the one"},
			{name: "D2 other secret, other kid", issuer: issuer, secrets: parse(t, two), wantErr: "none of the secrets"},
			{name: "new secret before the known one", issuer: issuer, secrets: parse(t, two, one)},
			{name: "old secret gone", issuer: issuer, secrets: parse(t, two)},
		} {
			err := tt.secrets.Verify(ctx, db, tt.issuer, t0)
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("%s: err = %v, want %q", tt.name, err, tt.wantErr)
			}
		}
		checks, err := db.ListSecretChecks(ctx)
		if err != nil || len(checks) != 2 {
			t.Fatalf("checks = %v, want kids 1 and 2 only (%v)", checks, err)
		}
		if !checks[0].CreatedAt.Equal(t0) || checks[0].KID != 1 || checks[1].KID != 2 {
			t.Errorf("checks = %+v", checks)
		}
		if bytes.Contains(first.Encode(), checks[0].Value) {
			t.Error("the check value is the secret")
		}
	})
}

func TestD2VerifyAtOnce(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() { errs[i] = keys.GenerateSecrets().Verify(context.Background(), db, issuer, t0) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			}
		}
		checks, err := db.ListSecretChecks(t.Context())
		if won != 1 || len(checks) != 1 || err != nil {
			t.Errorf("%d of 4 different secrets were accepted, %d stored (%v, %v)", won, len(checks), errs, err)
		}
	})
}

func TestLoadForStore(t *testing.T) {
	db := testkit.OpenSQLite(t)
	path := filepath.Join(t.TempDir(), "secret.key")
	s, err := keys.LoadForStore(t.Context(), path, db)
	if err != nil {
		t.Fatalf("first start: %v", err)
	}
	if err := s.Verify(t.Context(), db, issuer, t0); err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(t.TempDir(), "secret.key")
	if _, err := keys.LoadForStore(t.Context(), lost, db); err == nil || !strings.Contains(err.Error(), "restore the file") {
		t.Errorf("lost file: err = %v", err)
	}
	if _, err := keys.Load(lost); err == nil {
		t.Error("a new secret was made although the database was used with another")
	}
}
