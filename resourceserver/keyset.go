package resourceserver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
)

// fetchTimeout bounds one fetch of metadata and keys together.
const fetchTimeout = 10 * time.Second

// keySource gets the issuer's current keys.
type keySource interface {
	fetch(ctx context.Context) ([]key, error)
}

// keySet caches the issuer's keys. At most one fetch runs at a time and one
// starts in each retry interval, whatever tokens arrive (JW-11). A set that
// cannot be fetched again stays in use until limit (M8).
type keySet struct {
	source                 keySource
	refresh, retry, limit  time.Duration
	now                    func() time.Time
	log                    *slog.Logger
	mu                     sync.Mutex
	keys                   []key
	fetchedAt, attemptedAt time.Time
	failed                 error         // of the last attempt
	running                chan struct{} // closed when the fetch under way ends
}

// find returns the key that kid and alg name. An unknown key is a 401 refusal
// when the keys are known to be current, and 503 when they could not be had.
func (s *keySet) find(ctx context.Context, kid string, alg jwa.SignatureAlgorithm) (key, error) {
	k, found, wait := s.look(kid, alg)
	if found {
		return k, nil
	}
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return key{}, unavailable(ctx.Err())
		}
		if k, found := s.lookAgain(kid, alg); found {
			return k, nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil || !s.usable() {
		return key{}, unavailable(s.failed)
	}
	return key{}, invalidToken("the token was signed with a key that the authorization server does not publish")
}

// look searches the cached keys and starts a fetch when one is due. A key that
// is there is returned at once, even while the set is fetched again, so that a
// slow issuer delays nobody; otherwise wait tells when to look again.
func (s *keySet) look(kid string, alg jwa.SignatureAlgorithm) (_ key, found bool, wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, found := s.match(kid, alg)
	if due := !found || s.now().Sub(s.fetchedAt) >= s.refresh; due {
		s.start()
	}
	return k, found, s.running
}

func (s *keySet) lookAgain(kid string, alg jwa.SignatureAlgorithm) (key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.match(kid, alg)
}

// match finds the one usable key. A token without kid is accepted when only
// one key can have signed it.
func (s *keySet) match(kid string, alg jwa.SignatureAlgorithm) (key, bool) {
	if !s.usable() {
		return key{}, false
	}
	var fit []key
	for _, k := range s.keys {
		if (kid == "" || k.id == kid) && slices.Contains(k.algorithms, alg) {
			fit = append(fit, k)
		}
	}
	if len(fit) != 1 {
		return key{}, false
	}
	return fit[0], true
}

func (s *keySet) usable() bool {
	return !s.fetchedAt.IsZero() && s.now().Sub(s.fetchedAt) < s.limit
}

// start begins a fetch unless one runs or the last began too recently. It is
// called with mu held.
func (s *keySet) start() {
	now := s.now()
	if s.running != nil || !s.attemptedAt.IsZero() && now.Sub(s.attemptedAt) < s.retry {
		return
	}
	s.attemptedAt = now
	done := make(chan struct{})
	s.running = done
	// The fetch outlives the request that caused it: others wait for it too.
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		keys, err := s.source.fetch(ctx)
		if err == nil && len(keys) == 0 {
			err = errors.New("the authorization server publishes no usable key")
		}
		s.finish(keys, err)
		close(done)
	}()
}

func (s *keySet) finish(keys []key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.failed = nil, err
	if err != nil {
		s.log.Warn("keys of the authorization server could not be fetched; the last ones stay in use",
			slog.String("event", "jwks.fetch_failed"), slog.Any("cause", err))
		return
	}
	s.keys, s.fetchedAt = keys, s.now()
}
