package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
)

// mayExpire selects the clients that the idle rule concerns (A20). One of a
// metadata document would come back without what the operator decided about it,
// so then it stays; what nobody ever approved is gone earlier (unusedDocument).
const mayExpire = `verified_at IS NULL AND blocked_at IS NULL AND (kind = '` + string(registration.KindDynamic) + `'
	OR kind = '` + string(registration.KindCIMD) + `' AND last_used_at IS NOT NULL AND disabled_at IS NULL AND resources = '[]')`

// grantHeld selects grants g that live at the parameter now, and codes that may
// be redeemed then.
func grantHeld(now string) string {
	return fmt.Sprintf(`(g.ended_at IS NULL AND g.expires_at > %[1]s
		AND (g.generation > 0 AND (g.refresh_expires_at IS NULL OR g.refresh_expires_at > %[1]s)
			OR g.generation = 0 AND g.code_expires_at > %[1]s))`, now)
}

// unusedSince selects clients that nobody used after $1. It reads nothing but
// the row, so that PostgreSQL checks it again for a row that changed meanwhile.
const unusedSince = mayExpire + ` AND created_at <= $1 AND updated_at <= $1 AND (last_used_at IS NULL OR last_used_at <= $1)`

// DeleteIdleClients implements registration.IdleStore. An approval that goes on
// at the same time holds the client's row and writes its last use, so that it
// and this statement cannot both succeed.
func (s *Store) DeleteIdleClients(ctx context.Context, before, now time.Time, limit int) ([]string, error) {
	q := `DELETE FROM clients WHERE id IN (SELECT c.id FROM clients c WHERE ` + unusedSince + `
			AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.client_id = c.id AND (g.advanced_at > $1 OR ` + grantHeld("$2") + `))
			LIMIT $3)
		AND ` + unusedSince + ` RETURNING id`
	return s.deleteClients(ctx, q, before.UnixMilli(), now.UnixMilli(), limit)
}

// unusedDocument selects the clients of metadata documents that nobody named
// after $1 or ever approved. A decision of the operator keeps one: it would come
// back without.
const unusedDocument = identified + ` AND kind = '` + string(registration.KindCIMD) + `' AND last_used_at IS NULL
	AND verified_at IS NULL AND blocked_at IS NULL AND disabled_at IS NULL AND resources = '[]' AND updated_at <= $1
	AND NOT EXISTS (SELECT 1 FROM client_documents d WHERE d.client_id = clients.id AND d.tried_at > $1)
	AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.client_id = clients.id)`

// DeleteUnusedDocuments implements registration.IdleStore. The condition stands
// twice for a row that changes meanwhile, as in DeleteIdleClients.
func (s *Store) DeleteUnusedDocuments(ctx context.Context, before time.Time, limit int) ([]string, error) {
	const q = `DELETE FROM clients WHERE id IN (SELECT id FROM clients WHERE ` + unusedDocument + ` LIMIT $2)
		AND ` + unusedDocument + ` RETURNING id`
	return s.deleteClients(ctx, q, before.UnixMilli(), limit)
}

// deleteClients runs a DELETE that returns the id of each client it removes.
func (s *Store) deleteClients(ctx context.Context, q string, args ...any) ([]string, error) {
	rows, err := s.w(ctx, q).QueryContext(ctx, q, args...)
	if err != nil {
		return nil, fmt.Errorf("delete unused clients: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("delete unused clients: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// LastUses implements registration.IdleStore.
func (s *Store) LastUses(ctx context.Context, now time.Time) (map[string]registration.LastUse, error) {
	q := `SELECT c.id, c.created_at, c.updated_at, c.last_used_at,
			(SELECT MAX(g.advanced_at) FROM grants g WHERE g.client_id = c.id),
			EXISTS (SELECT 1 FROM grants g WHERE g.client_id = c.id AND ` + grantHeld("$1") + `)
		FROM clients c WHERE ` + mayExpire
	uses := map[string]registration.LastUse{}
	err := s.each(ctx, q, []any{now.UnixMilli()}, func(scan func(dest ...any) error) error {
		var id string
		var live bool
		var times [4]sql.NullInt64
		if err := scan(&id, &times[0], &times[1], &times[2], &times[3], &live); err != nil {
			return err
		}
		var last int64
		for _, t := range times {
			last = max(last, t.Int64)
		}
		uses[id] = registration.LastUse{At: time.UnixMilli(last).UTC(), Live: live}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list last uses of clients: %w", err)
	}
	return uses, nil
}

// keepLastUses writes down the last refresh of grants that are about to be
// deleted: the idle time of a client counts from it (A20).
func (s *Store) keepLastUses(ctx context.Context, before time.Time) error {
	const last = `(SELECT MAX(g.advanced_at) FROM grants g WHERE g.client_id = clients.id)`
	const q = `UPDATE clients SET last_used_at = ` + last + `
		WHERE id IN (SELECT client_id FROM grants WHERE expires_at <= $1 AND advanced_at IS NOT NULL)
		AND (last_used_at IS NULL OR last_used_at < ` + last + `)`
	if _, err := s.exec(ctx, q, before.UnixMilli()); err != nil {
		return fmt.Errorf("keep last uses of clients: %w", err)
	}
	return nil
}

var _ registration.IdleStore = (*Store)(nil)
