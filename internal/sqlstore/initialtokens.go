package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
)

const initialTokenColumns = `id, name, token_hash, max_uses, uses, expires_at, created_at, last_used_at`

// CreateInitialAccessToken implements registration.InitialAccessTokenStore.
func (s *Store) CreateInitialAccessToken(ctx context.Context, t registration.InitialAccessToken) error {
	const q = `INSERT INTO initial_access_tokens (` + initialTokenColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	if _, err := s.exec(ctx, q, t.ID, t.Name, t.Hash, t.MaxUses, t.Uses, millis(t.ExpiresAt), millis(t.CreatedAt),
		millis(t.LastUsedAt)); err != nil {
		return fmt.Errorf("create initial access token: %w", err)
	}
	return nil
}

// ListInitialAccessTokens implements registration.InitialAccessTokenStore.
func (s *Store) ListInitialAccessTokens(ctx context.Context) ([]registration.InitialAccessToken, error) {
	const q = `SELECT ` + initialTokenColumns + ` FROM initial_access_tokens ORDER BY created_at, id`
	var list []registration.InitialAccessToken
	err := s.each(ctx, q, nil, func(scan func(dest ...any) error) error {
		var t registration.InitialAccessToken
		var expires, created, lastUsed sql.NullInt64
		if err := scan(&t.ID, &t.Name, &t.Hash, &t.MaxUses, &t.Uses, &expires, &created, &lastUsed); err != nil {
			return err
		}
		t.ExpiresAt, t.CreatedAt, t.LastUsedAt = timeOf(expires), timeOf(created), timeOf(lastUsed)
		list = append(list, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list initial access tokens: %w", err)
	}
	return list, nil
}

// DeleteInitialAccessToken implements registration.InitialAccessTokenStore.
func (s *Store) DeleteInitialAccessToken(ctx context.Context, id string) error {
	if err := s.execOne(ctx, `DELETE FROM initial_access_tokens WHERE id = $1`, id); err != nil {
		return fmt.Errorf("delete initial access token: %w", err)
	}
	return nil
}

// SpendInitialAccessToken implements registration.InitialAccessTokenStore.
func (s *Store) SpendInitialAccessToken(ctx context.Context, hash []byte, now time.Time) (id string, err error) {
	const q = `UPDATE initial_access_tokens SET uses = uses + 1, last_used_at = $2
		WHERE token_hash = $1 AND uses < max_uses AND expires_at > $2 RETURNING id`
	if err := s.returning(ctx, q, []any{hash, now.UnixMilli()}, &id); err != nil {
		return "", fmt.Errorf("spend initial access token: %w", err)
	}
	return id, nil
}

var _ registration.InitialAccessTokenStore = (*Store)(nil)
