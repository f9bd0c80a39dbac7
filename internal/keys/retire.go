package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ostiary-auth/ostiary/internal/store"
)

// ErrActive reports that the key to retire is the one that signs.
var ErrActive = errors.New("this key signs the tokens of now")

// Retirement is what Retire did.
type Retirement struct {
	// Key is the key that is gone, in the state it was in.
	Key Info `json:"key"`
	// Signing is the key that signs now.
	Signing Info `json:"signing"`
	// Replaced says that Signing took over because Key was the one that signed.
	Replaced bool `json:"replaced"`
}

// Retire takes a key out of the published set at once and forgets its private
// half: what it signed is refused as soon as a verifier fetches the set again,
// JWKSMaxAge at the latest, and another process stops signing with it when it
// next reads the keys. A key that waits is called off by it. The active key is
// ErrActive, or with force another one, waiting or new, signs from now on. A kid
// that is not there is store.ErrNotFound.
func (s *Set) Retire(ctx context.Context, kid string, force bool) (Retirement, error) {
	var done Retirement
	err := s.change(ctx, func(ctx context.Context, list []Key, now time.Time) error {
		i := slices.IndexFunc(list, func(k Key) bool { return k.KID == kid })
		if i < 0 {
			return fmt.Errorf("retire signing key: %w", store.ErrNotFound)
		}
		k := list[i]
		done = Retirement{Key: info(k, list, now)}
		rest := slices.Delete(slices.Clone(list), i, i+1)
		if done.Key.State == StateActive {
			if !force {
				return ErrActive
			}
			rotation, err := s.rotate(ctx, list, now, true)
			if err != nil {
				return err
			}
			done.Signing, done.Replaced = rotation.Next, true
		} else if err := s.callOff(ctx, rest, now); err != nil {
			return err
		}
		k.RetireAt = now
		if err := s.setTimes(ctx, k); err != nil {
			return err
		}
		if active := inState(rest, StateActive, now); !done.Replaced && len(active) > 0 {
			done.Signing = info(active[0], rest, now)
		}
		return s.audit(ctx, now, "key.retired", actorOperator, k)
	})
	if err != nil {
		return Retirement{}, err
	}
	return done, nil
}

// callOff says again until when the keys that sign or wait are published, without
// the one that was to replace them.
func (s *Set) callOff(ctx context.Context, rest []Key, now time.Time) error {
	for _, k := range rest {
		if st := state(k, rest, now); st != StateActive && st != StateNext {
			continue
		}
		until := time.Time{}
		for _, o := range rest {
			if succeeds(o, k) && (until.IsZero() || s.publishedUntil(o).Before(until)) {
				until = s.publishedUntil(o)
			}
		}
		if until.Equal(k.RetireAt) {
			continue
		}
		k.RetireAt = until
		if err := s.setTimes(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
