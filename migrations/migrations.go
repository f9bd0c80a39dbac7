// Package migrations holds the schema, one file a change, the same files for
// SQLite and PostgreSQL, and applies them with goose.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Dialect names a database.
type Dialect string

// The two databases.
const (
	SQLite   Dialect = "sqlite3"
	Postgres Dialect = "postgres"
)

// Status is one migration and when it was applied; AppliedAt is zero while it is pending.
type Status struct {
	Version   int64
	Name      string
	AppliedAt time.Time
}

// Up applies every pending migration under a lock, so that several processes
// may start at once, and returns how many it applied. A database that is up to
// date takes no lock.
func Up(ctx context.Context, db *sql.DB, d Dialect) (int, error) {
	plain, err := provider(db, d)
	if err != nil {
		return 0, err
	}
	pending, err := plain.HasPending(ctx)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	if !pending {
		return 0, nil
	}
	var opts []goose.ProviderOption
	if d == Postgres {
		// The default retries every 5 s, so starters would wait for one another.
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
		if err != nil {
			return 0, fmt.Errorf("migration lock: %w", err)
		}
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	p, err := provider(db, d, opts...)
	if err != nil {
		return 0, err
	}
	results, err := p.Up(ctx)
	if err != nil {
		return 0, fmt.Errorf("apply migrations: %w", err)
	}
	return len(results), nil
}

// List returns every migration in order with its state.
func List(ctx context.Context, db *sql.DB, d Dialect) ([]Status, error) {
	p, err := provider(db, d)
	if err != nil {
		return nil, err
	}
	found, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	var list []Status
	for _, s := range found {
		list = append(list, Status{Version: s.Source.Version, Name: s.Source.Path, AppliedAt: s.AppliedAt})
	}
	return list, nil
}

func provider(db *sql.DB, d Dialect, opts ...goose.ProviderOption) (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.Dialect(d), db, fs.FS(files), opts...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}
