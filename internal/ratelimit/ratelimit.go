// Package ratelimit bounds how often one network source, and all of them
// together, may do something that costs us: register a client, try a password.
// It only counts; what an account's owner is owed stays with internal/login,
// whose counters are rows. The algorithm and its bounded table are throttled's
// (GCRA over a least-recently-used map).
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// maxSources bounds the table of sources: some 10 MiB, whoever comes (DO-04).
const maxSources = 1 << 16

// Options configures New.
type Options struct {
	// PerSource is how often one source may come in Period. Required.
	PerSource int
	// Total is how often all of them together may; 0 means no bound.
	Total int
	// Period is the time that the two count in. Default one hour.
	Period time.Duration
	// Sources bounds how many sources are remembered. Default 65536.
	Sources int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Limiter counts by network source. It is safe for concurrent use.
type Limiter struct {
	mu     sync.Mutex // throttled compares and swaps a bounded number of times; a lock needs no luck
	source *throttled.GCRARateLimiterCtx
	total  *throttled.GCRARateLimiterCtx
}

// New returns a Limiter, or all that is wrong with o.
func New(o Options) (*Limiter, error) {
	if o.PerSource < 1 || o.Total < 0 {
		return nil, errors.New("ratelimit: PerSource must be positive, Total not negative")
	}
	if o.Period <= 0 {
		o.Period = time.Hour
	}
	if o.Sources <= 0 {
		o.Sources = maxSources
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Limiter{}
	var err error
	if l.source, err = newCounter(o.PerSource, o.Sources, o); err != nil {
		return nil, err
	}
	if o.Total > 0 {
		l.total, err = newCounter(o.Total, 1, o)
	}
	return l, err
}

// newCounter lets n come at once and then one each period/n.
func newCounter(n, keys int, o Options) (*throttled.GCRARateLimiterCtx, error) {
	st, err := memstore.New(keys)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: %w", err)
	}
	st.SetTimeNow(o.Now)
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(n, o.Period), MaxBurst: n - 1}
	c, err := throttled.NewGCRARateLimiterCtx(throttled.WrapStoreWithContext(st), quota)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: %w", err)
	}
	return c, nil
}

// Wait counts one attempt of source, an audit.Source's class, and returns 0, or
// how long it must wait; a refused attempt is not counted.
func (l *Limiter) Wait(ctx context.Context, source string) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait, err := take(ctx, l.source, source); wait > 0 || err != nil {
		return wait, err
	}
	if l.total == nil {
		return 0, nil
	}
	return take(ctx, l.total, "total")
}

// Full returns how long the next attempt of source must wait, 0 for not at all.
// It counts nothing, for those who count only what failed.
func (l *Limiter) Full(ctx context.Context, source string) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, result, err := l.source.RateLimitCtx(ctx, source, 0)
	if err != nil {
		return 0, fmt.Errorf("look at attempts: %w", err)
	}
	if result.RetryAfter <= 0 {
		return 0, nil
	}
	return max(result.RetryAfter, time.Second), nil
}

func take(ctx context.Context, c *throttled.GCRARateLimiterCtx, key string) (time.Duration, error) {
	limited, result, err := c.RateLimitCtx(ctx, key, 1)
	if err != nil {
		return 0, fmt.Errorf("count attempts: %w", err)
	}
	if !limited {
		return 0, nil
	}
	return max(result.RetryAfter, time.Second), nil
}
