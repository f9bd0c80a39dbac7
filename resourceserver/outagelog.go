package resourceserver

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// warningInterval is the least time between two warnings about one outage.
const warningInterval = time.Minute

// outageLog warns of an outage at once and then once in each warningInterval,
// whatever number of requests meet it. held_back is how many lines were written
// since at debug level instead.
type outageLog struct {
	log *slog.Logger
	now func() time.Time

	mu       sync.Mutex
	warnedAt time.Time
	heldBack int
}

func (o *outageLog) warn(ctx context.Context, message string, attrs ...slog.Attr) {
	level, heldBack := o.next()
	if level == slog.LevelWarn {
		attrs = append(attrs, slog.Int("held_back", heldBack))
	}
	o.log.LogAttrs(ctx, level, message, attrs...)
}

// next returns the level of the next line, and how many were held back before it.
func (o *outageLog) next() (slog.Level, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	if !o.warnedAt.IsZero() && now.Sub(o.warnedAt) < warningInterval {
		o.heldBack++
		return slog.LevelDebug, 0
	}
	n := o.heldBack
	o.warnedAt, o.heldBack = now, 0
	return slog.LevelWarn, n
}
