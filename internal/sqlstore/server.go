package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ostiary-auth/ostiary/internal/keys"
)

var _ keys.ServerStore = (*Store)(nil)

// LockServer implements keys.ServerStore. The upsert takes the row's lock on
// PostgreSQL and waits for whoever has it; on SQLite a writing transaction is
// alone anyway.
func (s *Store) LockServer(ctx context.Context, lock string) error {
	const q = `INSERT INTO server (name, value) VALUES ($1, '')
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	if _, err := s.exec(ctx, q, lock); err != nil {
		return fmt.Errorf("take lock: %w", err)
	}
	return nil
}

// PutServerValue implements keys.ServerStore.
func (s *Store) PutServerValue(ctx context.Context, name, value string) error {
	const q = `INSERT INTO server (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
	if _, err := s.exec(ctx, q, name, value); err != nil {
		return fmt.Errorf("put server value: %w", err)
	}
	return nil
}

// GetServerValue implements keys.ServerStore.
func (s *Store) GetServerValue(ctx context.Context, name string) (string, error) {
	const q = `SELECT value FROM server WHERE name = $1`
	var value string
	if err := s.row(ctx, q, []any{name}, &value); err != nil {
		return "", fmt.Errorf("get server value: %w", err)
	}
	return value, nil
}

// CreateSecretCheck implements keys.ServerStore.
func (s *Store) CreateSecretCheck(ctx context.Context, c keys.SecretCheck) error {
	const q = `INSERT INTO secret_checks (kid, check_value, created_at) VALUES ($1, $2, $3)`
	if _, err := s.exec(ctx, q, int64(c.KID), c.Value, millis(c.CreatedAt)); err != nil {
		return fmt.Errorf("create secret check: %w", err)
	}
	return nil
}

// ListSecretChecks implements keys.ServerStore.
func (s *Store) ListSecretChecks(ctx context.Context) ([]keys.SecretCheck, error) {
	const q = `SELECT kid, check_value, created_at FROM secret_checks ORDER BY kid`
	var list []keys.SecretCheck
	err := s.each(ctx, q, nil, func(scan func(dest ...any) error) error {
		var c keys.SecretCheck
		var created sql.NullInt64
		if err := scan(&c.KID, &c.Value, &created); err != nil {
			return err
		}
		c.CreatedAt = timeOf(created)
		list = append(list, c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list secret checks: %w", err)
	}
	return list, nil
}
