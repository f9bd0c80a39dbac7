package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
)

// UseAssertion implements registration.AssertionStore. A row that has expired
// and was not collected yet is taken over: it can decide nothing any more.
func (s *Store) UseAssertion(ctx context.Context, clientID string, jtiHash []byte, expiresAt, now time.Time) (bool, error) {
	const q = `INSERT INTO used_assertions (client_id, jti_hash, expires_at) VALUES ($1, $2, $3)
		ON CONFLICT (client_id, jti_hash) DO UPDATE SET expires_at = excluded.expires_at WHERE used_assertions.expires_at <= $4`
	n, err := s.exec(ctx, q, clientID, jtiHash, expiresAt.UnixMilli(), now.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("use assertion: %w", err)
	}
	return n == 1, nil
}

var _ registration.AssertionStore = (*Store)(nil)
