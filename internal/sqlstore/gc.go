package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/flow"
)

// Collect deletes rows that can decide nothing any more: sessions, devices,
// guesses and links past their time, authorization requests a day after their
// end, grants whose code was never used an hour after it expired (D10), and
// other grants at their absolute expiry; an ended one is kept until then, so
// that its tokens are recognised. Live grants, clients and keys are never
// touched (ST-10).
func (s *Store) Collect(ctx context.Context, now time.Time) error {
	for _, q := range []struct {
		query  string
		before time.Time
	}{
		{`DELETE FROM sessions WHERE expires_at <= $1`, now},
		{`DELETE FROM devices WHERE expires_at <= $1`, now},
		{`DELETE FROM guesses WHERE expires_at <= $1`, now},
		{`DELETE FROM setup_links WHERE expires_at <= $1`, now.Add(-24 * time.Hour)},
		{`DELETE FROM authorization_requests WHERE expires_at <= $1`, now.Add(-24*time.Hour - flow.RequestMax)},
		{`DELETE FROM grants WHERE generation = 0 AND code_expires_at <= $1`, now.Add(-time.Hour)},
		{`DELETE FROM grants WHERE expires_at <= $1`, now.Add(-time.Hour)},
	} {
		if _, err := s.exec(ctx, q.query, q.before.UnixMilli()); err != nil {
			return fmt.Errorf("collect expired rows: %w", err)
		}
	}
	return nil
}
