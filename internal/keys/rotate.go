package keys

import (
	"context"
	"fmt"
	"time"
)

// maxWaiting is how many next keys may wait at once: one of a rotation, and more
// only while the configured algorithm changes.
const maxWaiting = 3

// Rotation is what Rotate did.
type Rotation struct {
	// Next is the key that signs from its ActiveAt on.
	Next Info `json:"next"`
	// Previous are the keys that it replaces, each published until its RetireAt.
	Previous []Info `json:"previous"`
	// Immediate says that nothing was waited for: a verifier that has cached the
	// key set refuses new tokens until it fetches it again.
	Immediate bool `json:"immediate"`
}

// Rotate publishes a next key at once; it signs when every cached copy of the
// key set has expired (JWKSMaxAge and a minute), and the key it replaces stays
// published until the longest-lived token that it can have signed has expired,
// and a minute more (D28). With immediate the next key, be it waiting or new,
// signs from now on. While a next key waits Rotate without immediate changes
// nothing and returns ErrRotating. The algorithm stays what it is: a command does
// not know what the server was told; Adopt changes it.
func (s *Set) Rotate(ctx context.Context, immediate bool) (Rotation, error) {
	var done Rotation
	err := s.change(ctx, func(ctx context.Context, list []Key, now time.Time) error {
		waiting := inState(list, StateNext, now)
		if len(waiting) > 0 && !immediate {
			return fmt.Errorf("%w: %s signs from %s on", ErrRotating, waiting[0].KID, waiting[0].ActiveAt.UTC().Format(time.RFC3339))
		}
		var err error
		done, err = s.rotate(ctx, list, now, immediate)
		return err
	})
	return done, err
}

// Adopt publishes a next key of the configured algorithm where the key that
// signs last has another one, and reports whether it did: so a server that was
// told another algorithm gets there by the course of every rotation (D28).
func (s *Set) Adopt(ctx context.Context) (next Info, adopted bool, err error) {
	list, err := s.o.Store.ListKeys(ctx)
	if err != nil {
		return Info{}, false, fmt.Errorf("read signing keys: %w", err)
	}
	if newest(list).Algorithm == string(s.o.Algorithm) {
		return Info{}, false, nil
	}
	err = s.change(ctx, func(ctx context.Context, list []Key, now time.Time) error {
		if newest(list).Algorithm == string(s.o.Algorithm) {
			return nil // another process was first
		}
		if n := len(inState(list, StateNext, now)); n >= maxWaiting {
			return fmt.Errorf("%w: %d of them; do all servers have the same signing_algorithm?", ErrRotating, n)
		}
		activeAt := now.Add(publishAhead)
		if last := newest(list); !activeAt.After(last.ActiveAt) {
			activeAt = last.ActiveAt.Add(time.Millisecond)
		}
		k, err := s.generate(s.o.Algorithm, now, activeAt)
		if err != nil {
			return err
		}
		if err := s.create(ctx, now, actorSystem, k); err != nil {
			return err
		}
		done, err := s.replace(ctx, list, k, now, actorSystem)
		next, adopted = done.Next, err == nil
		return err
	})
	return next, adopted, err
}

// change runs fn on the keys while nobody else changes them, forgets those that
// have retired, and reads the keys again.
func (s *Set) change(ctx context.Context, fn func(ctx context.Context, list []Key, now time.Time) error) error {
	err := s.o.Store.InTx(ctx, func(ctx context.Context) error {
		list, err := s.lock(ctx)
		if err != nil {
			return err
		}
		now := s.o.Now()
		if err := fn(ctx, list, now); err != nil {
			return err
		}
		if _, err := s.o.Store.DeleteRetiredKeys(ctx, now); err != nil {
			return fmt.Errorf("delete retired signing keys: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.Reload(ctx)
}

// rotate makes the next key, or, with immediate, takes the last one that waits.
func (s *Set) rotate(ctx context.Context, list []Key, now time.Time, immediate bool) (Rotation, error) {
	if waiting := inState(list, StateNext, now); immediate && len(waiting) > 0 {
		next := waiting[len(waiting)-1]
		next.ActiveAt = now
		if err := s.setTimes(ctx, next); err != nil {
			return Rotation{}, err
		}
		return s.replace(ctx, list, next, now, actorOperator)
	}
	activeAt := now.Add(publishAhead)
	if immediate {
		activeAt = now
	}
	next, err := s.generate(Algorithm(newest(list).Algorithm), now, activeAt)
	if err != nil {
		return Rotation{}, err
	}
	if err := s.create(ctx, now, actorOperator, next); err != nil {
		return Rotation{}, err
	}
	return s.replace(ctx, list, next, now, actorOperator)
}

// replace says until when every other key is published, now that next takes over.
func (s *Set) replace(ctx context.Context, list []Key, next Key, now time.Time, actor string) (Rotation, error) {
	done := Rotation{Immediate: !next.ActiveAt.After(now)}
	after := []Key{next}
	for _, k := range list {
		if k.KID != next.KID {
			after = append(after, k)
		}
	}
	for i, k := range after[1:] {
		st := state(k, list, now)
		overtaken := st == StateNext && !k.ActiveAt.Before(next.ActiveAt)
		switch {
		case overtaken:
			k.RetireAt = now // it never signed anything
		case st == StateActive, st == StateNext:
			k.RetireAt = s.publishedUntil(next)
		}
		if !k.RetireAt.Equal(after[i+1].RetireAt) {
			if err := s.setTimes(ctx, k); err != nil {
				return Rotation{}, err
			}
		}
		if st != StateRetired && !overtaken {
			done.Previous = append(done.Previous, info(k, after, now))
		}
	}
	done.Next = info(next, after, now)
	return done, s.audit(ctx, now, "key.rotated", actor, next)
}

// publishedUntil is until when a key stays published that next replaces: every
// token that it signs until then must still verify.
func (s *Set) publishedUntil(next Key) time.Time { return next.ActiveAt.Add(s.o.Tokens + margin) }

func (s *Set) setTimes(ctx context.Context, k Key) error {
	if err := s.o.Store.SetKeyTimes(ctx, k.KID, k.ActiveAt, k.RetireAt); err != nil {
		return fmt.Errorf("set times of signing key: %w", err)
	}
	return nil
}

// newest returns the key that signs last, the zero Key of an empty list.
func newest(list []Key) (last Key) {
	for _, k := range list {
		if last.KID == "" || succeeds(k, last) {
			last = k
		}
	}
	return last
}

// inState returns the keys in a state, in the order in which they sign.
func inState(list []Key, want State, now time.Time) (found []Key) {
	for _, k := range list {
		if state(k, list, now) == want {
			found = append(found, k)
		}
	}
	return found
}
