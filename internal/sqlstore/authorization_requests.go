package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"time"

	"github.com/ostiary-auth/ostiary/internal/flow"
)

const requestColumns = `id, reference, session_id, source, client_id, redirect_uri, resource, scopes, offline_named,
	state, has_state, prompt, code_challenge, params, created_at, expires_at, decision, approved_scopes,
	stay_connected, decided_at, decided_by, finished_at, grant_id, error_code, error_description, once_hash, returned_at, extends_consent`

// CreateRequest implements flow.Store. The cap is part of the statement: a flood
// from one source stops at it on SQLite, which has one writer. On PostgreSQL a
// statement does not see what others have not committed, so as many more as run
// at the same moment, at most the pool's connections of each process, may pass
// it (DO-02).
func (s *Store) CreateRequest(ctx context.Context, a flow.AuthorizationRequest, limit int) (bool, error) {
	const q = `INSERT INTO authorization_requests (` + requestColumns + `)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, CAST($15 AS BIGINT), CAST($16 AS BIGINT),
			$17, $18, $19, CAST($20 AS BIGINT), $21, CAST($22 AS BIGINT), $23, $24, $25, CAST($26 AS TEXT), CAST($27 AS BIGINT), $28
		WHERE (SELECT COUNT(*) FROM authorization_requests
			WHERE source = $4 AND finished_at IS NULL AND expires_at > $15) < CAST($29 AS BIGINT)`
	n, err := s.exec(ctx, q, a.ID, a.Reference, a.SessionID, a.Source, a.ClientID, a.RedirectURI, a.Resource,
		toJSON(a.Scopes), a.OfflineNamed, a.State, a.HasState, toJSON(a.Prompt), a.CodeChallenge, a.Params.Encode(),
		millis(a.CreatedAt), millis(a.ExpiresAt), string(a.Decision), toJSON(a.ApprovedScopes), a.StayConnected,
		millis(a.DecidedAt), a.DecidedBy, millis(a.FinishedAt), a.GrantID, a.ErrorCode, a.ErrorDescription,
		nullable(a.OnceHash), millis(a.ReturnedAt), a.ExtendsConsent, limit)
	if err != nil {
		return false, fmt.Errorf("create authorization request: %w", err)
	}
	return n == 1, nil
}

// GetRequest implements flow.Store.
func (s *Store) GetRequest(ctx context.Context, id string) (flow.AuthorizationRequest, error) {
	const q = `SELECT ` + requestColumns + ` FROM authorization_requests WHERE id = $1`
	return s.getRequest(ctx, q, id)
}

// GetRequestByOnce implements flow.Store.
func (s *Store) GetRequestByOnce(ctx context.Context, onceHash string) (flow.AuthorizationRequest, error) {
	const q = `SELECT ` + requestColumns + ` FROM authorization_requests WHERE once_hash = $1`
	return s.getRequest(ctx, q, onceHash)
}

func (s *Store) getRequest(ctx context.Context, q string, arg string) (flow.AuthorizationRequest, error) {
	var (
		a                                                       flow.AuthorizationRequest
		scopes, prompt, params, approved                        string
		onceHash                                                sql.NullString
		createdAt, expiresAt, decidedAt, finishedAt, returnedAt sql.NullInt64
	)
	if err := s.row(ctx, q, []any{arg}, &a.ID, &a.Reference, &a.SessionID, &a.Source, &a.ClientID, &a.RedirectURI,
		&a.Resource, &scopes, &a.OfflineNamed, &a.State, &a.HasState, &prompt, &a.CodeChallenge, &params, &createdAt,
		&expiresAt, &a.Decision, &approved, &a.StayConnected, &decidedAt, &a.DecidedBy, &finishedAt, &a.GrantID,
		&a.ErrorCode, &a.ErrorDescription, &onceHash, &returnedAt, &a.ExtendsConsent); err != nil {
		return flow.AuthorizationRequest{}, fmt.Errorf("get authorization request: %w", err)
	}
	a.CreatedAt, a.ExpiresAt, a.DecidedAt = timeOf(createdAt), timeOf(expiresAt), timeOf(decidedAt)
	a.FinishedAt, a.ReturnedAt, a.OnceHash = timeOf(finishedAt), timeOf(returnedAt), onceHash.String
	values, err := url.ParseQuery(params)
	if err != nil {
		return a, fmt.Errorf("stored parameters: %w", err)
	}
	a.Params = values
	for raw, into := range map[string]*[]string{scopes: &a.Scopes, prompt: &a.Prompt, approved: &a.ApprovedScopes} {
		if err := fromJSON(raw, into); err != nil {
			return a, err
		}
	}
	return a, nil
}

// TouchRequest implements flow.Store.
func (s *Store) TouchRequest(ctx context.Context, id string, until time.Time) error {
	const q = `UPDATE authorization_requests SET
			expires_at = CASE WHEN created_at + $3 < $2 THEN created_at + $3 ELSE $2 END
		WHERE id = $1 AND finished_at IS NULL AND expires_at < $2`
	if _, err := s.exec(ctx, q, id, until.UnixMilli(), flow.RequestMax.Milliseconds()); err != nil {
		return fmt.Errorf("touch authorization request: %w", err)
	}
	return nil
}

// AnswerRequest implements flow.Store.
func (s *Store) AnswerRequest(ctx context.Context, id, sessionID string, a flow.Answer) (bool, error) {
	const q = `UPDATE authorization_requests SET decision = $3, approved_scopes = $4, stay_connected = $5,
			decided_at = $6, decided_by = $7, extends_consent = $8
		WHERE id = $1 AND session_id = $2 AND decision = '' AND finished_at IS NULL AND expires_at > $6`
	n, err := s.exec(ctx, q, id, sessionID, string(a.Decision), toJSON(a.ApprovedScopes), a.StayConnected,
		a.Now.UnixMilli(), a.By, a.ExtendsConsent)
	if err != nil {
		return false, fmt.Errorf("answer authorization request: %w", err)
	}
	return n == 1, nil
}

// FinishRequest implements flow.Store.
func (s *Store) FinishRequest(ctx context.Context, id, sessionID string, o flow.Outcome) (bool, error) {
	const q = `UPDATE authorization_requests SET grant_id = $3, error_code = $4, error_description = $5,
			once_hash = $6, finished_at = $7
		WHERE id = $1 AND session_id = $2 AND finished_at IS NULL AND expires_at > $7`
	n, err := s.exec(ctx, q, id, sessionID, o.GrantID, o.ErrorCode, o.ErrorDescription, nullable(o.OnceHash),
		o.Now.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("finish authorization request: %w", err)
	}
	return n == 1, nil
}

// MarkReturned implements flow.Store.
func (s *Store) MarkReturned(ctx context.Context, id string, now time.Time) (bool, error) {
	const q = `UPDATE authorization_requests SET returned_at = $2 WHERE id = $1 AND returned_at IS NULL`
	n, err := s.exec(ctx, q, id, now.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("mark authorization request returned: %w", err)
	}
	return n == 1, nil
}

// MoveRequests implements flow.Store.
func (s *Store) MoveRequests(ctx context.Context, from, to string) error {
	const q = `UPDATE authorization_requests SET session_id = $2 WHERE session_id = $1 AND finished_at IS NULL`
	if _, err := s.exec(ctx, q, from, to); err != nil {
		return fmt.Errorf("move authorization requests: %w", err)
	}
	return nil
}

// nullable is the column form of an optional string.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

var _ flow.Store = (*Store)(nil)
