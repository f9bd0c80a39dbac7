package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/obs"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// drainTime is how long running requests may take once a stop is asked for.
const drainTime = 15 * time.Second

func newServeCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Run the authorization server", Args: cobra.NoArgs,
		Long: `Run the authorization server until interrupted. Nothing needs to be configured
to try it: without an issuer it listens on this machine only (development mode).`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context()) }}
	c.settings(cmd.Flags(), serveSettings)
	return cmd
}

// serve runs the server until ctx ends. It takes the ports first, so that a
// second start fails before it touches the database.
func (c *cli) serve(ctx context.Context) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	log, err := obs.NewLogger(c.err, obs.LogOptions{Format: cfg.LogFormat, Level: cfg.LogLevel})
	if err != nil {
		return err
	}
	l, err := listen(cfg)
	if err != nil {
		return err
	}
	defer l.close()
	db, err := c.startStore(ctx, cfg, log)
	if err != nil {
		return err
	}
	return errors.Join(c.serveStore(ctx, cfg, log, l, db), db.Close())
}

// startStore opens the database and brings it up to date.
func (c *cli) startStore(ctx context.Context, cfg *config.Config, log *slog.Logger) (*sqlstore.Store, error) {
	db, err := c.createStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	n, err := db.Migrate(ctx)
	if err != nil {
		return nil, withHint(errors.Join(err, db.Close()), databaseHint)
	}
	if n > 0 {
		log.InfoContext(ctx, "database migrated", slog.String("event", "database.migrated"), slog.Int("migrations", n))
	}
	return db, nil
}

func (c *cli) serveStore(ctx context.Context, cfg *config.Config, log *slog.Logger, l *listeners, db *sqlstore.Store) error {
	a, err := app.New(ctx, app.Options{Config: cfg, Log: log, Store: db})
	if err != nil {
		return err
	}
	s := &server{cfg: cfg, log: log, listeners: l, app: a, metrics: obs.NewMetrics()}
	link, err := a.SetupLink(ctx)
	if err != nil {
		return fmt.Errorf("make set-up link: %w", err)
	}
	for _, w := range cfg.Warnings() {
		log.WarnContext(ctx, "questionable configuration", slog.String("event", "config.warning"), slog.String("warning", w))
	}
	log.InfoContext(ctx, "server started", slog.String("event", "server.started"), slog.String("version", readBuild().Version),
		slog.String("issuer", cfg.Issuer), slog.Any("listen", l.addrs()), slog.Bool("development", cfg.Dev()))
	writeBanner(c.out, cfg, l, link)
	err = s.run(ctx)
	log.InfoContext(context.WithoutCancel(ctx), "server stopped", slog.String("event", "server.stopped"))
	return err
}

// writeBanner tells the person at the terminal where the server is. The set-up
// link is written here and not to the log: whoever opens it owns the server (D3).
func writeBanner(w io.Writer, cfg *config.Config, l *listeners, link string) {
	note := ""
	if cfg.Dev() {
		note = "  (development mode: this machine only)"
	}
	_, _ = fmt.Fprintf(w, "ostiary is at %s%s\n", cfg.Issuer, note)
	_, _ = fmt.Fprintf(w, "  listening  %s\n", strings.Join(l.addrs(), ", "))
	_, _ = fmt.Fprintf(w, "  metadata   %s\n", metadataURL(cfg))
	_, _ = fmt.Fprintf(w, "  health     %s\n", l.adminURL()+"/healthz")
	if cfg.Postgres() {
		_, _ = fmt.Fprintf(w, "  database   PostgreSQL\n")
	} else {
		_, _ = fmt.Fprintf(w, "  database   %s\n", sqliteFile(cfg))
	}
	if link != "" {
		_, _ = fmt.Fprintf(w, "\nThere is no account yet. Make the first one here, within 60 minutes:\n  %s\n\n", link)
	}
}

// metadataURL puts the well-known part before the issuer's path (RFC 8414 §3).
func metadataURL(cfg *config.Config) string {
	u := cfg.IssuerURL()
	return u.Scheme + "://" + u.Host + "/.well-known/oauth-authorization-server" + cfg.Base()
}

// server is a running process: listeners, handlers, loops.
type server struct {
	cfg       *config.Config
	log       *slog.Logger
	listeners *listeners
	app       *app.App
	metrics   *obs.Metrics
	stopping  atomic.Bool
}

// run serves until ctx ends or something fails, then lets requests finish.
func (s *server) run(ctx context.Context) error {
	public := s.newHTTPServer(s.metrics.Middleware(s.cfg.Base(), s.app.Public()))
	admin := s.newHTTPServer(newAdminHandler(s.cfg, s.metrics.Handler(), s.ready))
	if s.cfg.TLSCert != "" {
		var err error
		if public.TLSConfig, err = newTLSConfig(s.cfg.TLSCert, s.cfg.TLSKey, s.log); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range s.listeners.public {
		g.Go(func() error { return ended(s.serveOn(public, l)) })
	}
	g.Go(func() error { return ended(admin.Serve(s.listeners.admin)) })
	for name, loop := range s.app.Loops() {
		g.Go(func() error {
			if err := loop(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	g.Go(func() error {
		<-ctx.Done()
		return s.drain(context.WithoutCancel(ctx), public, admin)
	})
	return g.Wait()
}

func (s *server) serveOn(public *http.Server, l net.Listener) error {
	if s.cfg.TLSCert != "" {
		return public.ServeTLS(l, "", "") // the certificate is in TLSConfig
	}
	return public.Serve(l)
}

// ended is nil for the error of a server that was asked to stop.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drain turns new requests away, lets running ones finish, and closes the admin
// listener last, so that /readyz says "stopping" meanwhile.
func (s *server) drain(ctx context.Context, public, admin *http.Server) error {
	s.stopping.Store(true)
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	err := public.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.WarnContext(ctx, "requests were cut off", slog.String("event", "server.cut_off"))
		err = public.Close()
	}
	return errors.Join(err, admin.Close())
}

// ready is what /readyz asks.
func (s *server) ready(ctx context.Context) error {
	if s.stopping.Load() {
		return errors.New("stopping")
	}
	return s.app.Ready(ctx)
}

// newHTTPServer bounds what a slow or large request may cost (DO-01). 32 KiB of
// headers let through an authorize URL of 16 KiB (rule A31).
func (s *server) newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute, // a profile takes 30 s
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
