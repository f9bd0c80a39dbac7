package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/gateway"
)

// gatewayProcess is a running `ostiary gateway`.
type gatewayProcess struct {
	flags         *gatewayFlags
	gateway       *gateway.Gateway
	key           *gateway.Key
	bridge        bridge // nil without --stdio
	public, admin net.Listener
	log           *slog.Logger
	stopping      atomic.Bool
}

// bridge stands in the upstream's place and starts programs.
type bridge interface {
	http.Handler
	Close(ctx context.Context) error
}

// gateway runs until ctx ends.
func (c *cli) gateway(ctx context.Context, f gatewayFlags) error {
	o, err := f.options(c.err)
	if err != nil {
		return err
	}
	p := &gatewayProcess{flags: &f, key: o.Key, log: o.Log}
	if f.stdio.on {
		if p.bridge, err = newBridge(f, o.Log); err != nil {
			return err
		}
		o.Next = p.bridge
	}
	if p.gateway, err = newGateway(o); err != nil {
		return err
	}
	if err := p.listen(); err != nil {
		return err
	}
	defer p.close()
	if f.jwksFile != "" {
		if err := writeJWKS(f.jwksFile, o.Key.JWKS()); err != nil {
			return err
		}
	}
	o.Log.InfoContext(ctx, "gateway started", slog.String("event", "server.started"), slog.String("version", readBuild().Version),
		slog.String("resource", f.resource), slog.String("upstream", p.behind()), slog.String("listen", p.public.Addr().String()))
	p.writeBanner(c.out)
	err = p.run(ctx)
	o.Log.InfoContext(context.WithoutCancel(ctx), "gateway stopped", slog.String("event", "server.stopped"))
	return err
}

// listen takes both ports or none.
func (p *gatewayProcess) listen() (err error) {
	if p.public, err = listenTCP("listen", p.flags.listen); err != nil {
		return err
	}
	if p.admin, err = listenAdmin(p.flags.adminListen); err != nil {
		p.close()
	}
	return err
}

func (p *gatewayProcess) close() {
	for _, l := range []net.Listener{p.public, p.admin} {
		if l != nil {
			_ = l.Close() // http.Server has closed it already, or start-up failed
		}
	}
}

func (p *gatewayProcess) run(ctx context.Context) error {
	public, admin := newStreamingServer(p.gateway, p.log), newStreamingServer(p.adminHandler(), p.log)
	if p.flags.tlsCert != "" {
		var err error
		if public.TLSConfig, err = newTLSConfig(p.flags.tlsCert, p.flags.tlsKey, p.log); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	clients := &stallListener{Listener: p.public, limit: stallTime}
	g.Go(func() error {
		if public.TLSConfig != nil {
			return ended(public.ServeTLS(clients, "", ""))
		}
		return ended(public.Serve(clients))
	})
	g.Go(func() error { return ended(admin.Serve(p.admin)) })
	g.Go(func() error {
		<-ctx.Done()
		return p.drain(context.WithoutCancel(ctx), public, admin)
	})
	return g.Wait()
}

// newStreamingServer bounds what a slow or large request may cost, but not how
// long an answer lasts; the gateway itself bounds how long a body takes.
func newStreamingServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// drain ends the streams, lets calls finish, ends the programs, and closes the
// admin listener last, so that /readyz says "stopping" meanwhile.
func (p *gatewayProcess) drain(ctx context.Context, public, admin *http.Server) error {
	p.stopping.Store(true)
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	p.gateway.Drain()
	err := public.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		p.log.WarnContext(ctx, "requests were cut off", slog.String("event", "server.cut_off"))
		err = public.Close()
	}
	if p.bridge != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		err = errors.Join(err, p.bridge.Close(end))
	}
	return errors.Join(err, admin.Close())
}

// adminHandler serves health and the keys of identities, behind the same guard as
// that of serve (D34).
func (p *gatewayProcess) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := p.ready(ctx); err != nil {
			answer(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET /jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(p.key.JWKS())
	})
	return guardAdmin(&config.Config{AdminListen: p.flags.adminListen, AllowedHosts: p.flags.allowedHosts}, mux)
}

func (p *gatewayProcess) ready(ctx context.Context) error {
	if p.stopping.Load() {
		return errors.New("stopping")
	}
	return p.gateway.Ready(ctx)
}

// behind says what is protected.
func (p *gatewayProcess) behind() string {
	if p.flags.stdio.on {
		return p.flags.stdio.command[0]
	}
	return p.flags.upstream
}

// writeBanner tells the person at the terminal what runs where.
func (p *gatewayProcess) writeBanner(w io.Writer) {
	admin := (&listeners{admin: p.admin}).adminURL()
	_, _ = fmt.Fprintf(w, "ostiary gateway protects %s\n", p.flags.resource)
	_, _ = fmt.Fprintf(w, "  listening  %s\n", p.public.Addr())
	_, _ = fmt.Fprintf(w, "  behind it  %s\n", p.behind())
	_, _ = fmt.Fprintf(w, "  metadata   %s\n", p.gateway.MetadataURL())
	_, _ = fmt.Fprintf(w, "  health     %s\n", admin+"/healthz")
	if !p.flags.stdio.on && p.flags.identity == gateway.IdentityJWT.String() {
		_, _ = fmt.Fprintf(w, "  keys       %s\n", admin+"/jwks.json")
	}
}

// writeJWKS replaces a file that other users may read: it holds public keys.
func writeJWKS(path string, jwks []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".jwks-*")
	if err != nil {
		return fmt.Errorf("write --jwks-file: %w", err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(jwks)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write --jwks-file: %w", err)
	}
	return nil
}
