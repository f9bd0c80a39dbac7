package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

const clientDocumentColumns = `client_id, hash, etag, last_modified, first_seen_at, fetched_at, fresh_until,
	tried_at, retry_at, failures, problem, failure`

// GetClientDocument implements registration.DocumentStore.
func (s *Store) GetClientDocument(ctx context.Context, clientID string) (registration.ClientDocument, error) {
	const q = `SELECT ` + clientDocumentColumns + ` FROM client_documents WHERE client_id = $1`
	d, err := scanClientDocument(func(dest ...any) error { return s.row(ctx, q, []any{clientID}, dest...) })
	if err != nil {
		return registration.ClientDocument{}, fmt.Errorf("get client document: %w", err)
	}
	return d, nil
}

// ListClientDocuments implements registration.DocumentStore.
func (s *Store) ListClientDocuments(ctx context.Context) ([]registration.ClientDocument, error) {
	const q = `SELECT ` + clientDocumentColumns + ` FROM client_documents ORDER BY first_seen_at, client_id`
	var list []registration.ClientDocument
	err := s.each(ctx, q, nil, func(scan func(dest ...any) error) error {
		d, err := scanClientDocument(scan)
		list = append(list, d)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list client documents: %w", err)
	}
	return list, nil
}

// PutClientDocument implements registration.DocumentStore.
func (s *Store) PutClientDocument(ctx context.Context, d registration.ClientDocument) error {
	const q = `INSERT INTO client_documents (` + clientDocumentColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (client_id) DO UPDATE SET hash = excluded.hash, etag = excluded.etag, last_modified = excluded.last_modified,
			fetched_at = excluded.fetched_at, fresh_until = excluded.fresh_until, tried_at = excluded.tried_at,
			retry_at = excluded.retry_at, failures = excluded.failures, problem = excluded.problem, failure = excluded.failure`
	if _, err := s.exec(ctx, q, d.ClientID, d.Hash, d.ETag, d.LastModified, millis(d.FirstSeenAt), millis(d.FetchedAt),
		millis(d.FreshUntil), millis(d.TriedAt), millis(d.RetryAt), d.Failures, string(d.Problem), d.Failure); err != nil {
		return fmt.Errorf("put client document: %w", err)
	}
	return nil
}

// FailClientDocument implements registration.DocumentStore.
func (s *Store) FailClientDocument(ctx context.Context, d registration.ClientDocument) error {
	const q = `INSERT INTO client_documents (client_id, hash, etag, last_modified, first_seen_at, tried_at, retry_at, failures, problem, failure)
		VALUES ($1, '', '', '', $2, $2, $3, 1, $4, $5)
		ON CONFLICT (client_id) DO UPDATE SET tried_at = excluded.tried_at, retry_at = excluded.retry_at,
			failures = client_documents.failures + 1, problem = excluded.problem, failure = excluded.failure`
	if _, err := s.exec(ctx, q, d.ClientID, millis(d.TriedAt), millis(d.RetryAt), string(d.Problem), d.Failure); err != nil {
		return fmt.Errorf("record a client document's failure: %w", err)
	}
	return nil
}

// SpendFetch implements registration.DocumentStore. One statement counts and
// compares, so that processes together stay within the budget.
func (s *Store) SpendFetch(ctx context.Context, name string, limit int, now, windowStart time.Time) (bool, error) {
	const q = `INSERT INTO fetch_budgets (name, spent, started_at) VALUES ($1, 1, $2)
		ON CONFLICT (name) DO UPDATE SET
			spent = CASE WHEN fetch_budgets.started_at <= $3 THEN 1 ELSE fetch_budgets.spent + 1 END,
			started_at = CASE WHEN fetch_budgets.started_at <= $3 THEN $2 ELSE fetch_budgets.started_at END
		WHERE fetch_budgets.started_at <= $3 OR fetch_budgets.spent < $4
		RETURNING spent`
	var spent int
	err := s.returning(ctx, q, []any{name, millis(now), millis(windowStart), limit}, &spent)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("spend a fetch: %w", err)
	}
	return true, nil
}

func scanClientDocument(scan func(dest ...any) error) (registration.ClientDocument, error) {
	var d registration.ClientDocument
	var first, fetched, fresh, tried, retry sql.NullInt64
	if err := scan(&d.ClientID, &d.Hash, &d.ETag, &d.LastModified, &first, &fetched, &fresh, &tried, &retry,
		&d.Failures, &d.Problem, &d.Failure); err != nil {
		return d, err
	}
	d.FirstSeenAt, d.FetchedAt, d.FreshUntil = timeOf(first), timeOf(fetched), timeOf(fresh)
	d.TriedAt, d.RetryAt = timeOf(tried), timeOf(retry)
	return d, nil
}

var _ registration.DocumentStore = (*Store)(nil)
