package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/resource"
)

var _ resource.AdminStore = (*Store)(nil)

const resourceColumns = `canonical, identifier, name, claimed_name, is_default, scopes, created_at, updated_at,
	COALESCE(introspection_id, ''), secret_hash, old_secret_hash, old_secret_expires_at`

// CreateResource implements resource.Store. A new resource has no credential.
func (s *Store) CreateResource(ctx context.Context, r resource.Resource) error {
	const q = `INSERT INTO resources (canonical, identifier, name, claimed_name, is_default, scopes, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	_, err := s.exec(ctx, q, r.Canonical, r.Identifier, r.Name, r.ClaimedName, r.Default, toJSON(r.Scopes),
		millis(r.CreatedAt), millis(r.UpdatedAt))
	if err != nil {
		return fmt.Errorf("create resource: %w", err)
	}
	return nil
}

// GetResource implements resource.Store.
func (s *Store) GetResource(ctx context.Context, canonical string) (resource.Resource, error) {
	const q = `SELECT ` + resourceColumns + ` FROM resources WHERE canonical = $1`
	r, err := scanResource(func(dest ...any) error { return s.row(ctx, q, []any{canonical}, dest...) })
	if err != nil {
		return resource.Resource{}, fmt.Errorf("get resource: %w", err)
	}
	return r, nil
}

// ListResources implements resource.Store.
func (s *Store) ListResources(ctx context.Context) ([]resource.Resource, error) {
	const q = `SELECT ` + resourceColumns + ` FROM resources ORDER BY identifier`
	var list []resource.Resource
	err := s.each(ctx, q, nil, func(scan func(dest ...any) error) error {
		r, err := scanResource(scan)
		list = append(list, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	return list, nil
}

// UpdateResource implements resource.Store.
func (s *Store) UpdateResource(ctx context.Context, r resource.Resource) error {
	const q = `UPDATE resources SET identifier = $2, name = $3, claimed_name = $4, is_default = $5, scopes = $6, updated_at = $7
		WHERE canonical = $1`
	err := s.execOne(ctx, q, r.Canonical, r.Identifier, r.Name, r.ClaimedName, r.Default, toJSON(r.Scopes), millis(r.UpdatedAt))
	if err != nil {
		return fmt.Errorf("update resource: %w", err)
	}
	return nil
}

// LockResources implements resource.AdminStore.
func (s *Store) LockResources(ctx context.Context) error { return s.LockServer(ctx, "lock.resources") }

// UnmarkDefault implements resource.AdminStore.
func (s *Store) UnmarkDefault(ctx context.Context, canonical string, now time.Time) ([]string, error) {
	const q = `UPDATE resources SET is_default = FALSE, updated_at = $2
		WHERE is_default AND canonical <> $1 RETURNING identifier`
	var identifiers []string
	err := s.eachReturning(ctx, q, []any{canonical, millis(now)}, func(scan func(dest ...any) error) error {
		var identifier string
		err := scan(&identifier)
		identifiers = append(identifiers, identifier)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("take default mark away: %w", err)
	}
	return identifiers, nil
}

// SetCredential implements resource.AdminStore.
func (s *Store) SetCredential(ctx context.Context, canonical string, c resource.Credential, now time.Time) error {
	const q = `UPDATE resources SET introspection_id = $2, secret_hash = $3, old_secret_hash = $4,
		old_secret_expires_at = $5, updated_at = $6 WHERE canonical = $1`
	id := sql.NullString{String: c.ID, Valid: c.Exists()} // several resources have none
	err := s.execOne(ctx, q, canonical, id, c.SecretHash, c.OldSecretHash, millis(c.OldSecretExpiresAt), millis(now))
	if err != nil {
		return fmt.Errorf("set credential of resource: %w", err)
	}
	return nil
}

// ResourceByCredential implements authserver.ResourceCredentials.
func (s *Store) ResourceByCredential(ctx context.Context, id string) (resource.Resource, error) {
	const q = `SELECT ` + resourceColumns + ` FROM resources WHERE introspection_id = $1`
	r, err := scanResource(func(dest ...any) error { return s.row(ctx, q, []any{id}, dest...) })
	if err != nil {
		return resource.Resource{}, fmt.Errorf("find resource by credential: %w", err)
	}
	return r, nil
}

// DeleteResource implements resource.Store.
func (s *Store) DeleteResource(ctx context.Context, canonical string) error {
	const q = `DELETE FROM resources WHERE canonical = $1`
	if err := s.execOne(ctx, q, canonical); err != nil {
		return fmt.Errorf("delete resource: %w", err)
	}
	return nil
}

func scanResource(scan func(dest ...any) error) (resource.Resource, error) {
	var r resource.Resource
	var scopes string
	var created, updated, oldExpires sql.NullInt64
	c := &r.Credential
	err := scan(&r.Canonical, &r.Identifier, &r.Name, &r.ClaimedName, &r.Default, &scopes, &created, &updated,
		&c.ID, &c.SecretHash, &c.OldSecretHash, &oldExpires)
	if err != nil {
		return resource.Resource{}, err
	}
	r.CreatedAt, r.UpdatedAt, c.OldSecretExpiresAt = timeOf(created), timeOf(updated), timeOf(oldExpires)
	return r, fromJSON(scopes, &r.Scopes)
}
