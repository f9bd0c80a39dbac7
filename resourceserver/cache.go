package resourceserver

import (
	"sync"
	"time"
)

// shards of a cache, so that requests on many processors rarely wait for one
// another; a power of two.
const shards = 16

// cache remembers a bounded number of values, each until its time. A nil cache
// remembers nothing.
type cache[V any] struct {
	limit  int // of one shard
	shards [shards]cacheShard[V]
}

type cacheShard[V any] struct {
	mu      sync.Mutex
	entries map[digest]cached[V]
}

type cached[V any] struct {
	value V
	until int64 // unix milliseconds: exp may lie beyond what nanoseconds can say
}

// newCache returns a cache of about size values, nil when size is not positive.
func newCache[V any](size int) *cache[V] {
	if size <= 0 {
		return nil
	}
	// Digests fill shards unevenly. With a sixth more room in each, size values have
	// their place; a full shard would forget values that are needed again and again.
	c := &cache[V]{limit: (size + shards - 1) / shards * 7 / 6}
	for i := range c.shards {
		c.shards[i].entries = map[digest]cached[V]{}
	}
	return c
}

func (c *cache[V]) shard(d digest) *cacheShard[V] { return &c.shards[d[0]%shards] }

// get returns the value of d while its time lasts.
func (c *cache[V]) get(d digest, now time.Time) (value V, ok bool) {
	if c == nil {
		return value, false
	}
	s := c.shard(d)
	s.mu.Lock()
	e, ok := s.entries[d]
	s.mu.Unlock()
	if !ok || now.UnixMilli() >= e.until {
		return value, false
	}
	return e.value, true
}

// put remembers a value. A full shard forgets another one first, preferring one
// whose time is over.
func (c *cache[V]) put(d digest, value V, until, now time.Time) {
	if c == nil || !until.After(now) {
		return
	}
	s := c.shard(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.entries[d]; !known && len(s.entries) >= c.limit {
		s.evict(now.UnixMilli())
	}
	s.entries[d] = cached[V]{value: value, until: until.UnixMilli()}
}

// evict looks at a few entries, which a map yields in random order, and drops
// those whose time is over, or else the first: who sends many tokens cannot choose
// whose is forgotten.
func (s *cacheShard[V]) evict(now int64) {
	const few = 8
	var first digest
	seen, dropped := 0, false
	for d, e := range s.entries {
		if seen == 0 {
			first = d
		}
		if e.until <= now {
			delete(s.entries, d)
			dropped = true
		}
		if seen++; seen == few {
			break
		}
	}
	if !dropped {
		delete(s.entries, first)
	}
}

// drop forgets d.
func (c *cache[V]) drop(d digest) {
	if c == nil {
		return
	}
	s := c.shard(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, d)
}
