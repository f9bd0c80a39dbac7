package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
)

const clientColumns = `id, kind, metadata, secret_hash, secret_expires_at, resources, source,
	verified_at, disabled_at, document_hash, created_at, updated_at, last_used_at,
	old_secret_hash, old_secret_expires_at, registration_token_hash, blocked_at, verified_until`

// CreateClient implements registration.Store.
func (s *Store) CreateClient(ctx context.Context, c registration.Client) error {
	const q = `INSERT INTO clients (` + clientColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`
	if _, err := s.exec(ctx, q, c.ID, string(c.Kind), toJSON(c.Metadata), c.SecretHash, millis(c.SecretExpiresAt),
		toJSON(c.Resources), c.Source, millis(c.VerifiedAt), millis(c.DisabledAt), c.DocumentHash,
		millis(c.CreatedAt), millis(c.UpdatedAt), millis(c.LastUsedAt),
		c.OldSecretHash, millis(c.OldSecretExpiresAt), c.RegistrationTokenHash, millis(c.BlockedAt), millis(c.VerifiedUntil)); err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	return nil
}

// GetClient implements registration.Store.
func (s *Store) GetClient(ctx context.Context, id string) (registration.Client, error) {
	const q = `SELECT ` + clientColumns + ` FROM clients WHERE id = $1`
	c, err := scanClient(func(dest ...any) error { return s.row(ctx, q, []any{id}, dest...) })
	if err != nil {
		return registration.Client{}, fmt.Errorf("get client: %w", err)
	}
	return c, nil
}

// ListClients implements registration.Store.
func (s *Store) ListClients(ctx context.Context) ([]registration.Client, error) {
	const q = `SELECT ` + clientColumns + ` FROM clients ORDER BY created_at, id`
	var clients []registration.Client
	err := s.each(ctx, q, nil, func(scan func(dest ...any) error) error {
		c, err := scanClient(scan)
		clients = append(clients, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list clients: %w", err)
	}
	return clients, nil
}

// identified selects the clients that did not just register themselves. It is
// the condition of an index, word for word, which finds them among many others.
const identified = `(kind <> '` + string(registration.KindDynamic) + `' OR verified_at IS NOT NULL)`

// ListIdentities returns who the clients are that the operator added or verified,
// then those known by a metadata document, oldest first, at most limit. A consent
// page reads them all: of the metadata, which is as long as strangers like, it
// keeps what is compared, one row after the other. The database does not take it
// apart: PostgreSQL's JSON refuses what Go's wrote, and one such row all pages.
func (s *Store) ListIdentities(ctx context.Context, limit int) ([]registration.Identity, error) {
	const q = `SELECT id, kind, metadata, verified_at, verified_until, created_at FROM clients WHERE ` + identified + `
		ORDER BY CASE WHEN kind = $1 OR verified_at IS NOT NULL THEN 0 ELSE 1 END, created_at, id LIMIT $2`
	var list []registration.Identity
	var metadata sql.RawBytes
	err := s.each(ctx, q, []any{string(registration.KindOperator), limit}, func(scan func(dest ...any) error) error {
		var c registration.Client
		var verified, until, created sql.NullInt64
		if err := scan(&c.ID, &c.Kind, &metadata, &verified, &until, &created); err != nil {
			return err
		}
		c.VerifiedAt, c.VerifiedUntil, c.CreatedAt = timeOf(verified), timeOf(until), timeOf(created)
		var shown struct {
			Name         string   `json:"client_name"`
			RedirectURIs []string `json:"redirect_uris"`
		}
		if err := json.Unmarshal(metadata, &shown); err != nil {
			return err
		}
		c.Metadata.ClientName, c.Metadata.RedirectURIs = shown.Name, shown.RedirectURIs
		list = append(list, c.Identity())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list identities of clients: %w", err)
	}
	return list, nil
}

// HoldClient implements registration.Store. The update changes nothing and locks
// the row in the transaction of ctx.
func (s *Store) HoldClient(ctx context.Context, id string) (registration.Client, error) {
	const q = `UPDATE clients SET updated_at = updated_at WHERE id = $1 RETURNING ` + clientColumns
	c, err := scanClient(func(dest ...any) error { return s.returning(ctx, q, []any{id}, dest...) })
	if err != nil {
		return registration.Client{}, fmt.Errorf("hold client: %w", err)
	}
	return c, nil
}

// UpdateClient implements registration.Store.
func (s *Store) UpdateClient(ctx context.Context, c registration.Client) error {
	const q = `UPDATE clients SET metadata = $2, secret_hash = $3, secret_expires_at = $4, resources = $5, source = $6,
		verified_at = $7, disabled_at = $8, document_hash = $9, updated_at = $10,
		old_secret_hash = $11, old_secret_expires_at = $12, registration_token_hash = $13, blocked_at = $14, verified_until = $15 WHERE id = $1`
	if err := s.execOne(ctx, q, c.ID, toJSON(c.Metadata), c.SecretHash, millis(c.SecretExpiresAt),
		toJSON(c.Resources), c.Source, millis(c.VerifiedAt), millis(c.DisabledAt), c.DocumentHash,
		millis(c.UpdatedAt), c.OldSecretHash, millis(c.OldSecretExpiresAt), c.RegistrationTokenHash, millis(c.BlockedAt),
		millis(c.VerifiedUntil)); err != nil {
		return fmt.Errorf("update client: %w", err)
	}
	return nil
}

// DeleteClient implements registration.Store.
func (s *Store) DeleteClient(ctx context.Context, id string) error {
	if err := s.execOne(ctx, `DELETE FROM clients WHERE id = $1`, id); err != nil {
		return fmt.Errorf("delete client: %w", err)
	}
	return nil
}

// CountClientsFrom implements registration.Store.
func (s *Store) CountClientsFrom(ctx context.Context, source string, since time.Time) (int, error) {
	q, args := `SELECT COUNT(*) FROM clients WHERE created_at >= $1 AND kind = $2 AND last_used_at IS NULL`,
		[]any{millis(since), string(registration.KindDynamic)}
	if source != "" { // one condition for both would use no index
		q, args = q+` AND source = $3`, append(args, source)
	}
	var n int
	if err := s.row(ctx, q, args, &n); err != nil {
		return 0, fmt.Errorf("count clients: %w", err)
	}
	return n, nil
}

// TouchClient implements registration.Store. Inside a transaction it waits for a
// block that is going on, and then finds no row: nothing is issued behind it.
func (s *Store) TouchClient(ctx context.Context, id string, now time.Time) error {
	if err := s.execOne(ctx, `UPDATE clients SET last_used_at = $2 WHERE id = $1 AND blocked_at IS NULL`, id, millis(now)); err != nil {
		return fmt.Errorf("touch client: %w", err)
	}
	return nil
}

func scanClient(scan func(dest ...any) error) (registration.Client, error) {
	var (
		c                                               registration.Client
		metadata, resources                             string
		secretEnds, verified, disabled, created, update sql.NullInt64
		lastUsed, oldSecretEnds, blocked, verifiedUntil sql.NullInt64
	)
	if err := scan(&c.ID, &c.Kind, &metadata, &c.SecretHash, &secretEnds, &resources, &c.Source,
		&verified, &disabled, &c.DocumentHash, &created, &update, &lastUsed,
		&c.OldSecretHash, &oldSecretEnds, &c.RegistrationTokenHash, &blocked, &verifiedUntil); err != nil {
		return c, err
	}
	c.SecretExpiresAt, c.VerifiedAt, c.DisabledAt = timeOf(secretEnds), timeOf(verified), timeOf(disabled)
	c.OldSecretExpiresAt, c.BlockedAt, c.VerifiedUntil = timeOf(oldSecretEnds), timeOf(blocked), timeOf(verifiedUntil)
	c.CreatedAt, c.UpdatedAt, c.LastUsedAt = timeOf(created), timeOf(update), timeOf(lastUsed)
	if err := fromJSON(metadata, &c.Metadata); err != nil {
		return c, err
	}
	return c, fromJSON(resources, &c.Resources)
}

var _ registration.Store = (*Store)(nil)
