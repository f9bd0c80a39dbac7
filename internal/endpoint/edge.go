package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/ostiary-auth/ostiary/web"
)

// Options configures New.
type Options struct {
	// Log receives one line a failure and one line a request. Required.
	Log *slog.Logger
	// Pages writes the error pages. Required where Page or Site is used.
	Pages *web.Renderer
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Unavailable reports whether an error means that the database is away or
	// busy, which is answered 503 with Retry-After (rule A21). A deadline that
	// passed always means that.
	Unavailable func(error) bool
}

// Edge turns handlers that return an error into http.Handlers. It is safe for
// concurrent use.
type Edge struct {
	log         *slog.Logger
	pages       *web.Renderer
	now         func() time.Time
	unavailable func(error) bool
}

// New returns the edge for one server.
func New(o Options) *Edge {
	e := &Edge{log: o.Log, pages: o.Pages, now: o.Now, unavailable: o.Unavailable}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.unavailable == nil {
		e.unavailable = func(error) bool { return false }
	}
	return e
}

// HandlerFunc is a handler that returns its failure instead of writing it.
type HandlerFunc = func(http.ResponseWriter, *http.Request) error

// panicError is what a recovered panic becomes; the stack goes to the log only.
type panicError struct {
	value any
	stack []byte
}

// Error returns the panic's value.
func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// run calls fn and turns a panic into an error, so that one bad request costs
// one answer and not the process (DO-06).
func run(fn HandlerFunc, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return fn(w, r)
}

// isUnavailable reports whether err is overload or an absent database rather
// than a mistake of ours (rule A21).
func (e *Edge) isUnavailable(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || e.unavailable(err)
}

// logFailure writes the one line about a failed request. An operator must act
// on a 5xx; everything else is a refusal.
func (e *Edge) logFailure(r *http.Request, status int, err error) {
	level, message := slog.LevelInfo, "request refused"
	switch {
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		level, message = slog.LevelDebug, "request abandoned by its sender"
	case status == http.StatusServiceUnavailable:
		level, message = slog.LevelWarn, "request refused: unavailable"
	case status >= 500:
		level, message = slog.LevelError, "request failed"
	}
	attrs := []slog.Attr{slog.String("event", "request.failed"), slog.Int("status", status),
		slog.String("method", r.Method), slog.String("route", routeOf(r)), slog.String("cause", err.Error())}
	var p *panicError
	if errors.As(err, &p) {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	e.log.LogAttrs(r.Context(), level, message, attrs...)
}
