package sqlstore

import (
	"context"
	"fmt"

	"github.com/ostiary-auth/ostiary/authserver"
)

// joinedClientColumns are clientColumns of a LEFT JOIN: a removed client has the
// id "".
const joinedClientColumns = `COALESCE(c.id, ''), COALESCE(c.kind, ''), COALESCE(c.metadata, '{}'), c.secret_hash,
	c.secret_expires_at, COALESCE(c.resources, '[]'), COALESCE(c.source, ''), c.verified_at, c.disabled_at,
	COALESCE(c.document_hash, ''), c.created_at, c.updated_at, c.last_used_at,
	c.old_secret_hash, c.old_secret_expires_at, c.registration_token_hash, c.blocked_at, c.verified_until`

// LoadRedemption implements authserver.Redemptions.
func (s *Store) LoadRedemption(ctx context.Context, grantID string) (authserver.Redemption, error) {
	const q = `SELECT ` + grantColumns + `,
			CASE WHEN u.id IS NOT NULL AND u.disabled_at IS NULL THEN TRUE ELSE FALSE END,
			CASE WHEN r.canonical IS NOT NULL THEN TRUE ELSE FALSE END,
			COALESCE(r.scopes, '[]'), ` + joinedClientColumns + `
		FROM grants g
			LEFT JOIN users u ON u.id = g.subject
			LEFT JOIN resources r ON r.identifier = g.resource
			LEFT JOIN clients c ON c.id = g.client_id
		WHERE g.id = $1`
	var (
		out    authserver.Redemption
		row    grantRow
		scopes string
	)
	client, err := scanClient(func(dest ...any) error {
		all := append(row.dest(), &out.SubjectEnabled, &out.ResourceRegistered, &scopes)
		return s.row(ctx, q, []any{grantID}, append(all, dest...)...)
	})
	if err != nil {
		return out, fmt.Errorf("load redemption: %w", err)
	}
	if client.ID != "" {
		out.Client = &client
	}
	if err := fromJSON(scopes, &out.Scopes); err != nil {
		return out, err
	}
	out.Grant, err = row.grant()
	return out, err
}

var _ authserver.Redemptions = (*Store)(nil)
