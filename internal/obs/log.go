// Package obs is what an operator sees of a running server: its log (log/slog,
// JSON or text, each line with the id of its request) and its metrics (a
// registry of its own, labels from a fixed set).
package obs

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/ostiary-auth/ostiary/internal/audit"
)

// LogOptions configures NewLogger.
type LogOptions struct {
	// Format is "json" (default) or "text".
	Format string
	// Level is "debug", "info" (default), "warn" or "error".
	Level string
}

// NewLogger returns a logger that writes to w and adds request_id to every line
// logged with the context of a request.
func NewLogger(w io.Writer, o LogOptions) (*slog.Logger, error) {
	var level slog.Level
	if o.Level != "" {
		if err := level.UnmarshalText([]byte(o.Level)); err != nil {
			return nil, fmt.Errorf("log level: %w", err)
		}
	}
	opts := &slog.HandlerOptions{Level: level}
	switch o.Format {
	case "", "json":
		return slog.New(requestHandler{slog.NewJSONHandler(w, opts)}), nil
	case "text":
		return slog.New(requestHandler{slog.NewTextHandler(w, opts)}), nil
	}
	return nil, fmt.Errorf("log format %q is neither json nor text", o.Format)
}

// requestHandler adds request_id from the context.
type requestHandler struct{ slog.Handler }

// Handle adds request_id and passes the record on.
func (h requestHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := audit.SourceFrom(ctx).RequestID; id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the wrapping.
func (h requestHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapping.
func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name)}
}
