package ratelimit_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/ratelimit"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newLimiter(t *testing.T, o ratelimit.Options) (*ratelimit.Limiter, *clock) {
	t.Helper()
	c := &clock{at: time.Unix(1_700_000_000, 0)}
	o.Now = c.now
	l, err := ratelimit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

func wait(t *testing.T, l *ratelimit.Limiter, source string) time.Duration {
	t.Helper()
	d, err := l.Wait(context.Background(), source)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWait(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(t, ratelimit.Options{PerSource: 3, Period: time.Minute})
	for i := range 3 {
		if d := wait(t, l, "192.0.2.1"); d != 0 {
			t.Fatalf("attempt %d must wait %s", i+1, d)
		}
	}
	if d := wait(t, l, "192.0.2.1"); d != 20*time.Second {
		t.Errorf("the fourth attempt waits %s, want 20s", d)
	}
	if d := wait(t, l, "192.0.2.2"); d != 0 {
		t.Errorf("another source waits %s", d)
	}
	c.at = c.at.Add(20 * time.Second)
	if d := wait(t, l, "192.0.2.1"); d != 0 {
		t.Errorf("after the wait it still waits %s", d)
	}
}

// A refused source uses up nothing of what all share.
func TestTotal(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, ratelimit.Options{PerSource: 2, Total: 3})
	for range 10 {
		wait(t, l, "192.0.2.1")
	}
	if d := wait(t, l, "192.0.2.2"); d != 0 {
		t.Fatalf("the third counted attempt waits %s", d)
	}
	if d := wait(t, l, "192.0.2.3"); d == 0 {
		t.Error("the fourth counted attempt does not wait")
	}
}

// Sources that only come once must not fill the memory.
func TestDO04_TableIsBounded(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, ratelimit.Options{PerSource: 1, Sources: 100})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 50_000 {
		wait(t, l, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&0xff, i&0xff))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("50000 sources left %d bytes, want a table of 100", grown)
	}
	if d := wait(t, l, "10.0.195.79"); d == 0 {
		t.Error("the newest source was forgotten")
	}
	runtime.KeepAlive(l)
}

// Of concurrent attempts exactly the allowed number passes.
func TestWaitConcurrently(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, ratelimit.Options{PerSource: 50})
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if d, err := l.Wait(context.Background(), "192.0.2.1"); err == nil && d == 0 {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 50 {
		t.Errorf("%d passed, want 50", passed.Load())
	}
}

// Full looks and counts nothing.
func TestFull(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(t, ratelimit.Options{PerSource: 3, Period: time.Minute})
	full := func() time.Duration {
		d, err := l.Full(t.Context(), "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i := range 3 {
		for range 10 {
			if d := full(); d != 0 {
				t.Fatalf("after %d attempts the next must wait %s", i, d)
			}
		}
		if d := wait(t, l, "192.0.2.1"); d != 0 {
			t.Fatalf("attempt %d must wait %s", i+1, d)
		}
	}
	for range 10 {
		if d := full(); d != 20*time.Second {
			t.Fatalf("the fourth attempt waits %s, want 20s", d)
		}
	}
	c.at = c.at.Add(20 * time.Second)
	if d := full(); d != 0 {
		t.Errorf("after the wait it still waits %s", d)
	}
}
