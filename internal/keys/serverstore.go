package keys

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/store"
)

// serverIssuer is the name under which the server table keeps the issuer.
const serverIssuer = "issuer"

// SecretCheck is what the database keeps to recognise the secret of a kid.
type SecretCheck struct {
	KID       byte
	Value     []byte
	CreatedAt time.Time
}

// ServerStore keeps what a database belongs to. Every method is one statement.
type ServerStore interface {
	store.Transactor
	// LockServer makes other transactions that take the same lock wait until
	// this one ends. It must be called inside InTx.
	LockServer(ctx context.Context, lock string) error
	// PutServerValue writes a named value, unless there is one.
	PutServerValue(ctx context.Context, name, value string) error
	// GetServerValue returns a named value, or store.ErrNotFound.
	GetServerValue(ctx context.Context, name string) (string, error)
	// CreateSecretCheck inserts c, or returns store.ErrExists.
	CreateSecretCheck(ctx context.Context, c SecretCheck) error
	// ListSecretChecks returns all rows by kid.
	ListSecretChecks(ctx context.Context) ([]SecretCheck, error)
}

// Verify ties the database to the issuer and to the secrets at the first start,
// and refuses later starts with another issuer or with secrets that the database
// has not seen (D2). Its error says what to change. Of two processes that start
// at once on a new database, one decides and the other is checked against it.
func (s *Secrets) Verify(ctx context.Context, st ServerStore, issuer string, now time.Time) error {
	if s == nil {
		return errors.New("the secret is missing: set OSTIARY_SECRET_FILE or OSTIARY_SECRET")
	}
	return st.InTx(ctx, func(ctx context.Context) error {
		if err := st.LockServer(ctx, "lock.server"); err != nil {
			return fmt.Errorf("lock server row: %w", err)
		}
		if err := verifyIssuer(ctx, st, issuer); err != nil {
			return err
		}
		return s.verifyChecks(ctx, st, now)
	})
}

// StoredIssuer returns the issuer that the database belongs to, "" before the
// first start.
func StoredIssuer(ctx context.Context, st ServerStore) (string, error) {
	stored, err := st.GetServerValue(ctx, serverIssuer)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("read issuer: %w", err)
	}
	return stored, nil
}

func verifyIssuer(ctx context.Context, st ServerStore, issuer string) error {
	if err := st.PutServerValue(ctx, serverIssuer, issuer); err != nil {
		return fmt.Errorf("store issuer: %w", err)
	}
	stored, err := StoredIssuer(ctx, st)
	if err != nil {
		return err
	}
	if stored != issuer {
		return fmt.Errorf("the database belongs to issuer %s, but issuer is %s: set issuer (OSTIARY_ISSUER, --issuer) to %s, or use another database",
			stored, issuer, stored)
	}
	return nil
}

// verifyChecks compares every kid with its stored check value. A kid that is
// new joins, once another one has shown that these are the right secrets.
func (s *Secrets) verifyChecks(ctx context.Context, st ServerStore, now time.Time) error {
	checks, err := st.ListSecretChecks(ctx)
	if err != nil {
		return fmt.Errorf("read secret checks: %w", err)
	}
	stored := make(map[byte][]byte)
	for _, c := range checks {
		stored[c.KID] = c.Value
	}
	var fresh []SecretCheck
	for _, kid := range s.KIDs() {
		value, err := s.CheckValue(kid)
		if err != nil {
			return err
		}
		want, known := stored[kid]
		if !known {
			fresh = append(fresh, SecretCheck{KID: kid, Value: value, CreatedAt: now})
			continue
		}
		if subtle.ConstantTimeCompare(value, want) != 1 {
			return fmt.Errorf("the secret with kid %d is not the one this database was used with: restore the original secret (secret.key, OSTIARY_SECRET or OSTIARY_SECRET_FILE); to add a new secret, give it a kid of its own", kid)
		}
	}
	if len(checks) > 0 && len(fresh) == len(s.entries) {
		return errors.New("none of the secrets is one this database was used with: restore the original secret (secret.key, OSTIARY_SECRET or OSTIARY_SECRET_FILE), or use another database")
	}
	for _, c := range fresh {
		if err := st.CreateSecretCheck(ctx, c); err != nil {
			return fmt.Errorf("store secret check: %w", err)
		}
	}
	return nil
}
