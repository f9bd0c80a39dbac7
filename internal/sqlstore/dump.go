package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"io"
)

// Tables are all tables of the schema, in the order of the migrations.
var Tables = []string{"server", "secret_checks", "signing_keys", "users", "setup_links", "sessions", "devices", "guesses",
	"resources", "clients", "consents", "grants", "authorization_requests", "audit_events", "leases", "client_documents", "fetch_budgets", "initial_access_tokens", "used_assertions"}

// Dump writes every row of every table as text: for tests that look for what
// must not be stored (ST-01), and that nothing beyond what a case states changed.
func (s *Store) Dump(ctx context.Context, w io.Writer) error {
	for _, table := range Tables {
		if err := s.dumpTable(ctx, w, table); err != nil {
			return fmt.Errorf("dump %s: %w", table, err)
		}
	}
	return nil
}

func (s *Store) dumpTable(ctx context.Context, w io.Writer, table string) error {
	rows, err := s.read.QueryContext(ctx, `SELECT * FROM `+table+` ORDER BY 1`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.RawBytes)
		}
		if err := rows.Scan(values...); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s", table)
		for i, v := range values {
			raw := *v.(*sql.RawBytes)
			fmt.Fprintf(w, " %s=%q", columns[i], string(raw))
		}
		fmt.Fprintln(w)
	}
	return rows.Err()
}
