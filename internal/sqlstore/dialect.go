package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/migrations"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// dialect names what differs between the two databases: how to open them, which
// errors mean "unique" and "try again", and the migration lock.
type dialect string

const (
	dialectSQLite   dialect = "sqlite"
	dialectPostgres dialect = "postgres"
)

func (d dialect) migrations() migrations.Dialect {
	if d == dialectPostgres {
		return migrations.Postgres
	}
	return migrations.SQLite
}

func (d dialect) isUnique(err error) bool {
	if d == dialectPostgres {
		return pgCode(err) == "23505"
	}
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// isRetryable reports a serialization failure, a deadlock or a stale snapshot:
// the transaction did nothing and may run again at once.
func (d dialect) isRetryable(err error) bool {
	if d == dialectPostgres {
		code := pgCode(err)
		return code == "40001" || code == "40P01"
	}
	// busy_timeout has already waited for a database that another process holds;
	// only a snapshot that went stale is worth another try
	return sqliteCode(err) == sqlite3.SQLITE_BUSY_SNAPSHOT
}

func pgCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

func open(ctx context.Context, o Options) (*Store, error) {
	if store.IsPostgresURL(o.URL) {
		return openPostgres(ctx, o)
	}
	return openSQLite(ctx, o)
}

func openPostgres(ctx context.Context, o Options) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// pgx's error repeats the URL, which may hold a password
		return nil, errors.New("database URL: not a PostgreSQL connection string")
	}
	if o.MaxConns == 0 {
		o.MaxConns = 16
	}
	cfg.MaxConns = int32(o.MaxConns)
	cfg.MaxConnIdleTime = 5 * time.Minute
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	return &Store{write: db, read: db, dialect: dialectPostgres, closePool: pool.Close}, nil
}

func openSQLite(_ context.Context, o Options) (*Store, error) {
	if o.Synchronous == "" {
		o.Synchronous = "FULL"
	}
	write, err := sql.Open("sqlite", sqliteDSN(o, "immediate"))
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", sqliteDSN(o, "deferred"))
	if err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	read.SetMaxOpenConns(8)
	read.SetMaxIdleConns(8)
	return &Store{write: write, read: read, dialect: dialectSQLite}, nil
}

// sqliteDSN: WAL lets readers and the one writer work side by side; the command
// line writes beside serve, so a busy database is waited for.
func sqliteDSN(o Options, txlock string) string {
	q := url.Values{"_txlock": {txlock}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(" + o.Synchronous + ")"}}
	return "file:" + (&url.URL{Path: store.SQLitePath(o.URL)}).EscapedPath() + "?" + q.Encode()
}

// Now returns the database's clock on PostgreSQL, whose processes share it
// (D27). SQLite has no clock of its own: ok is false.
func (s *Store) Now(ctx context.Context) (now time.Time, ok bool, err error) {
	if s.dialect != dialectPostgres {
		return time.Time{}, false, nil
	}
	const q = `SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)`
	var ms int64
	if err := s.row(ctx, q, nil, &ms); err != nil {
		return time.Time{}, true, fmt.Errorf("read database clock: %w", err)
	}
	return time.UnixMilli(ms).UTC(), true, nil
}
