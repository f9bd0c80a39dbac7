package sqlstore

import (
	"context"
	"fmt"
	"time"
)

// HoldSession implements authserver.SessionHolder. The update changes nothing
// and locks the row in the transaction of ctx.
func (s *Store) HoldSession(ctx context.Context, id, subject string, now time.Time) (bool, error) {
	const q = `UPDATE sessions SET last_seen_at = last_seen_at WHERE id = $1 AND subject = $2 AND expires_at > $3`
	n, err := s.exec(ctx, q, id, subject, now.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("hold session: %w", err)
	}
	return n == 1, nil
}
