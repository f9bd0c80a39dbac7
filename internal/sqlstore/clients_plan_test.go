package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// Anybody may register, so the table of clients is long. What each registration,
// each consent page and each minute asks of it reads an index: a registration
// holds up the others, and on SQLite every writer, for as long as it counts.
func TestDR13_ClientsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	path := testkit.SQLitePath(t)
	var statements []string
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: path, Synchronous: "NORMAL",
		OnStatement: func(_ context.Context, q string) { statements = append(statements, q) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Now()
	if _, err := db.ReuseClient(t.Context(), "192.0.2.1", "hash", now); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	_, all := db.CountClientsFrom(t.Context(), "", now)
	_, one := db.CountClientsFrom(t.Context(), "192.0.2.1", now)
	_, listed := db.ListIdentities(t.Context(), 500)
	_, idle := db.DeleteIdleClients(t.Context(), now, now, 200)
	_, unused := db.DeleteUnusedDocuments(t.Context(), now, 200)
	if err := errors.Join(all, one, listed, idle, unused, db.Collect(t.Context(), now)); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	asked := 0
	for _, q := range statements {
		if !regexp.MustCompile(`(FROM|UPDATE) clients\b`).MatchString(q) || strings.Contains(q, "UPDATE clients SET last_used_at") {
			continue // keepLastUses starts from grants
		}
		asked++
		for _, step := range plan(t, raw, q) {
			if regexp.MustCompile(`^SCAN (clients|c)$`).MatchString(step) {
				t.Errorf("%s: every client is read by\n%s", step, q)
			}
		}
	}
	if asked < 6 {
		t.Errorf("%d statements about clients, want 6 or more", asked)
	}
}

// plan returns the steps by which SQLite would run a statement.
func plan(t *testing.T, db *sql.DB, q string) (steps []string) {
	t.Helper()
	var args []any
	for _, name := range regexp.MustCompile(`\$[0-9]+`).FindAllString(q, -1) {
		if n := int(name[1] - '0'); n > len(args) {
			args = append(args, make([]any, n-len(args))...)
		}
	}
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+q, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, q)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}
