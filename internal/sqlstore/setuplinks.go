package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
)

// CreateSetupLink implements login.SetupStore.
func (s *Store) CreateSetupLink(ctx context.Context, l login.SetupLink) (bool, error) {
	// PostgreSQL cannot infer the types of parameters in a SELECT list
	const q = `INSERT INTO setup_links (token_hash, created_at, expires_at, used_at)
		SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT)
		WHERE NOT EXISTS (SELECT 1 FROM users WHERE operator)`
	n, err := s.exec(ctx, q, l.TokenHash, millis(l.CreatedAt), millis(l.ExpiresAt), millis(l.UsedAt))
	if err != nil {
		return false, fmt.Errorf("create set-up link: %w", err)
	}
	return n == 1, nil
}

// HasOperator implements login.SetupStore.
func (s *Store) HasOperator(ctx context.Context) (bool, error) {
	var has bool
	if err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM users WHERE operator)`, nil, &has); err != nil {
		return false, fmt.Errorf("look for an operator: %w", err)
	}
	return has, nil
}

// SetupLinkLive implements login.SetupStore.
func (s *Store) SetupLinkLive(ctx context.Context, tokenHash string, now time.Time) (bool, error) {
	const q = `SELECT EXISTS (SELECT 1 FROM setup_links
		WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2)
		AND NOT EXISTS (SELECT 1 FROM users WHERE operator)`
	var live bool
	if err := s.row(ctx, q, []any{tokenHash, millis(now)}, &live); err != nil {
		return false, fmt.Errorf("look for a set-up link: %w", err)
	}
	return live, nil
}

// UseSetupLink implements login.SetupStore. It marks every unused row, so two
// uses of two links meet in the same rows and one of them finds nothing left.
func (s *Store) UseSetupLink(ctx context.Context, tokenHash string, now time.Time) (bool, error) {
	const q = `UPDATE setup_links SET used_at = $2 WHERE used_at IS NULL
		AND EXISTS (SELECT 1 FROM setup_links l WHERE l.token_hash = $1 AND l.used_at IS NULL AND l.expires_at > $2)
		AND NOT EXISTS (SELECT 1 FROM users WHERE operator)`
	n, err := s.exec(ctx, q, tokenHash, millis(now))
	if err != nil {
		return false, fmt.Errorf("use set-up link: %w", err)
	}
	return n > 0, nil
}

// EndSetupLinks implements login.SetupStore.
func (s *Store) EndSetupLinks(ctx context.Context, now time.Time) error {
	if _, err := s.exec(ctx, `UPDATE setup_links SET used_at = $1 WHERE used_at IS NULL`, millis(now)); err != nil {
		return fmt.Errorf("end set-up links: %w", err)
	}
	return nil
}

var _ login.SetupStore = (*Store)(nil)
