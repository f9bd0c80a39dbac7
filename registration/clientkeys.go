package registration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"golang.org/x/sync/singleflight"
)

// How long keys fetched from a jwks_uri are used. A client that takes a key out
// of its set stops it within clientKeysFresh, or clientKeysStale when its host is down.
const (
	clientKeysFresh = 5 * time.Minute
	clientKeysStale = time.Hour
	// clientKeysRetry is the least time between two fetches of one jwks_uri, whatever
	// assertions arrive.
	clientKeysRetry = 30 * time.Second
	// clientKeysTimeout bounds a fetch, which outlives the request that caused it.
	clientKeysTimeout = 10 * time.Second
	// maxClientKeySets bounds the cache.
	maxClientKeySets = 1000
)

// ClientKeysOptions configures NewClientKeys.
type ClientKeysOptions struct {
	// Fetcher gets the document of a jwks_uri. Without one only clients whose row
	// holds their keys can authenticate.
	Fetcher Fetcher
	// LimitStrangers, when set, is asked before each fetch for a client that nobody
	// ever approved, by the host that it goes to; it returns how long to wait, 0 for
	// not at all. It bounds what clients that name many URLs of somebody else's host
	// can make us send there.
	LimitStrangers func(ctx context.Context, host string) (time.Duration, error)
	// LimitApproved, when set, is asked in the same way for a client that somebody
	// approved, by its client_id: strangers cannot spend it, whatever host they name.
	LimitApproved func(ctx context.Context, clientID string) (time.Duration, error)
	// Log receives failures that stale keys cover up. Default: nothing.
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// ClientKeys finds the public keys of clients: in their rows, or at their
// jwks_uri, which it fetches and caches in this process. It is safe for
// concurrent use.
type ClientKeys struct {
	o       ClientKeysOptions
	flights singleflight.Group // fetches, by jwks_uri
	waiting singleflight.Group // those who want one, by budget and jwks_uri
	mu      sync.Mutex
	sets    map[string]*clientKeySet // by jwks_uri
}

// clientKeySet is what is known of one jwks_uri.
type clientKeySet struct {
	keys                   clientKeys
	fetchedAt, attemptedAt time.Time
	failed                 error // of the last attempt
	known                  bool  // whether a client that is no stranger has it
}

// NewClientKeys returns an empty cache.
func NewClientKeys(o ClientKeysOptions) *ClientKeys {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &ClientKeys{o: o, sets: map[string]*clientKeySet{}}
}

// find returns the client's key that kid and alg name.
func (k *ClientKeys) find(ctx context.Context, c *Client, kid string, alg jose.Algorithm) (*jose.Key, error) {
	if len(c.Metadata.JWKS) > 0 {
		keys, err := parseJWKS(c.Metadata.JWKS)
		if err != nil {
			return nil, fmt.Errorf("registered keys: %w", err)
		}
		return oneKey(keys, kid, alg)
	}
	uri := c.Metadata.JWKSURI
	if uri == "" || k.o.Fetcher == nil {
		return nil, errors.New("the client has no keys that can be had")
	}
	if key, ok := k.cached(uri, kid, alg, clientKeysFresh); ok {
		return key, nil
	}
	failed := k.refresh(ctx, c)
	if key, ok := k.cached(uri, kid, alg, clientKeysStale); ok {
		return key, nil
	}
	if failed != nil {
		return nil, fmt.Errorf("fetch jwks_uri: %w", failed)
	}
	return nil, errNoKey
}

// errKeysAway reports keys that may be had later, so that the client is not told
// that it is unknown: it would throw its registration away (A19). Only a host that
// may be asked can be away: an address that is refused and a name that nobody has
// are told alike and otherwise, whatever stands there (CI-15).
var errKeysAway = errors.New("the keys cannot be had now")

// errNoKey reports an assertion that none of the client's keys can check.
var errNoKey = errors.New("no key of the client, or more than one, has this kid and alg")

func oneKey(keys clientKeys, kid string, alg jose.Algorithm) (*jose.Key, error) {
	if key := jose.Find(keys, kid, alg); key != nil {
		return key, nil
	}
	return nil, errNoKey
}

// cached looks in the set of uri unless it is older than limit.
func (k *ClientKeys) cached(uri, kid string, alg jose.Algorithm, limit time.Duration) (*jose.Key, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sets[uri]
	if s == nil || s.fetchedAt.IsZero() || k.o.Now().Sub(s.fetchedAt) >= limit {
		return nil, false
	}
	key := jose.Find(s.keys, kid, alg)
	return key, key != nil
}

// refresh fetches the client's set again, unless that was tried a moment ago,
// and returns why the last attempt failed. Many callers make one fetch, and those
// of one budget spend it once; whose budget is spent fails alone.
func (k *ClientKeys) refresh(ctx context.Context, c *Client) error {
	b := k.budgetOf(c)
	done := fly(&k.waiting, b.name+" "+c.Metadata.JWKSURI, func() (any, error) {
		// whoever waits must not fail because the first one hung up
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientKeysTimeout)
		defer cancel()
		return nil, k.refreshWithin(ctx, b, c)
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done(): // the request's time is over, which says nothing of the host
		return fmt.Errorf("%w: %w", errKeysAway, ctx.Err())
	}
}

// refreshWithin spends the budget and then fetches, or waits for the fetch of
// another one. A fetch that a budget refused is none: else a stranger who names
// the keys of somebody who is known would keep them from being fetched.
func (k *ClientKeys) refreshWithin(ctx context.Context, b keyBudget, c *Client) error {
	if due, _ := k.due(c.Metadata.JWKSURI); due {
		if err := b.spend(ctx); err != nil {
			return err
		}
	}
	return (<-fly(&k.flights, c.Metadata.JWKSURI, func() (any, error) { return nil, k.attempt(ctx, c, b.known) })).Err
}

func (k *ClientKeys) attempt(ctx context.Context, c *Client, known bool) error {
	uri := c.Metadata.JWKSURI
	if due, failed := k.due(uri); !due {
		return failed
	}
	k.begin(uri, known)
	keys, err := k.fetch(ctx, uri)
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sets[uri]
	if s == nil { // made room for others meanwhile
		return err
	}
	if err != nil && !s.fetchedAt.IsZero() {
		err = fmt.Errorf("%w: %w", errKeysAway, err)
		k.o.Log.WarnContext(ctx, "keys of a client could not be fetched again; the last ones are used for an hour at most",
			slog.String("event", "client.keys_stale"), slog.String("client_id", c.ID), slog.String("cause", err.Error()))
	}
	if s.failed = err; err == nil {
		s.keys, s.fetchedAt = keys, k.o.Now()
	}
	return err
}

// due reports whether uri may be fetched now, or returns how the last attempt ended.
func (k *ClientKeys) due(uri string) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sets[uri]; s != nil && k.o.Now().Sub(s.attemptedAt) < clientKeysRetry {
		return false, s.failed
	}
	return true, nil
}

