package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/printable"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// maxSecretInput bounds a password or secret read from standard input, in bytes.
const maxSecretInput = 4096

// cli is what every verb shares: the streams, the clock, the configuration's
// sources. Results go to out, everything else to err.
type cli struct {
	in         io.Reader
	out, err   io.Writer
	environ    []string
	now        func() time.Time
	configFile string
	flags      map[string]string // settings given as flags, by key
	running    bool              // a verb has begun
	// openBrowser shows a person an address; nil is the system's own way.
	openBrowser func(ctx context.Context, authorizationURL string) error
}

func newCLI(environ []string, in io.Reader, out, errw io.Writer) *cli {
	return &cli{in: in, out: out, err: errw, environ: environ, now: time.Now, flags: map[string]string{}}
}

// setting is a configuration key that is also a flag.
type setting struct{ key, value, usage string }

// globalSettings are flags of every command; serveSettings of those that read
// the whole configuration.
var (
	globalSettings = []setting{
		{"state_dir", "dir", "state directory"},
		{"database", "url", "postgres://… or the path of a SQLite file"},
		{"issuer", "url", "issuer identifier: the public URL"},
	}
	serveSettings = []setting{
		{"listen", "addr", "public listener"},
		{"admin_listen", "addr", "listener of /healthz, /readyz, /metrics, or unix:/path"},
		{"tls_cert", "file", "certificate chain (PEM)"},
		{"tls_key", "file", "private key (PEM)"},
		{"log_format", "format", "json or text"},
		{"log_level", "level", "debug, info, warn or error"},
		{"debug_pprof", "bool", "serve /debug/pprof on the admin listener"},
	}
)

// settings defines flags that set configuration keys.
func (c *cli) settings(fs *pflag.FlagSet, list []setting) {
	for _, s := range list {
		f := fs.VarPF(&settingFlag{c: c, setting: s}, strings.ReplaceAll(s.key, "_", "-"), "", s.usage)
		if s.value == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// settingFlag is the pflag.Value of a setting.
type settingFlag struct {
	c *cli
	setting
}

// String returns the value given, if any.
func (f *settingFlag) String() string {
	if f.c == nil {
		return ""
	}
	return f.c.flags[f.key]
}

// Set keeps the value for config.Load, which checks it.
func (f *settingFlag) Set(v string) error {
	f.c.flags[f.key] = v
	return nil
}

// Type names the value in the help.
func (f *settingFlag) Type() string { return f.value }

// config reads the configuration; all its mistakes are one error.
func (c *cli) config() (*config.Config, error) {
	return config.Load(config.Source{File: c.configFile, Environ: c.environ, Flags: c.flags})
}

// withStore reads the configuration, opens the database, which must be there
// and up to date, calls fn and closes it again.
func (c *cli) withStore(ctx context.Context, fn func(cfg *config.Config, db *sqlstore.Store) error) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	db, err := c.openStore(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(c.upToDate(ctx, db, fn, cfg), db.Close())
}

func (c *cli) upToDate(ctx context.Context, db *sqlstore.Store, fn func(*config.Config, *sqlstore.Store) error, cfg *config.Config) error {
	states, err := db.Migrations(ctx)
	if err != nil {
		return withHint(err, databaseHint)
	}
	for _, s := range states {
		if s.AppliedAt.IsZero() {
			return withHint(fmt.Errorf("the database is not up to date: %s is pending", filepath.Base(s.Name)),
				"run: ostiary migrate up")
		}
	}
	return fn(cfg, db)
}

// openStore opens a database that exists already: a misspelt path must not
// make an empty one.
func (c *cli) openStore(ctx context.Context, cfg *config.Config) (*sqlstore.Store, error) {
	if !cfg.Postgres() {
		if _, err := os.Stat(sqliteFile(cfg)); errors.Is(err, fs.ErrNotExist) {
			return nil, withHint(fmt.Errorf("there is no database at %s", sqliteFile(cfg)),
				"start ostiary serve once, or run ostiary migrate up; --state-dir or OSTIARY_STATE_DIR names another place")
		}
		if err := checkDatabaseFiles(cfg); err != nil {
			return nil, err
		}
	}
	return openDatabase(ctx, cfg)
}

// checkDatabaseFiles refuses a SQLite database that is another user's (D18) or
// that others can read (D2).
func checkDatabaseFiles(cfg *config.Config) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := config.CheckPrivate(sqliteFile(cfg) + suffix); err != nil {
			return err
		}
	}
	return nil
}

// createStore is openStore for commands that may make the database: the state
// directory is made or checked first (D2).
func (c *cli) createStore(ctx context.Context, cfg *config.Config) (*sqlstore.Store, error) {
	if !cfg.Postgres() {
		if err := config.PrepareStateDir(cfg.StateDir); err != nil {
			return nil, err
		}
		if err := checkDatabaseFiles(cfg); err != nil {
			return nil, err
		}
	}
	return openDatabase(ctx, cfg)
}

