// Package testkit is what the tests share: throwaway databases of both kinds, a
// server in this process with a clock that tests move, clients and a browser.
// Tests that use it stand in package x_test, since it imports the whole product.
package testkit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/migrations"
	"github.com/ostiary-auth/ostiary/test/testkit/postgres"
)

// postgresVariable names the URL of a role that may create databases, or "off".
const postgresVariable = "OSTIARY_TEST_POSTGRES"

// DatabaseOption changes how a test's database is opened.
type DatabaseOption func(*sqlstore.Options)

// EachDatabase runs fn as the subtests "sqlite" and "postgres", each with a
// migrated database of its own. fn may call t.Parallel. Without PostgreSQL on
// this machine, or with OSTIARY_TEST_POSTGRES=off, the second is skipped; where
// CI=true it fails instead.
func EachDatabase(t *testing.T, fn func(t *testing.T, db *sqlstore.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { fn(t, OpenSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { fn(t, OpenPostgres(t)) })
}

// OpenSQLite opens a migrated SQLite database that lives as long as the test.
func OpenSQLite(t testing.TB, opts ...DatabaseOption) *sqlstore.Store {
	t.Helper()
	return open(t, sqlstore.Options{URL: SQLitePath(t), Synchronous: "NORMAL"}, opts)
}

// OpenPostgres opens a migrated PostgreSQL database that lives as long as the
// test, with at most 4 connections.
func OpenPostgres(t testing.TB, opts ...DatabaseOption) *sqlstore.Store {
	t.Helper()
	return open(t, sqlstore.Options{URL: PostgresURL(t), MaxConns: 4}, opts)
}

func open(t testing.TB, o sqlstore.Options, opts []DatabaseOption) *sqlstore.Store {
	t.Helper()
	for _, opt := range opts {
		opt(&o)
	}
	db, err := sqlstore.Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open database: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close database: %v", err)
		}
	})
	return db
}

// SQLitePath returns the path of a migrated SQLite file in the test's folder,
// for tests that open it more than once.
func SQLitePath(t testing.TB) string {
	t.Helper()
	file, err := sqliteTemplate()
	if err != nil {
		t.Fatalf("make SQLite template: %v", err)
	}
	path := filepath.Join(t.TempDir(), "ostiary.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatalf("copy SQLite template: %v", err)
	}
	return path
}

// sqliteTemplate returns the bytes of a migrated SQLite file.
var sqliteTemplate = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "ostiary-sqlite-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "template.db")
	if err := migrate(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// migrate applies the schema and closes the database again.
func migrate(ctx context.Context, url string) error {
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: url, MaxConns: 2})
	if err != nil {
		return err
	}
	_, err = db.Migrate(ctx)
	return errors.Join(err, db.Close())
}

// PostgresURL returns the URL of a fresh migrated PostgreSQL database, dropped
// when the test ends.
func PostgresURL(t testing.TB) string {
	t.Helper()
	s := postgresServer(t)
	return createDatabase(t, s.admin, s.template)
}

// EmptyPostgresURL returns the URL of a fresh PostgreSQL database without any
// table, dropped when the test ends.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, postgresServer(t).admin, "")
}

func createDatabase(t testing.TB, admin, template string) string {
	t.Helper()
	dsn, drop, err := postgres.Create(context.Background(), admin, template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	return dsn
}

func postgresServer(t testing.TB) server {
	t.Helper()
	if os.Getenv(postgresVariable) == "off" {
		t.Skipf("PostgreSQL half not run: %s=off", postgresVariable)
	}
	s, err := sharedServer()
	if errors.Is(err, postgres.ErrNoBinaries) && os.Getenv("CI") != "true" {
		t.Skipf("PostgreSQL half not run: %v (Debian: apt-get install postgresql)", err)
	}
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	return s
}

// server is the PostgreSQL server of this test process.
type server struct {
	admin    string // URL of a role that may create databases
	template string // name of the migrated database to copy
	// cluster is held so that the collector does not close the pipe whose end
	// stops it; nil when OSTIARY_TEST_POSTGRES names the server.
	cluster *postgres.Cluster
}

// sharedServer is the server OSTIARY_TEST_POSTGRES names (make test starts one
// for all packages), else one of this process, which ends with it.
var sharedServer = sync.OnceValues(func() (server, error) {
	ctx := context.Background()
	sum, err := migrations.Checksum()
	if err != nil {
		return server{}, err
	}
	s := server{admin: os.Getenv(postgresVariable), template: "ostiary_template_" + sum}
	if s.admin == "" {
		c, err := postgres.Start(ctx, postgres.Options{})
		if err != nil {
			return server{}, err
		}
		s.admin, s.cluster = c.URL(), c
	}
	return s, postgres.Template(ctx, s.admin, s.template, func(dsn string) error { return migrate(ctx, dsn) })
})
