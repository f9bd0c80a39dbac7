package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/keys"
)

var _ keys.Store = (*Store)(nil)

const keyColumns = `kid, algorithm, public_jwk, private_sealed, created_at, active_at, retire_at`

// CreateKey implements keys.Store.
func (s *Store) CreateKey(ctx context.Context, k keys.Key) error {
	const q = `INSERT INTO signing_keys (` + keyColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	_, err := s.exec(ctx, q, k.KID, k.Algorithm, string(k.PublicJWK), k.PrivateSealed,
		millis(k.CreatedAt), millis(k.ActiveAt), millis(k.RetireAt))
	if err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	return nil
}

// ListKeys implements keys.Store.
func (s *Store) ListKeys(ctx context.Context) ([]keys.Key, error) {
	const q = `SELECT ` + keyColumns + ` FROM signing_keys ORDER BY active_at, kid`
	var list []keys.Key
	err := s.each(ctx, q, nil, func(scan func(dest ...any) error) error {
		var k keys.Key
		var created, active, retire sql.NullInt64
		var public string
		if err := scan(&k.KID, &k.Algorithm, &public, &k.PrivateSealed, &created, &active, &retire); err != nil {
			return err
		}
		k.PublicJWK = []byte(public)
		k.CreatedAt, k.ActiveAt, k.RetireAt = timeOf(created), timeOf(active), timeOf(retire)
		list = append(list, k)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list signing keys: %w", err)
	}
	return list, nil
}

// SetKeyTimes implements keys.Store.
func (s *Store) SetKeyTimes(ctx context.Context, kid string, activeAt, retireAt time.Time) error {
	const q = `UPDATE signing_keys SET active_at = $2, retire_at = $3 WHERE kid = $1`
	if err := s.execOne(ctx, q, kid, millis(activeAt), millis(retireAt)); err != nil {
		return fmt.Errorf("update signing key: %w", err)
	}
	return nil
}

// DeleteRetiredKeys implements keys.Store.
func (s *Store) DeleteRetiredKeys(ctx context.Context, now time.Time) (int, error) {
	const q = `DELETE FROM signing_keys WHERE retire_at <= $1`
	n, err := s.exec(ctx, q, millis(now))
	if err != nil {
		return 0, fmt.Errorf("delete retired signing keys: %w", err)
	}
	return n, nil
}