func openDatabase(ctx context.Context, cfg *config.Config) (*sqlstore.Store, error) {
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: cfg.DatabaseURL(), MaxConns: cfg.DatabaseMaxConns,
		Synchronous: cfg.SQLiteSynchronous})
	return db, withHint(err, databaseHint)
}

// databaseHint is for a database that cannot be opened or read.
const databaseHint = "check that the database runs and can be reached; ostiary config print shows where it is looked for"

func sqliteFile(cfg *config.Config) string { return store.SQLitePath(cfg.DatabaseURL()) }

// withCore is withStore for verbs that change accounts, clients, resources or
// keys: it adds the functions that do so. Where no issuer was given, the one
// that the database belongs to counts, as serve was told.
func (c *cli) withCore(ctx context.Context, fn func(cfg *config.Config, core *app.Core) error) error {
	return c.withStore(ctx, func(cfg *config.Config, db *sqlstore.Store) error {
		if err := adoptIssuer(ctx, cfg, db); err != nil {
			return err
		}
		core, err := app.NewCore(ctx, app.Options{Config: cfg, Log: c.log(), Store: db})
		if err != nil {
			return err
		}
		return fn(cfg, core)
	})
}

func adoptIssuer(ctx context.Context, cfg *config.Config, db *sqlstore.Store) error {
	if cfg.Origin("issuer").Kind != "" {
		return nil
	}
	stored, err := keys.StoredIssuer(ctx, db)
	if stored != "" {
		cfg.Issuer = stored
	}
	return err
}

// log is the logger of verbs: warnings and errors, as text.
func (c *cli) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// addJSON defines --json, read back by print.
func addJSON(cmd *cobra.Command) {
	cmd.Flags().Bool("json", false, "print the result as JSON")
}

// print writes a result: v as JSON with --json, else what text writes.
func (c *cli) print(cmd *cobra.Command, v any, text func(w io.Writer)) error {
	if asJSON, err := cmd.Flags().GetBool("json"); err != nil || !asJSON {
		text(c.out)
		return nil
	}
	enc := json.NewEncoder(printable.JSONWriter{W: c.out})
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes rows in aligned columns, the first of them the heading. Cells may hold
// foreign texts, such as the names of clients.
func table(w io.Writer, rows ...[]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable.Whole(cell)
		}
		_, _ = fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	_ = tw.Flush()
}

// addYes defines --yes, read back by confirm.
func addYes(cmd *cobra.Command) {
	cmd.Flags().Bool("yes", false, "do not ask")
}

// confirm says what a destructive verb is about to do and asks; --yes answers.
func (c *cli) confirm(cmd *cobra.Command, format string, args ...any) error {
	if yes, err := cmd.Flags().GetBool("yes"); err == nil && yes {
		return nil
	}
	_, _ = fmt.Fprintf(c.err, format+" Continue? [y/N] ", args...)
	if _, ok := c.terminal(); !ok {
		_, _ = fmt.Fprintln(c.err)
		return withHint(usagef("nobody can be asked here: add --yes"), "%s … --yes", cmd.CommandPath())
	}
	line, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return withHint(errors.New("nothing was changed"), "answer y, or add --yes")
}

// readSecret reads a password or secret: the first line of standard input when
// fromStdin (the flag named flag) is set, else twice from the terminal. It is
// never an argument, which other users of the machine can see (D18).
func (c *cli) readSecret(name, flag string, fromStdin bool) (oauth.Secret, error) {
	if fromStdin {
		return c.readSecretLine(c.in, name)
	}
	fd, ok := c.terminal()
	if !ok {
		return "", withHint(usagef("standard input is not a terminal: add %s and give the %s there", flag, name),
			"ostiary … %s < file", flag)
	}
	first, err := c.ask(fd, "New "+name+": ")
	if err != nil {
		return "", err
	}
	again, err := c.ask(fd, "Again: ")
	if err != nil {
		return "", err
	}
	if !first.Equal(again) {
		return "", fmt.Errorf("the two %ss differ", name)
	}
	return first, nil
}

func (c *cli) readSecretLine(in io.Reader, name string) (oauth.Secret, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxSecretInput+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case len(data) > maxSecretInput:
		return "", fmt.Errorf("the %s is longer than %d bytes", name, maxSecretInput)
	case strings.ContainsAny(line, "\r\n"):
		return "", fmt.Errorf("the %s must be one line", name)
	case line == "":
		return "", withHint(fmt.Errorf("the %s is empty", name), "it must be there, in one line")
	}
	return oauth.Secret(line), nil
}

func (c *cli) ask(fd int, prompt string) (oauth.Secret, error) {
	_, _ = fmt.Fprint(c.err, prompt)
	b, err := term.ReadPassword(fd)
	_, _ = fmt.Fprintln(c.err)
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	return oauth.Secret(b), nil
}

// terminal returns the descriptor of standard input when a person is there.
func (c *cli) terminal() (int, bool) {
	f, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}
