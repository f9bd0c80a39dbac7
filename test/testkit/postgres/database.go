package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// templateLock is the advisory lock under which a template is made: the test
// processes of several packages share one server.
const templateLock = 0x6f7374696172

// Template makes the named database, filled by fill, unless it is there. It is
// filled under another name first, so that a broken run leaves none half-made.
func Template(ctx context.Context, admin, name string, fill func(dsn string) error) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect to test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return fmt.Errorf("lock template: %w", err)
	}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil {
		return fmt.Errorf("look for template: %w", err)
	}
	if exists {
		return nil
	}
	draft := name + "_draft"
	for _, q := range []string{"DROP DATABASE IF EXISTS " + draft + " WITH (FORCE)", "CREATE DATABASE " + draft} {
		if _, err := conn.Exec(ctx, q); err != nil {
			return fmt.Errorf("make template: %w", err)
		}
	}
	if err := fill(withDatabase(admin, draft)); err != nil {
		return fmt.Errorf("fill template: %w", err)
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+draft+" RENAME TO "+name); err != nil {
		return fmt.Errorf("finish template: %w", err)
	}
	return nil
}

// Create makes a database as a copy of template, or an empty one when template
// is "", and returns its URL and a function that drops it.
func Create(ctx context.Context, admin, template string) (dsn string, drop func() error, err error) {
	name := "ostiary_test_" + strings.ToLower(rand.Text())
	q := "CREATE DATABASE " + name
	if template != "" {
		q += " TEMPLATE " + template
	}
	if err := exec1(ctx, admin, q); err != nil {
		return "", nil, fmt.Errorf("create test database: %w", err)
	}
	drop = func() error {
		return exec1(context.WithoutCancel(ctx), admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}
	return withDatabase(admin, name), drop, nil
}

// exec1 runs one statement on a connection of its own, again while another
// process holds the template.
func exec1(ctx context.Context, dsn, q string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for range 20 {
		_, err = conn.Exec(ctx, q)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55006" { // object_in_use
			return err
		}
	}
	return err
}

// withDatabase returns dsn, a URL, at another database.
func withDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // the connection was made with it, so it parses
	}
	u.Path = "/" + name
	return u.String()
}
