package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
)

// HoldRegistrations implements registration.DynamicStore.
func (s *Store) HoldRegistrations(ctx context.Context) error {
	return s.LockServer(ctx, "lock.registrations")
}

// ReuseClient implements registration.DynamicStore. An approval that goes on at
// the same time writes the row's last use, which the outer condition sees.
func (s *Store) ReuseClient(ctx context.Context, source, documentHash string, now time.Time) (registration.Client, error) {
	const untouched = `last_used_at IS NULL AND verified_at IS NULL AND disabled_at IS NULL AND blocked_at IS NULL`
	const q = `UPDATE clients SET updated_at = $4 WHERE id = (SELECT c.id FROM clients c
			WHERE c.source = $1 AND c.document_hash = $2 AND c.kind = $3 AND ` + untouched + `
				AND c.secret_hash IS NULL AND c.registration_token_hash IS NULL AND c.resources = '[]'
				AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.client_id = c.id)
			ORDER BY c.created_at DESC, c.id LIMIT 1)
		AND ` + untouched + ` RETURNING ` + clientColumns
	args := []any{source, documentHash, string(registration.KindDynamic), now.UnixMilli()}
	c, err := scanClient(func(dest ...any) error { return s.returning(ctx, q, args, dest...) })
	if err != nil {
		return registration.Client{}, fmt.Errorf("reuse client: %w", err)
	}
	return c, nil
}

var _ registration.DynamicStore = (*Store)(nil)
