package resourceserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
)

// fetchTimeout bounds one fetch of metadata and keys together.
const fetchTimeout = 10 * time.Second

// keySource gets the issuer's current keys.
type keySource interface {
	fetch(ctx context.Context) ([]*jose.Key, error)
}

// errNoKeys refuses a set from which no key can be used.
var errNoKeys = errors.New("the authorization server publishes no usable key")

// keyring is one fetched set. It never changes.
type keyring struct {
	keys      []*jose.Key
	fetchedAt time.Time
}

// keySet caches the issuer's keys. At most one fetch runs at a time and one
// starts in each retry interval, whatever tokens arrive (JW-11). A set that
// cannot be fetched again stays in use until limit (M8).
//
// So a key that the issuer removes verifies nothing any more once the set is
// refresh old and has been fetched again, which the next request begins: refresh
// and the time of one fetch, while requests arrive and the issuer answers; limit
// at the most when it does not (MM-04).
type keySet struct {
	source                keySource // nil: the set never changes
	refresh, retry, limit time.Duration
	now                   func() time.Time
	log                   *slog.Logger
	ring                  atomic.Pointer[keyring] // nil before the first fetch
	mu                    sync.Mutex              // of all below
	attemptedAt           time.Time
	failed                error         // of the last attempt
	running               chan struct{} // closed when the fetch under way ends
}

// find returns the key that kid and alg name. An unknown key is a 401 refusal
// when the keys are known to be current, and 503 when they could not be had.
func (s *keySet) find(ctx context.Context, kid string, alg jose.Algorithm) (*jose.Key, error) {
	k, stale := s.match(kid, alg)
	if k != nil {
		if stale {
			s.start()
		}
		// At once, even while the set is fetched again: a slow issuer delays nobody.
		return k, nil
	}
	if wait := s.start(); wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, unavailable(ctx.Err())
		}
		if k, _ := s.match(kid, alg); k != nil {
			return k, nil
		}
	}
	if e := s.outage(); e != nil {
		return nil, e
	}
	return nil, invalidToken("the token was signed with a key that the authorization server does not publish")
}

// holds reports whether k, which find returned earlier, may still be used. It
// takes no lock, and starts a fetch when one is due.
func (s *keySet) holds(k *jose.Key) bool {
	ring, stale := s.current()
	if stale {
		s.start()
	}
	return ring != nil && slices.Contains(ring.keys, k)
}

// current returns the keys unless there are none that may be used, and whether
// they should be fetched again.
func (s *keySet) current() (ring *keyring, stale bool) {
	ring = s.ring.Load()
	if ring == nil || s.source == nil {
		return ring, false
	}
	age := s.now().Sub(ring.fetchedAt)
	if age >= s.limit {
		return nil, true
	}
	return ring, age >= s.refresh
}

// match finds the one usable key.
func (s *keySet) match(kid string, alg jose.Algorithm) (found *jose.Key, stale bool) {
	ring, stale := s.current()
	if ring == nil {
		return nil, stale
	}
	return jose.Find(ring.keys, kid, alg), stale
}

// outage refuses with 503, until the next fetch may begin, when nobody can say
// whether a key is known; nil when the keys are known.
func (s *keySet) outage() *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.failed
	if ring, _ := s.current(); ring == nil && err == nil {
		err = errNoKeys
	}
	if err == nil {
		return nil
	}
	e := unavailable(err)
	e.retryAfter = max(time.Second, s.retry-s.now().Sub(s.attemptedAt))
	return e
}

// start begins a fetch unless one runs or the last began too recently. It returns
// what is closed when the fetch under way ends, nil when there is none.
func (s *keySet) start() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	switch {
	case s.source == nil:
		return nil
	case s.running != nil:
		return s.running
	case !s.attemptedAt.IsZero() && now.Sub(s.attemptedAt) < s.retry:
		return nil
	}
	s.attemptedAt = now
	done := make(chan struct{})
	s.running = done
	// The fetch outlives the request that caused it: others wait for it too.
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		keys, err := fetchKeys(ctx, s.source)
		if err == nil && len(keys) == 0 {
			err = errNoKeys
		}
		s.finish(keys, err)
		close(done)
	}()
	return done
}

// fetchKeys makes an error of a panic: it runs where no request would end with
// it, but the process (JW-31).
func fetchKeys(ctx context.Context, source keySource) (keys []*jose.Key, err error) {
	defer func() {
		if p := recover(); p != nil {
			keys, err = nil, fmt.Errorf("reading the keys panicked: %v", p)
		}
	}()
	return source.fetch(ctx)
}

func (s *keySet) finish(keys []*jose.Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.failed = nil, err
	if err != nil {
		s.log.Warn("keys of the authorization server could not be fetched; the last ones stay in use",
			slog.String("event", "jwks.fetch_failed"), slog.Any("cause", err))
		return
	}
	if old := s.ring.Load(); old != nil {
		keepKnown(keys, old.keys)
	}
	s.ring.Store(&keyring{keys: keys, fetchedAt: s.now()})
}

// keepKnown puts the keys of the last set in the place of those that equal them,
// so that what they verified stays verified (holds).
func keepKnown(keys, old []*jose.Key) {
	for i, k := range keys {
		if j := slices.IndexFunc(old, k.Equal); j >= 0 {
			keys[i] = old[j]
		}
	}
}
