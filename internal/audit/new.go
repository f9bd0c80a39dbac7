package audit

import (
	"context"
	"crypto/rand"
	"time"
)

// New returns e with its ID and time set and its source taken from ctx.
func New(ctx context.Context, now time.Time, e Event) Event {
	e.ID = rand.Text()
	e.At = now
	src := SourceFrom(ctx)
	if e.IP == "" {
		e.IP = src.IP
	}
	if e.RequestID == "" {
		e.RequestID = src.RequestID
	}
	if e.Outcome == "" {
		e.Outcome = "success"
	}
	return e
}
