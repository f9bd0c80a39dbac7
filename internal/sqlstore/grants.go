package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
)

const grantColumns = `g.id, g.client_id, g.subject, g.resource, g.scopes, g.offline_access, g.offline_named,
	g.redirect_uri, g.code_challenge, g.auth_method, g.auth_at, g.salt, g.generation, g.advanced_at,
	g.code_expires_at, g.refresh_expires_at, g.expires_at, g.ended_at, g.end_reason, g.created_at`

// grantRow receives grantColumns.
type grantRow struct {
	g                                             grant.Grant
	scopes                                        string
	authAt, advancedAt, refreshExpiresAt, endedAt sql.NullInt64
	codeExpiresAt, expiresAt, createdAt           sql.NullInt64
}

func (r *grantRow) dest() []any {
	g := &r.g
	return []any{&g.ID, &g.ClientID, &g.Subject, &g.Resource, &r.scopes, &g.OfflineAccess, &g.OfflineNamed,
		&g.RedirectURI, &g.CodeChallenge, &g.AuthMethod, &r.authAt, &g.Salt, &g.Generation, &r.advancedAt,
		&r.codeExpiresAt, &r.refreshExpiresAt, &r.expiresAt, &r.endedAt, &g.EndReason, &r.createdAt}
}

func (r *grantRow) grant() (grant.Grant, error) {
	g := r.g
	g.AuthTime, g.AdvancedAt = timeOf(r.authAt), timeOf(r.advancedAt)
	g.CodeExpiresAt, g.RefreshExpiresAt = timeOf(r.codeExpiresAt), timeOf(r.refreshExpiresAt)
	g.ExpiresAt, g.EndedAt, g.CreatedAt = timeOf(r.expiresAt), timeOf(r.endedAt), timeOf(r.createdAt)
	return g, fromJSON(r.scopes, &g.Scopes)
}

// CreateGrant implements grant.Store.
func (s *Store) CreateGrant(ctx context.Context, g grant.Grant) error {
	const q = `INSERT INTO grants (id, client_id, subject, resource, scopes, offline_access, offline_named,
			redirect_uri, code_challenge, auth_method, auth_at, salt, generation, advanced_at,
			code_expires_at, refresh_expires_at, expires_at, ended_at, end_reason, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`
	if _, err := s.exec(ctx, q, g.ID, g.ClientID, g.Subject, g.Resource, toJSON(g.Scopes), g.OfflineAccess,
		g.OfflineNamed, g.RedirectURI, g.CodeChallenge, g.AuthMethod, millis(g.AuthTime), g.Salt, g.Generation,
		millis(g.AdvancedAt), millis(g.CodeExpiresAt), millis(g.RefreshExpiresAt), millis(g.ExpiresAt),
		millis(g.EndedAt), g.EndReason, millis(g.CreatedAt)); err != nil {
		return fmt.Errorf("create grant: %w", err)
	}
	return nil
}

// GetGrant implements grant.Store.
func (s *Store) GetGrant(ctx context.Context, id string) (grant.Grant, error) {
	const q = `SELECT ` + grantColumns + ` FROM grants g WHERE g.id = $1`
	var r grantRow
	if err := s.row(ctx, q, []any{id}, r.dest()...); err != nil {
		return grant.Grant{}, fmt.Errorf("get grant: %w", err)
	}
	return r.grant()
}

// AdvanceGrant implements grant.Store. One statement decides, so of two
// concurrent redemptions exactly one advances the grant (CO-02, RT-04). From
// generation 0 to more than 1 is a refresh token whose commit was lost: it
// outlives the code (D30).
func (s *Store) AdvanceGrant(ctx context.Context, a grant.Advance) (bool, error) {
	const q = `UPDATE grants SET generation = $3, advanced_at = $4, refresh_expires_at = $5,
			expires_at = COALESCE($6, expires_at),
			auth_method = CASE WHEN generation = 0 THEN $7 ELSE auth_method END
		WHERE id = $1 AND generation = $2 AND ended_at IS NULL AND expires_at > $4
			AND (generation > 0 OR code_expires_at > $4 OR CAST($3 AS BIGINT) > 1)
			AND (generation = 0 OR refresh_expires_at > $4)
			AND EXISTS (SELECT 1 FROM users u WHERE u.id = grants.subject AND u.disabled_at IS NULL)
			AND EXISTS (SELECT 1 FROM clients c WHERE c.id = grants.client_id AND c.disabled_at IS NULL AND c.blocked_at IS NULL)
			AND ($8 OR EXISTS (SELECT 1 FROM resources r WHERE r.identifier = grants.resource))`
	n, err := s.exec(ctx, q, a.ID, a.From, a.To, a.Now.UnixMilli(), millis(a.RefreshExpiresAt),
		millis(a.ExpiresAt), a.AuthMethod, a.Unregistered)
	if err != nil {
		return false, fmt.Errorf("advance grant: %w", err)
	}
	return n == 1, nil
}

// EndGrant implements grant.Store.
func (s *Store) EndGrant(ctx context.Context, id, reason string, now time.Time) (bool, error) {
	const q = `UPDATE grants SET ended_at = $2, end_reason = $3, salt = NULL WHERE id = $1 AND ended_at IS NULL`
	n, err := s.exec(ctx, q, id, now.UnixMilli(), reason)
	if err != nil {
		return false, fmt.Errorf("end grant: %w", err)
	}
	return n == 1, nil
}

// EndGrants implements grant.Store.
func (s *Store) EndGrants(ctx context.Context, f grant.Filter, reason string, now time.Time) (int, error) {
	const q = `UPDATE grants SET ended_at = $4, end_reason = $5, salt = NULL
		WHERE ended_at IS NULL AND ($1 = '' OR subject = $1) AND ($2 = '' OR client_id = $2) AND ($3 = '' OR resource = $3)
			AND (CAST($6 AS BIGINT) = 0 OR ` + grantLive + `)`
	n, err := s.exec(ctx, q, f.Subject, f.ClientID, f.Resource, now.UnixMilli(), reason, liveAt(f))
	if err != nil {
		return 0, fmt.Errorf("end grants: %w", err)
	}
	return n, nil
}

// grantLive is Grant.Live for a redeemed grant at $6.
const grantLive = `(generation > 0 AND expires_at > $6 AND (refresh_expires_at IS NULL OR refresh_expires_at > $6))`

func liveAt(f grant.Filter) int64 {
	if f.LiveAt.IsZero() {
		return 0
	}
	return f.LiveAt.UnixMilli()
}

// ListGrants implements grant.Store.
func (s *Store) ListGrants(ctx context.Context, f grant.Filter) ([]grant.Grant, error) {
	const q = `SELECT ` + grantColumns + ` FROM grants g
		WHERE ($1 = '' OR subject = $1) AND ($2 = '' OR client_id = $2) AND ($3 = '' OR resource = $3)
			AND (CAST($4 AS BIGINT) = 0 OR (ended_at IS NULL AND generation > 0 AND expires_at > $4
				AND (refresh_expires_at IS NULL OR refresh_expires_at > $4)))
		ORDER BY created_at DESC, id`
	var list []grant.Grant
	err := s.each(ctx, q, []any{f.Subject, f.ClientID, f.Resource, liveAt(f)}, func(scan func(...any) error) error {
		var r grantRow
		if err := scan(r.dest()...); err != nil {
			return err
		}
		g, err := r.grant()
		list = append(list, g)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	return list, nil
}

var _ grant.Store = (*Store)(nil)
