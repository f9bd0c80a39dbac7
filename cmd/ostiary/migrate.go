package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/migrations"
	"github.com/spf13/cobra"
)

func newMigrateCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Bring the database up to date, or show its state"}
	cmd.AddCommand(newMigrateUpCmd(c), newMigrateStatusCmd(c))
	return cmd
}

func newMigrateUpCmd(c *cli) *cobra.Command {
	return &cobra.Command{Use: "up", Short: "Apply pending migrations; serve does so too", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.migrateUp(cmd.Context()) }}
}

func (c *cli) migrateUp(ctx context.Context) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	db, err := c.createStore(ctx, cfg)
	if err != nil {
		return err
	}
	n, err := db.Migrate(ctx)
	if err := errors.Join(err, db.Close()); err != nil {
		return withHint(err, databaseHint)
	}
	_, err = fmt.Fprintf(c.out, "%d migrations applied; the database is up to date\n", n)
	return err
}

func newMigrateStatusCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "List migrations and when they were applied", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.migrateStatus(cmd) }}
	addJSON(cmd)
	return cmd
}

// migration is a row of migrate status.
type migration struct {
	Version   int64    `json:"version"`
	Name      string   `json:"name"`
	AppliedAt *instant `json:"applied_at"` // null: pending
}

func (c *cli) migrateStatus(cmd *cobra.Command) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	db, err := c.openStore(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	states, err := listMigrations(cmd.Context(), db)
	if err != nil {
		return withHint(err, databaseHint)
	}
	rows := [][]string{{"VERSION", "NAME", "APPLIED"}}
	list := []migration{}
	for _, s := range states {
		m := migration{Version: s.Version, Name: filepath.Base(s.Name)}
		applied := "pending"
		if !s.AppliedAt.IsZero() {
			m.AppliedAt = optional(s.AppliedAt)
			applied = stamp(m.AppliedAt)
		}
		list = append(list, m)
		rows = append(rows, []string{fmt.Sprint(m.Version), m.Name, applied})
	}
	return c.print(cmd, list, func(w io.Writer) { table(w, rows...) })
}

func listMigrations(ctx context.Context, db *sqlstore.Store) ([]migrations.Status, error) {
	states, err := db.Migrations(ctx)
	return states, errors.Join(err, db.Close())
}
