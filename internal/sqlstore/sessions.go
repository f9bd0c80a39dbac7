package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
)

const sessionColumns = `id, subject, auth_at, ip, source, user_agent, created_at, last_seen_at, expires_at`

// CreateSession implements login.SessionStore. The cap is part of the statement,
// as CreateRequest's is, and as exact.
func (s *Store) CreateSession(ctx context.Context, r login.Session, limit int) (bool, error) {
	const q = `INSERT INTO sessions (` + sessionColumns + `)
		SELECT $1, $2, CAST($3 AS BIGINT), $4, $5, $6, CAST($7 AS BIGINT), CAST($8 AS BIGINT), CAST($9 AS BIGINT)
		WHERE $2 <> '' OR (SELECT COUNT(*) FROM sessions
			WHERE source = $5 AND subject = '' AND expires_at > $8) < CAST($10 AS BIGINT)`
	n, err := s.exec(ctx, q, r.ID, r.Subject, millis(r.AuthTime), r.IP, r.Source, r.UserAgent,
		millis(r.CreatedAt), millis(r.LastSeenAt), millis(r.ExpiresAt), limit)
	if err != nil {
		return false, fmt.Errorf("create session: %w", err)
	}
	return n == 1, nil
}

// GetSession implements login.SessionStore. The account comes in the same
// statement, so that every page costs one.
func (s *Store) GetSession(ctx context.Context, id string) (login.SessionUser, error) {
	const q = `SELECT s.id, s.subject, s.auth_at, s.ip, s.source, s.user_agent, s.created_at, s.last_seen_at, s.expires_at,
		COALESCE(u.id, ''), COALESCE(u.email, ''), COALESCE(u.name, ''), COALESCE(u.operator, FALSE), u.disabled_at
		FROM sessions s LEFT JOIN users u ON u.id = s.subject WHERE s.id = $1`
	var su login.SessionUser
	var disabled sql.NullInt64
	var err error
	su.Session, err = scanSession(func(dest ...any) error {
		dest = append(dest, &su.UserID, &su.Email, &su.Name, &su.Operator, &disabled)
		return s.row(ctx, q, []any{id}, dest...)
	})
	if err != nil {
		return login.SessionUser{}, fmt.Errorf("get session: %w", err)
	}
	su.DisabledAt = timeOf(disabled)
	return su, nil
}

// TouchSession implements login.SessionStore.
func (s *Store) TouchSession(ctx context.Context, id string, seen, expires time.Time) error {
	const q = `UPDATE sessions SET last_seen_at = $2, expires_at = $3 WHERE id = $1`
	if _, err := s.exec(ctx, q, id, millis(seen), millis(expires)); err != nil {
		return fmt.Errorf("touch session: %w", err)
	}
	return nil
}

// HoldSession implements authserver.SessionHolder. The update changes nothing
// and locks the row in the transaction of ctx.
func (s *Store) HoldSession(ctx context.Context, id, subject string, now time.Time) (bool, error) {
	const q = `UPDATE sessions SET last_seen_at = last_seen_at WHERE id = $1 AND subject = $2 AND expires_at > $3`
	n, err := s.exec(ctx, q, id, subject, now.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("hold session: %w", err)
	}
	return n == 1, nil
}

// DeleteSession implements login.SessionStore.
func (s *Store) DeleteSession(ctx context.Context, id string) (bool, error) {
	n, err := s.exec(ctx, `DELETE FROM sessions WHERE id = $1`, id)
	if err != nil {
		return false, fmt.Errorf("delete session: %w", err)
	}
	return n == 1, nil
}

// DeleteSessions implements login.SessionStore.
func (s *Store) DeleteSessions(ctx context.Context, subject, exceptID string) (int, error) {
	const q = `DELETE FROM sessions WHERE subject = $1 AND subject <> '' AND id <> $2`
	n, err := s.exec(ctx, q, subject, exceptID)
	if err != nil {
		return 0, fmt.Errorf("delete sessions: %w", err)
	}
	return n, nil
}

// ListSessions implements login.SessionStore.
func (s *Store) ListSessions(ctx context.Context, subject string, now time.Time) ([]login.Session, error) {
	const q = `SELECT ` + sessionColumns + ` FROM sessions
		WHERE subject = $1 AND subject <> '' AND expires_at > $2 ORDER BY last_seen_at DESC, id`
	var list []login.Session
	err := s.each(ctx, q, []any{subject, millis(now)}, func(scan func(dest ...any) error) error {
		r, err := scanSession(scan)
		list = append(list, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return list, nil
}

func scanSession(scan func(dest ...any) error) (login.Session, error) {
	var r login.Session
	var auth, created, seen, expires sql.NullInt64
	err := scan(&r.ID, &r.Subject, &auth, &r.IP, &r.Source, &r.UserAgent, &created, &seen, &expires)
	r.AuthTime, r.CreatedAt, r.LastSeenAt, r.ExpiresAt = timeOf(auth), timeOf(created), timeOf(seen), timeOf(expires)
	return r, err
}

var _ login.SessionStore = (*Store)(nil)
