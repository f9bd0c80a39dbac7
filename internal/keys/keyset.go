package keys

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/metadata"
)

// Times of a rotation (D28).
const (
	// JWKSMaxAge is how long a verifier may use a fetched key set.
	JWKSMaxAge = 5 * time.Minute
	// margin allows for clocks that differ and for processes that have not yet
	// read a change.
	margin = 60 * time.Second
	// publishAhead is how long a key is published before it signs.
	publishAhead = JWKSMaxAge + margin
)

// lockKeys is the lock under which keys are made.
const lockKeys = "lock.signing_keys"

// Actors of the audit events of keys.
const (
	actorSystem   = "system"
	actorOperator = "operator"
)

// ErrRotating reports that a next key is already waiting.
var ErrRotating = errors.New("a next key is already waiting to sign")

// SetOptions configures NewSet.
type SetOptions struct {
	// Store keeps the keys. Required.
	Store Store
	// Secrets seal them. Required.
	Secrets *Secrets
	// Issuer is part of what a sealed key is bound to. Required.
	Issuer string
	// Tokens is the longest lifetime of a token that any process signs, not only
	// this one: a key stays published for so long after another took over. Required.
	Tokens time.Duration
	// Algorithm is what the first key signs with, and every one after Adopt.
	// Default ES256.
	Algorithm Algorithm
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Set is the issuer's signing keys. Signing and publishing work on a snapshot
// that Reload replaces, so they never wait for the database. It is safe for
// concurrent use.
type Set struct {
	o        SetOptions
	snapshot atomic.Pointer[snapshot]
}

// snapshot is what was read last; it does not change.
type snapshot struct {
	keys []openKey
	jwks metadata.Body
}

// openKey is a key ready to use.
type openKey struct {
	Key
	private crypto.Signer
	// header is the base64url protected header of access tokens, made once.
	header string
}

// NewSet returns a set without keys: call Ensure before it is used.
func NewSet(o SetOptions) (*Set, error) {
	var errs []error
	if o.Store == nil {
		errs = append(errs, errors.New("store is required"))
	}
	if o.Secrets == nil {
		errs = append(errs, errors.New("secrets are required"))
	}
	if o.Issuer == "" {
		errs = append(errs, errors.New("issuer is required"))
	}
	if o.Tokens <= 0 {
		errs = append(errs, errors.New("the longest lifetime of a token is required"))
	}
	if o.Algorithm == "" {
		o.Algorithm = ES256
	}
	if !o.Algorithm.Known() {
		errs = append(errs, fmt.Errorf("algorithm %q is not known", o.Algorithm))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}
	s := &Set{o: o}
	s.snapshot.Store(&snapshot{})
	return s, nil
}

// Ensure makes the first key when there is none, and reads the keys. Processes
// that start at once on a new database end with one key.
func (s *Set) Ensure(ctx context.Context) error {
	list, err := s.o.Store.ListKeys(ctx)
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	if len(list) == 0 {
		if err := s.o.Store.InTx(ctx, s.createFirst); err != nil {
			return err
		}
	}
	return s.Reload(ctx)
}

func (s *Set) createFirst(ctx context.Context) error {
	list, err := s.lock(ctx)
	if err != nil || len(list) > 0 {
		return err
	}
	now := s.o.Now()
	k, err := s.generate(s.o.Algorithm, now, now)
	if err != nil {
		return err
	}
	return s.create(ctx, now, actorSystem, k)
}

// lock waits for other changes of keys to finish and returns what they left.
func (s *Set) lock(ctx context.Context) ([]Key, error) {
	if err := s.o.Store.LockServer(ctx, lockKeys); err != nil {
		return nil, fmt.Errorf("lock signing keys: %w", err)
	}
	list, err := s.o.Store.ListKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return list, nil
}

func (s *Set) create(ctx context.Context, now time.Time, actor string, k Key) error {
	if err := s.o.Store.CreateKey(ctx, k); err != nil {
		return fmt.Errorf("store signing key: %w", err)
	}
	return s.audit(ctx, now, "key.created", actor, k)
}

func (s *Set) audit(ctx context.Context, now time.Time, name, actor string, k Key) error {
	e := audit.New(ctx, now, audit.Event{Name: name, Actor: actor, Detail: map[string]string{
		"kid": k.KID, "alg": k.Algorithm, "active_at": k.ActiveAt.UTC().Format(time.RFC3339)}})
	return s.o.Store.Append(ctx, e)
}

// Reload reads the keys again; serve calls it every 30 seconds. When it fails
// the set goes on with what it read last.
func (s *Set) Reload(ctx context.Context) error {
	list, err := s.o.Store.ListKeys(ctx)
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	next, err := s.openAll(list)
	if err != nil {
		return err
	}
	s.snapshot.Store(next)
	return nil
}

func (s *Set) openAll(list []Key) (*snapshot, error) {
	now := s.o.Now()
	snap := &snapshot{}
	published := []publicJWK{}
	for _, k := range list {
		if state(k, list, now) == StateRetired {
			continue
		}
		private, err := s.open(k)
		if err != nil {
			return nil, err
		}
		// Derived again and not taken from the row: nobody who can only write to
		// the database can publish a key of their own.
		public, err := newPublicJWK(Algorithm(k.Algorithm), private.Public())
		if err != nil {
			return nil, err
		}
		if public.KID != k.KID {
			return nil, fmt.Errorf("signing key %s: the stored kid is not its thumbprint", k.KID)
		}
		snap.keys = append(snap.keys, openKey{Key: k, private: private, header: protectedHeader(k, oauth.TypeAccessToken)})
		published = append(published, public)
	}
	body, err := metadata.NewBody(map[string]any{"keys": published})
	if err != nil {
		return nil, fmt.Errorf("encode JWKS: %w", err)
	}
	snap.jwks = body
	return snap, nil
}

// JWKS returns the published key set (RFC 7517 §5) and its entity tag: next,
// active and retiring keys, public members only. The bytes must not be changed.
func (s *Set) JWKS() (body []byte, etag string) {
	b := s.snapshot.Load().jwks
	return b.JSON, b.ETag
}

// Algorithms returns the algorithms of the published keys, each once: those that
// tokens now valid may be signed with.
func (s *Set) Algorithms() []string {
	var algs []string
	for _, k := range s.snapshot.Load().keys {
		if !slices.Contains(algs, k.Algorithm) {
			algs = append(algs, k.Algorithm)
		}
	}
	return algs
}

// List reads the keys and their states for an operator, oldest first.
func (s *Set) List(ctx context.Context) ([]Info, error) {
	list, err := s.o.Store.ListKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	now := s.o.Now()
	infos := []Info{}
	for _, k := range list {
		infos = append(infos, info(k, list, now))
	}
	return infos, nil
}

func info(k Key, list []Key, now time.Time) Info {
	return Info{KID: k.KID, Algorithm: k.Algorithm, State: state(k, list, now),
		CreatedAt: k.CreatedAt, ActiveAt: k.ActiveAt, RetireAt: k.RetireAt}
}

// state computes a key's state from the times alone, so no job has to move keys
// along and all processes agree.
func state(k Key, list []Key, now time.Time) State {
	switch {
	case !k.RetireAt.IsZero() && !now.Before(k.RetireAt):
		return StateRetired
	case now.Before(k.ActiveAt):
		return StateNext
	}
	for _, o := range list {
		if !now.Before(o.ActiveAt) && succeeds(o, k) {
			return StateRetiring
		}
	}
	return StateActive
}

// succeeds reports whether a signs instead of b once both may.
func succeeds(a, b Key) bool {
	if a.ActiveAt.Equal(b.ActiveAt) {
		return a.KID > b.KID
	}
	return a.ActiveAt.After(b.ActiveAt)
}
