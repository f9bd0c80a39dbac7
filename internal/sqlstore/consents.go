package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/registration"
)

const consentColumns = `subject, client_id, redirect_uri, resource, scopes, stay_connected,
	document_hash, created_at, updated_at`

// PutConsent implements consent.Store.
func (s *Store) PutConsent(ctx context.Context, c consent.Consent) error {
	const q = `INSERT INTO consents (` + consentColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (subject, client_id, redirect_uri, resource) DO UPDATE SET scopes = excluded.scopes,
		stay_connected = excluded.stay_connected, document_hash = excluded.document_hash, updated_at = excluded.updated_at`
	if _, err := s.exec(ctx, q, c.Subject, c.ClientID, registration.RedirectKey(c.RedirectURI), c.Resource, toJSON(c.Scopes), c.StayConnected,
		c.DocumentHash, millis(c.CreatedAt), millis(c.UpdatedAt)); err != nil {
		return fmt.Errorf("put consent: %w", err)
	}
	return nil
}

// GetConsent implements consent.Store.
func (s *Store) GetConsent(ctx context.Context, subject, clientID, redirectURI, resource string) (consent.Consent, error) {
	const q = `SELECT ` + consentColumns + ` FROM consents
		WHERE subject = $1 AND client_id = $2 AND redirect_uri = $3 AND resource = $4`
	return scanConsent(func(dest ...any) error {
		return s.row(ctx, q, []any{subject, clientID, registration.RedirectKey(redirectURI), resource}, dest...)
	})
}

// LastConsent implements consent.Store.
func (s *Store) LastConsent(ctx context.Context, subject, clientID string) (consent.Consent, error) {
	const q = `SELECT ` + consentColumns + ` FROM consents
		WHERE subject = $1 AND client_id = $2 ORDER BY updated_at DESC, redirect_uri, resource LIMIT 1`
	return scanConsent(func(dest ...any) error { return s.row(ctx, q, []any{subject, clientID}, dest...) })
}

// HoldConsent implements consent.Store. The update changes nothing and locks the
// row in the transaction of ctx.
func (s *Store) HoldConsent(ctx context.Context, subject, clientID, redirectURI, resource string) (consent.Consent, error) {
	const q = `UPDATE consents SET updated_at = updated_at
		WHERE subject = $1 AND client_id = $2 AND redirect_uri = $3 AND resource = $4 RETURNING ` + consentColumns
	return scanConsent(func(dest ...any) error {
		return s.returning(ctx, q, []any{subject, clientID, registration.RedirectKey(redirectURI), resource}, dest...)
	})
}

func scanConsent(scan func(dest ...any) error) (consent.Consent, error) {
	var (
		c               consent.Consent
		scopes          string
		created, update sql.NullInt64
	)
	if err := scan(&c.Subject, &c.ClientID, &c.RedirectURI, &c.Resource, &scopes, &c.StayConnected, &c.DocumentHash,
		&created, &update); err != nil {
		return consent.Consent{}, fmt.Errorf("get consent: %w", err)
	}
	c.CreatedAt, c.UpdatedAt = timeOf(created), timeOf(update)
	return c, fromJSON(scopes, &c.Scopes)
}

// HasConsent implements consent.Store.
func (s *Store) HasConsent(ctx context.Context, subject, clientID, redirectURI string) (bool, error) {
	const q = `SELECT EXISTS (SELECT 1 FROM consents WHERE subject = $1 AND client_id = $2 AND redirect_uri = $3)`
	var has bool
	if err := s.row(ctx, q, []any{subject, clientID, registration.RedirectKey(redirectURI)}, &has); err != nil {
		return false, fmt.Errorf("look for consent: %w", err)
	}
	return has, nil
}

// CountSubjects implements consent.Store.
func (s *Store) CountSubjects(ctx context.Context, clientID, exceptSubject string) (int, error) {
	const q = `SELECT COUNT(DISTINCT subject) FROM consents WHERE client_id = $1 AND subject <> $2`
	var n int
	if err := s.row(ctx, q, []any{clientID, exceptSubject}, &n); err != nil {
		return 0, fmt.Errorf("count consents: %w", err)
	}
	return n, nil
}

// DeleteConsents implements consent.Store.
func (s *Store) DeleteConsents(ctx context.Context, subject, clientID, resource string) error {
	if subject == "" && clientID == "" && resource == "" {
		return errors.New("delete consents: no subject, client or resource given")
	}
	const q = `DELETE FROM consents WHERE ($1 = '' OR subject = $1) AND ($2 = '' OR client_id = $2) AND ($3 = '' OR resource = $3)`
	if _, err := s.exec(ctx, q, subject, clientID, resource); err != nil {
		return fmt.Errorf("delete consents: %w", err)
	}
	return nil
}

var _ consent.Store = (*Store)(nil)
