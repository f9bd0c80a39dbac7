package keys

import (
	"context"
	"fmt"
	"time"
)

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
// nothing and returns ErrRotating.
func (s *Set) Rotate(ctx context.Context, immediate bool) (Rotation, error) {
	var done Rotation
	err := s.o.Store.InTx(ctx, func(ctx context.Context) error {
		var err error
		done, err = s.rotate(ctx, immediate)
		return err
	})
	if err != nil {
		return Rotation{}, err
	}
	return done, s.Reload(ctx)
}

func (s *Set) rotate(ctx context.Context, immediate bool) (Rotation, error) {
	list, err := s.lock(ctx)
	if err != nil {
		return Rotation{}, err
	}
	now := s.o.Now()
	next, err := s.successor(ctx, list, now, immediate)
	if err != nil {
		return Rotation{}, err
	}
	done := Rotation{Immediate: immediate}
	for _, k := range list {
		if st := state(k, list, now); k.KID == next.KID || st == StateRetired {
			continue
		} else if st != StateRetiring {
			// every token it signs until the next one takes over must still verify
			k.RetireAt = next.ActiveAt.Add(s.o.Tokens + margin)
			if err := s.o.Store.SetKeyTimes(ctx, k.KID, k.ActiveAt, k.RetireAt); err != nil {
				return Rotation{}, fmt.Errorf("retire signing key: %w", err)
			}
		}
		done.Previous = append(done.Previous, info(k, append(list, next), now))
	}
	if _, err := s.o.Store.DeleteRetiredKeys(ctx, now); err != nil {
		return Rotation{}, fmt.Errorf("delete retired signing keys: %w", err)
	}
	done.Next = info(next, append(list, next), now)
	return done, s.audit(ctx, now, "key.rotated", "operator", next)
}

// successor makes the next key, or, with immediate, takes the one that waits.
func (s *Set) successor(ctx context.Context, list []Key, now time.Time, immediate bool) (Key, error) {
	activeAt := now.Add(publishAhead)
	if immediate {
		activeAt = now
	}
	for _, k := range list {
		if state(k, list, now) != StateNext {
			continue
		}
		if !immediate {
			return Key{}, fmt.Errorf("%w: %s signs from %s on", ErrRotating, k.KID, k.ActiveAt.UTC().Format(time.RFC3339))
		}
		k.ActiveAt = now
		return k, s.o.Store.SetKeyTimes(ctx, k.KID, k.ActiveAt, k.RetireAt)
	}
	k, err := s.generate(now, activeAt)
	if err != nil {
		return Key{}, err
	}
	return k, s.create(ctx, now, "operator", k)
}
