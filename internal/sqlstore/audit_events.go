package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ostiary-auth/ostiary/internal/audit"
)

// Append implements audit.Store.
func (s *Store) Append(ctx context.Context, e audit.Event) error {
	const q = `INSERT INTO audit_events (id, at, name, actor, subject, client_id, resource, grant_id, outcome, ip, request_id, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	if _, err := s.exec(ctx, q, e.ID, millis(e.At), e.Name, e.Actor, e.Subject, e.ClientID, e.Resource, e.GrantID,
		e.Outcome, e.IP, e.RequestID, toJSON(e.Detail)); err != nil {
		return fmt.Errorf("append audit event: %w", err)
	}
	return nil
}

// ListEvents implements audit.Store.
func (s *Store) ListEvents(ctx context.Context, limit int) ([]audit.Event, error) {
	const q = `SELECT id, at, name, actor, subject, client_id, resource, grant_id, outcome, ip, request_id, detail
		FROM audit_events ORDER BY at DESC, id LIMIT $1`
	var list []audit.Event
	err := s.each(ctx, q, []any{limit}, func(scan func(...any) error) error {
		var (
			e      audit.Event
			at     sql.NullInt64
			detail string
		)
		if err := scan(&e.ID, &at, &e.Name, &e.Actor, &e.Subject, &e.ClientID, &e.Resource, &e.GrantID, &e.Outcome,
			&e.IP, &e.RequestID, &detail); err != nil {
			return err
		}
		e.At = timeOf(at)
		if err := fromJSON(detail, &e.Detail); err != nil {
			return err
		}
		list = append(list, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list audit events: %w", err)
	}
	return list, nil
}

var _ audit.Store = (*Store)(nil)
