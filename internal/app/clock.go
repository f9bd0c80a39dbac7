package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Bounds on the distance between this machine's clock and the database's (D27).
const (
	clockWarn = 2 * time.Second
	clockMax  = 5 * time.Minute
)

// clock is this machine's clock plus its measured distance to the database's, so
// that every process on one PostgreSQL goes by the same time (D27, ST-09).
type clock struct {
	local  func() time.Time
	remote func(ctx context.Context) (time.Time, error)
	log    *slog.Logger
	offset atomic.Int64 // nanoseconds
}

// Now returns the shared time.
func (c *clock) Now() time.Time { return c.local().Add(time.Duration(c.offset.Load())) }

// Measure asks the database for its time. Half of the round trip is taken off,
// and what is within it is no distance at all.
func (c *clock) Measure(ctx context.Context) error {
	before := c.local()
	remote, err := c.remote(ctx)
	if err != nil {
		return fmt.Errorf("ask the database for its time: %w", err)
	}
	trip := c.local().Sub(before)
	offset := remote.Sub(before.Add(trip / 2))
	if offset.Abs() <= trip {
		offset = 0
	}
	c.offset.Store(int64(offset))
	if offset.Abs() > clockWarn {
		c.log.WarnContext(ctx, "this machine's clock differs from the database's: set it by NTP",
			slog.String("event", "clock.offset"), slog.Duration("offset", offset))
	}
	return nil
}

// Check fails when the distance is so large that something is badly wrong.
func (c *clock) Check() error {
	if offset := time.Duration(c.offset.Load()); offset.Abs() > clockMax {
		return fmt.Errorf("this machine's clock is %s from the database's", offset)
	}
	return nil
}
