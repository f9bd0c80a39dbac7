// Package sqlstore implements every Store interface of the house over
// database/sql, with one set of queries for SQLite and PostgreSQL. What differs
// between the two stands in dialect.go. One file a table; the query stands in
// the method that uses it.
package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/migrations"
)

// Store is the database. It is safe for concurrent use.
type Store struct {
	// write is the pool for statements that change something; on SQLite it has
	// one connection, since SQLite has one writer.
	write *sql.DB
	// read is the pool for statements outside a transaction that only read; on
	// PostgreSQL it is the same pool.
	read        *sql.DB
	dialect     dialect
	onStatement func(ctx context.Context, query string)
	// closePool closes what the sql.DB was made from: closing the sql.DB alone
	// leaves a pgxpool's connections open.
	closePool func()
}

// Options configures Open.
type Options struct {
	// URL is postgres://… or the path of a SQLite file. Required.
	URL string
	// MaxConns bounds the PostgreSQL pool. Default 16.
	MaxConns int
	// Synchronous is SQLite's synchronous pragma: FULL (default) or NORMAL.
	Synchronous string
	// OnStatement, when set, is told of every statement before it runs, for
	// tests that count them.
	OnStatement func(ctx context.Context, query string)
}

// Open connects to the database; it changes nothing there. Migrate applies the schema.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.onStatement = o.OnStatement
	return s, nil
}

// Close closes the pools.
func (s *Store) Close() error {
	if s.closePool != nil {
		defer s.closePool()
	}
	if s.read == s.write {
		return s.write.Close()
	}
	return errors.Join(s.read.Close(), s.write.Close())
}

// Migrate applies pending migrations and returns how many it applied.
func (s *Store) Migrate(ctx context.Context) (int, error) {
	return migrations.Up(ctx, s.write, s.dialect.migrations())
}

// Migrations returns every migration with its state.
func (s *Store) Migrations(ctx context.Context) ([]migrations.Status, error) {
	return migrations.List(ctx, s.write, s.dialect.migrations())
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.read.PingContext(ctx); err != nil {
		return fmt.Errorf("database does not answer: %w", err)
	}
	return nil
}

// querier is what *sql.DB and *sql.Tx have in common.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

type txKey struct{ s *Store }

// maxTxTries bounds how often InTx runs its function again (ST-06).
const maxTxTries = 5

// InTx implements store.Transactor.
func (s *Store) InTx(ctx context.Context, fn func(ctx context.Context) error) error {
	if ctx.Value(txKey{s}) != nil {
		return fn(ctx)
	}
	var err error
	for range maxTxTries {
		if err = s.tryTx(ctx, fn); err == nil || !s.dialect.isRetryable(err) {
			return err
		}
	}
	return err
}

func (s *Store) tryTx(ctx context.Context, fn func(ctx context.Context) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	if err := fn(context.WithValue(ctx, txKey{s}, tx)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit transaction: %w", err)
	}
	return nil
}

// exec runs a statement that changes rows and returns how many it changed. A
// broken unique constraint is store.ErrExists.
func (s *Store) exec(ctx context.Context, query string, args ...any) (int, error) {
	res, err := s.w(ctx, query).ExecContext(ctx, query, args...)
	if err != nil {
		if s.dialect.isUnique(err) {
			return 0, fmt.Errorf("%w: %w", store.ErrExists, err)
		}
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// execOne is exec for a statement that must change exactly one row; none is
// store.ErrNotFound.
func (s *Store) execOne(ctx context.Context, query string, args ...any) error {
	n, err := s.exec(ctx, query, args...)
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return err
}

// row scans the one row of a query that reads; none is store.ErrNotFound.
func (s *Store) row(ctx context.Context, query string, args []any, dest ...any) error {
	err := s.r(ctx, query).QueryRowContext(ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}

// returning is row for a statement that changes one row and returns it.
func (s *Store) returning(ctx context.Context, query string, args []any, dest ...any) error {
	err := s.w(ctx, query).QueryRowContext(ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}

// each calls scan for every row of a query that reads.
func (s *Store) each(ctx context.Context, query string, args []any, scan func(scan func(dest ...any) error) error) error {
	return eachOf(ctx, s.r(ctx, query), query, args, scan)
}

// eachReturning is each for a statement that changes rows and returns them.
func (s *Store) eachReturning(ctx context.Context, query string, args []any, scan func(scan func(dest ...any) error) error) error {
	return eachOf(ctx, s.w(ctx, query), query, args, scan)
}

func eachOf(ctx context.Context, q querier, query string, args []any, scan func(scan func(dest ...any) error) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// r returns the transaction in ctx, or the pool for reading.
func (s *Store) r(ctx context.Context, query string) querier { return s.q(ctx, query, s.read) }

// w returns the transaction in ctx, or the pool for writing.
func (s *Store) w(ctx context.Context, query string) querier { return s.q(ctx, query, s.write) }

func (s *Store) q(ctx context.Context, query string, pool *sql.DB) querier {
	if s.onStatement != nil {
		s.onStatement(ctx, query)
	}
	if tx, ok := ctx.Value(txKey{s}).(*sql.Tx); ok {
		return tx
	}
	return pool
}

// millis is the column form of a time: unix milliseconds, NULL for the zero time (D19).
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// timeOf reads a column written by millis.
func timeOf(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return time.UnixMilli(ms.Int64).UTC()
}

// toJSON is the column form of a list or object; a nil slice is [].
func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// every caller passes structs of strings, numbers and booleans
		panic(fmt.Sprintf("sqlstore: marshal %T: %v", v, err))
	}
	if string(b) == "null" {
		return "[]"
	}
	return string(b)
}

// fromJSON reads a column written by toJSON into v.
func fromJSON(raw string, v any) error {
	if raw == "" || raw == "[]" {
		return nil
	}
	if err := json.Unmarshal([]byte(raw), v); err != nil {
		return fmt.Errorf("stored JSON: %w", err)
	}
	return nil
}

var _ store.Transactor = (*Store)(nil)