// begin notes that uri is fetched now.
func (k *ClientKeys) begin(uri string, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sets[uri]
	if s == nil {
		k.makeRoom()
		s = &clientKeySet{}
		k.sets[uri] = s
	}
	s.attemptedAt, s.known = k.o.Now(), s.known || known
}

// makeRoom forgets a set when the cache is full: the one that was fetched least
// recently, of strangers while there are any, so that these cannot push out the
// keys of others. It is called with mu held.
func (k *ClientKeys) makeRoom() {
	if len(k.sets) < maxClientKeySets {
		return
	}
	var first string
	for uri, s := range k.sets {
		if f := k.sets[first]; f == nil || f.known && !s.known || f.known == s.known && s.attemptedAt.Before(f.attemptedAt) {
			first = uri
		}
	}
	delete(k.sets, first)
}

func (k *ClientKeys) fetch(ctx context.Context, uri string) (clientKeys, error) {
	res, err := k.o.Fetcher.Get(ctx, uri, netguard.GetOptions{Accept: "application/jwk-set+json, application/json", MaxBytes: maxJWKS})
	if errors.Is(err, netguard.ErrUnreachable) {
		return nil, fmt.Errorf("%w: %w", errKeysAway, err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case res.Status >= 500 || res.Status == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%w: status %d", errKeysAway, res.Status)
	case res.Status != http.StatusOK: // a redirect too: it could lead anywhere (CA-11)
		return nil, fmt.Errorf("status %d", res.Status)
	}
	return parseJWKS(res.Body)
}

// keyBudget is what fetches for a client count against.
type keyBudget struct {
	// name tells budgets apart.
	name string
	// known says that strangers cannot spend it.
	known bool
	limit func(ctx context.Context, key string) (time.Duration, error) // nil for no limit
	key   string
}

// budgetOf returns the budget of c's fetches: whom the operator knows waits for
// nobody's, a client that somebody approved has its own, and strangers share
// that of the host that they name.
func (k *ClientKeys) budgetOf(c *Client) keyBudget {
	switch {
	case c.Trusted():
		return keyBudget{name: "trusted", known: true}
	case !c.LastUsedAt.IsZero(): // it was given a code, which takes a person's approval
		return keyBudget{name: "client " + c.ID, known: true, limit: k.o.LimitApproved, key: c.ID}
	}
	return keyBudget{name: "strangers", limit: k.o.LimitStrangers, key: hostOf(c.Metadata.JWKSURI)}
}

func (b keyBudget) spend(ctx context.Context) error {
	if b.limit == nil {
		return nil
	}
	wait, err := b.limit(ctx, b.key)
	if err != nil {
		return fmt.Errorf("%w: limit fetches: %w", errKeysAway, err)
	}
	if wait > 0 {
		return fmt.Errorf("%w: too many fetches in the budget %q, the next one in %s", errKeysAway, b.name, wait)
	}
	return nil
}
