package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/flow"
)

// collectBatch is how many rows one statement deletes, so that none holds locks,
// or SQLite's one writer, for long.
const collectBatch = 1000

// collectLease is how long a turn at collecting lasts: a little less than the
// minute between two of them, so that whoever had the last may have the next.
const collectLease = 50 * time.Second

// Grants whose code was never used are looked for by the time of the code, which
// redeemed grants have too, and no index may tell them apart: one that names the
// generation would cost every rotation its HOT update. So each turn looks a few
// hours back, and once a day at all of them, for those that a longer stop left.
const (
	unusedWindow = 3 * time.Hour
	unusedLease  = 24 * time.Hour
)

// spentTokens is how long an expired initial access token is still listed.
const spentTokens = 30 * 24 * time.Hour

// CollectInTurn is Collect for one of several processes on this database: it
// reports false when another one collected less than a minute ago.
func (s *Store) CollectInTurn(ctx context.Context, now time.Time) (bool, error) {
	mine, err := s.takeLease(ctx, "collect", now, now.Add(collectLease))
	if err != nil || !mine {
		return false, err
	}
	all, err := s.takeLease(ctx, "collect unused grants", now, now.Add(unusedLease))
	if err != nil {
		return false, err
	}
	if all {
		return true, s.Collect(ctx, now)
	}
	return true, s.collectAll(ctx, now, now.Add(-unusedWindow))
}

// takeLease reports whether nobody else has the lease, and takes it. Of
// concurrent takers one gets it.
func (s *Store) takeLease(ctx context.Context, name string, now, until time.Time) (bool, error) {
	const q = `INSERT INTO leases (name, expires_at) VALUES ($1, $3)
		ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at WHERE leases.expires_at <= $2`
	n, err := s.exec(ctx, q, name, now.UnixMilli(), until.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("take lease: %w", err)
	}
	return n == 1, nil
}

// Collect deletes rows that can decide nothing any more: sessions, devices,
// guesses, links, refusals and used assertions past their time, authorization requests a
// day after their end, grants whose code was never used an hour after it expired
// (D10), and other grants at their absolute expiry; an ended one is kept until
// then, so that its tokens are recognised. Live grants, clients and keys are never
// touched (ST-10); registration.Idle removes clients, with an event for each.
func (s *Store) Collect(ctx context.Context, now time.Time) error {
	return s.collectAll(ctx, now, time.UnixMilli(0))
}

func (s *Store) collectAll(ctx context.Context, now, unusedSince time.Time) error {
	hourAgo, dayAgo := now.Add(-time.Hour), now.Add(-24*time.Hour)
	if err := s.keepLastUses(ctx, hourAgo); err != nil {
		return err
	}
	for _, c := range []struct {
		table, key, where string
		before            time.Time
	}{
		{"sessions", "id", "expires_at <= $1", now},
		{"devices", "id, subject", "expires_at <= $1", now},
		{"guesses", "name", "expires_at <= $1", now},
		{"initial_access_tokens", "id", "expires_at <= $1", dayAgo.Add(-spentTokens)},
		{"setup_links", "token_hash", "expires_at <= $1", dayAgo},
		{"used_assertions", "client_id, jti_hash", "expires_at <= $1", now},
		{"authorization_requests", "id", "expires_at <= $1", dayAgo.Add(-flow.RequestMax)},
		{"grants", "id", fmt.Sprintf("generation = 0 AND code_expires_at <= $1 AND code_expires_at > %d",
			unusedSince.UnixMilli()), hourAgo},
		{"grants", "id", "expires_at <= $1", hourAgo},
		{"client_documents", "client_id", "tried_at <= $1 AND NOT EXISTS (SELECT 1 FROM clients c WHERE c.id = client_documents.client_id)", dayAgo},
		{"fetch_budgets", "name", "started_at <= $1", dayAgo},
		{"refusals", "subject, client_id, redirect_uri, resource, set_hash", "refused_at <= $1", now.Add(-consent.QuietFor)},
	} {
		if err := s.collect(ctx, c.table, c.key, c.where, c.before); err != nil {
			return fmt.Errorf("collect expired %s: %w", c.table, err)
		}
	}
	return nil
}

// collect deletes the rows of a table in batches. The condition stands twice: on
// PostgreSQL a row that was changed after it was chosen is checked again, and
// only by the outer one.
func (s *Store) collect(ctx context.Context, table, key, where string, before time.Time) error {
	q := fmt.Sprintf(`DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s LIMIT %[4]d) AND %[3]s`,
		table, key, where, collectBatch)
	for {
		var n int
		// a transaction, so that a deadlock with an account's end is tried again
		err := s.InTx(ctx, func(ctx context.Context) (err error) {
			n, err = s.exec(ctx, q, before.UnixMilli())
			return err
		})
		if err != nil || n < collectBatch {
			return err
		}
	}
}
