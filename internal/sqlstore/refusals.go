package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/registration"
)

// setHash finds a set of scopes, which may be too long for an index. A
// scope-token has no space.
func setHash(sorted []string) string {
	sum := sha256.Sum256([]byte(strings.Join(sorted, " ")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// CountRefusal implements consent.RefusalStore. The row keeps the last two times,
// so the statement that adds a third knows how long ago the first was.
func (s *Store) CountRefusal(ctx context.Context, r consent.Refusal, windowStart time.Time) error {
	const q = `INSERT INTO refusals (subject, client_id, redirect_uri, resource, set_hash, scopes, refused_at, previous_at, quiet)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0, FALSE)
		ON CONFLICT (subject, client_id, redirect_uri, resource, set_hash) DO UPDATE SET
			quiet = refusals.previous_at > $8, previous_at = refusals.refused_at, refused_at = excluded.refused_at`
	if _, err := s.exec(ctx, q, r.Subject, r.ClientID, registration.RedirectKey(r.RedirectURI), r.Resource, setHash(r.Scopes),
		toJSON(r.Scopes), r.RefusedAt.UnixMilli(), windowStart.UnixMilli()); err != nil {
		return fmt.Errorf("count refusal: %w", err)
	}
	return nil
}

// IsQuiet implements consent.RefusalStore.
func (s *Store) IsQuiet(ctx context.Context, r consent.Refusal, since time.Time) (bool, error) {
	const q = `SELECT EXISTS (SELECT 1 FROM refusals WHERE subject = $1 AND client_id = $2 AND redirect_uri = $3
		AND resource = $4 AND set_hash = $5 AND quiet AND refused_at > $6)`
	var quiet bool
	if err := s.row(ctx, q, []any{r.Subject, r.ClientID, registration.RedirectKey(r.RedirectURI), r.Resource, setHash(r.Scopes),
		since.UnixMilli()}, &quiet); err != nil {
		return false, fmt.Errorf("look for refusal: %w", err)
	}
	return quiet, nil
}

// ListQuiet implements consent.RefusalStore.
func (s *Store) ListQuiet(ctx context.Context, subject string, since time.Time) ([]consent.Refusal, error) {
	const q = `SELECT subject, client_id, redirect_uri, resource, scopes, refused_at FROM refusals
		WHERE subject = $1 AND quiet AND refused_at > $2 ORDER BY client_id, resource, redirect_uri, set_hash`
	var list []consent.Refusal
	err := s.each(ctx, q, []any{subject, since.UnixMilli()}, func(scan func(dest ...any) error) error {
		var (
			r       consent.Refusal
			scopes  string
			refused sql.NullInt64
		)
		if err := scan(&r.Subject, &r.ClientID, &r.RedirectURI, &r.Resource, &scopes, &refused); err != nil {
			return err
		}
		r.RefusedAt = timeOf(refused)
		list = append(list, r)
		return fromJSON(scopes, &list[len(list)-1].Scopes)
	})
	if err != nil {
		return nil, fmt.Errorf("list refusals: %w", err)
	}
	return list, nil
}

// DeleteRefusals implements consent.RefusalStore.
func (s *Store) DeleteRefusals(ctx context.Context, subject, clientID, resource string) (int, error) {
	const q = `DELETE FROM refusals WHERE subject = $1 AND client_id = $2 AND resource = $3`
	n, err := s.exec(ctx, q, subject, clientID, resource)
	if err != nil {
		return 0, fmt.Errorf("delete refusals: %w", err)
	}
	return n, nil
}

var _ consent.RefusalStore = (*Store)(nil)
