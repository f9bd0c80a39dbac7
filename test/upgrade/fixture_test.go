package upgrade

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// migrationsDir holds the schema's files.
const migrationsDir = "../../migrations"

// fixture is what one version left behind: every row, and what those who used it
// hold. The rows are the same for both databases.
type fixture struct {
	// Version wrote it.
	Version string
	// Issuer and Secret are its configuration.
	Issuer, Secret string
	// At is when it was written.
	At time.Time
	// Migrations are the files that made its schema, by name, with their SHA-256.
	Migrations map[string]string
	// Clients hold connections.
	Clients []client
	// Code of Clients[0] is not redeemed.
	Code string
	// Ended is a refresh token of Clients[0] whose grant was revoked.
	Ended string
	// Disabled holds a connection, and is disabled.
	Disabled client
	// Idle is the client_id of one that registered itself and did nothing more.
	Idle string
	// Cookies are those of a browser in which Mina is signed in, with the consent
	// page at Consent open.
	Cookies map[string]string
	Consent string
	// Newer is what versions since v0.3.0 left.
	Newer *newer `json:",omitempty"`
	// Rows are not part of the file's head.
	Rows []row `json:"-"`
}

// client is what a client keeps.
type client struct {
	ID, Secret, Method, Redirect string
	// Access is its access token, Refresh its refresh token and Previous the one before.
	Access, Refresh, Previous string
	// Key is the private JWK of one that signs assertions, by ES256.
	Key json.RawMessage `json:",omitempty"`
}

// row is a row of a table, without the columns that are NULL.
type row struct {
	Table  string
	Values map[string]any
}

// String returns the row as text that compares.
func (r row) String() string {
	var b strings.Builder
	b.WriteString(r.Table)
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		fmt.Fprintf(&b, " %s=%q", name, fmt.Sprint(r.Values[name]))
	}
	return b.String()
}

// blob is how bytes are written in a fixture.
type blob struct{ Bytes []byte }

// save writes the head to VERSION.json and the rows, one a line, to VERSION.jsonl.
func (f *fixture) save(t *testing.T, dir string) {
	t.Helper()
	head, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var rows bytes.Buffer
	for _, r := range f.Rows {
		values := maps.Clone(r.Values)
		for name, v := range values {
			if b, ok := v.([]byte); ok {
				values[name] = blob{b}
			}
		}
		line, err := json.Marshal(row{r.Table, values})
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(append(line, '\n'))
	}
	for name, b := range map[string][]byte{".json": append(head, '\n'), ".jsonl": rows.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, f.Version+name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// load reads what save wrote.
func load(t *testing.T, path string) *fixture {
	t.Helper()
	head, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{}
	if err := json.Unmarshal(head, f); err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(path + "l")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(rows) {
		var r struct {
			Table  string
			Values map[string]json.RawMessage
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		for name, raw := range r.Values {
			values[name] = value(t, raw)
		}
		f.Rows = append(f.Rows, row{r.Table, values})
	}
	return f
}

func value(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var text string
	var number int64
	var truth bool
	var bytes blob
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &number) == nil:
		return number
	case json.Unmarshal(raw, &truth) == nil:
		return truth
	case json.Unmarshal(raw, &bytes) == nil:
		return bytes.Bytes
	}
	t.Fatalf("value %s", raw)
	return nil
}

// readRows returns every row of db, with values of the types that both databases take.
func readRows(ctx context.Context, t *testing.T, db *sql.DB) []row {
	t.Helper()
	var list []row
	for _, table := range sqlstore.Tables {
		rows, err := db.QueryContext(ctx, "SELECT * FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.ColumnTypes()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			r := row{table, map[string]any{}}
			for i, c := range columns {
				if v := *values[i].(*any); v != nil {
					r.Values[c.Name()] = common(t, c.DatabaseTypeName(), v)
				}
			}
			list = append(list, r)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// common turns a value as a driver returns it into one of four types.
func common(t *testing.T, column string, v any) any {
	t.Helper()
	switch v := v.(type) {
	case int64:
		if strings.HasPrefix(column, "BOOL") {
			return v != 0
		}
		return v
	case string, bool, []byte:
		return v
	}
	t.Fatalf("a %T in a column of type %s", v, column)
	return nil
}

// insert writes the rows into a schema that may have more columns: what a process
// of the fixture's version writes.
func (f *fixture) insert(ctx context.Context, t *testing.T, db *sql.DB) {
	t.Helper()
	for _, r := range f.Rows {
		names := slices.Sorted(maps.Keys(r.Values))
		var marks []string
		var args []any
		for i, name := range names {
			marks, args = append(marks, fmt.Sprintf("$%d", i+1)), append(args, r.Values[name])
		}
		q := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", r.Table, strings.Join(names, ", "), strings.Join(marks, ", "))
		if _, err := db.ExecContext(ctx, q, args...); err != nil {
			t.Fatalf("%s: %v", r, err)
		}
	}
}

// columns returns rows as sorted text, with only those columns that the fixture's
// rows have.
func (f *fixture) columns(rows []row) []string {
	known := map[[2]string]bool{}
	for _, r := range f.Rows {
		for name := range r.Values {
			known[[2]string{r.Table, name}] = true
		}
	}
	var list []string
	for _, r := range rows {
		values := maps.Clone(r.Values)
		maps.DeleteFunc(values, func(name string, _ any) bool { return !known[[2]string{r.Table, name}] })
		if len(values) > 0 {
			list = append(list, row{r.Table, values}.String())
		}
	}
	slices.Sort(list)
	return list
}

// fileSums returns the migrations of this tree by name.
func fileSums(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(migrationsDir, "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		sums[filepath.Base(name)] = hex.EncodeToString(sum[:])
	}
	return sums
}

// openRaw opens a database beside the store, for what no store method does.
func openRaw(t *testing.T, url string) *sql.DB {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(url, "postgres") {
		driver = "pgx"
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// databases make the URL of an empty database of each kind.
var databases = map[string]func(t *testing.T) string{
	"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "ostiary.db") },
	"postgres": func(t *testing.T) string { return testkit.EmptyPostgresURL(t) },
}
