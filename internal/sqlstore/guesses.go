package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
)

// GetGuess implements login.GuessStore.
func (s *Store) GetGuess(ctx context.Context, name string, now time.Time) (login.Guess, error) {
	const q = `SELECT name, failures, blocked_until, expires_at FROM guesses WHERE name = $1 AND expires_at > $2`
	var g login.Guess
	var blocked int64
	var expires sql.NullInt64
	if err := s.row(ctx, q, []any{name, millis(now)}, &g.Name, &g.Failures, &blocked, &expires); err != nil {
		return login.Guess{}, fmt.Errorf("get guess: %w", err)
	}
	g.BlockedUntil = timeOf(sql.NullInt64{Int64: blocked, Valid: blocked != 0})
	g.ExpiresAt = timeOf(expires)
	return g, nil
}

// CountGuess implements login.GuessStore.
func (s *Store) CountGuess(ctx context.Context, name string, now, expires time.Time) (int, error) {
	const q = `INSERT INTO guesses (name, failures, blocked_until, expires_at) VALUES ($1, 1, 0, $3)
		ON CONFLICT (name) DO UPDATE SET
			failures = CASE WHEN guesses.expires_at > $2 THEN guesses.failures + 1 ELSE 1 END,
			blocked_until = CASE WHEN guesses.expires_at > $2 THEN guesses.blocked_until ELSE 0 END,
			expires_at = $3
		RETURNING failures`
	var n int
	if err := s.returning(ctx, q, []any{name, millis(now), millis(expires)}, &n); err != nil {
		return 0, fmt.Errorf("count guess: %w", err)
	}
	return n, nil
}

// BlockGuess implements login.GuessStore.
func (s *Store) BlockGuess(ctx context.Context, name string, until time.Time) error {
	if err := s.execOne(ctx, `UPDATE guesses SET blocked_until = $2 WHERE name = $1`, name, millis(until)); err != nil {
		return fmt.Errorf("block guess: %w", err)
	}
	return nil
}

// DeleteGuess implements login.GuessStore.
func (s *Store) DeleteGuess(ctx context.Context, name string) error {
	if _, err := s.exec(ctx, `DELETE FROM guesses WHERE name = $1`, name); err != nil {
		return fmt.Errorf("delete guess: %w", err)
	}
	return nil
}

var _ login.GuessStore = (*Store)(nil)
