package endpoint

import (
	"context"
	"log/slog"

	"github.com/ostiary-auth/ostiary/internal/audit"
)

// LogHandler returns a handler that adds the request_id of the context to every
// line, so that a reference a person reads out finds all lines of the request.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle adds request_id.
func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	if id := audit.SourceFrom(ctx).RequestID; id != "" {
		record = record.Clone()
		record.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs keeps the wrapping.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapping.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}
