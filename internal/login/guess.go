package login

import (
	"context"
	"errors"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// How guessing is slowed down (SL-04): so many failures are free, then each one
// costs a wait that doubles up to a limit, until nothing failed for a day.
const (
	freeTries       = 5
	freeSourceTries = 50 // a source may be a whole office
	firstWait       = time.Minute
	longestWait     = 15 * time.Minute
	guessMemory     = 24 * time.Hour
)

// waitAfter is how long the next try must wait after so many failures.
func waitAfter(failures, free int) time.Duration {
	wait := firstWait
	for n := failures - free; n > 0 && wait < longestWait; n-- {
		wait *= 2
	}
	if failures < free {
		return 0
	}
	return min(wait, longestWait)
}

// counter is one row that a failed sign-in adds to.
type counter struct {
	name string
	free int
}

// countersFor says what a try is counted under. A browser in which the account
// signed in before has a counter of its own, so that guessing elsewhere never
// locks the owner out; everybody else shares one for the account, however many
// addresses they come from, and one for their source.
func countersFor(ctx context.Context, emailKey, deviceID string, known bool) []counter {
	if known {
		return []counter{{name: hashOf("guess device", deviceID+"\x00"+emailKey), free: freeTries}}
	}
	return []counter{
		{name: hashOf("guess account", emailKey), free: freeTries},
		{name: hashOf("guess source", audit.SourceFrom(ctx).Class()), free: freeSourceTries},
	}
}

// guard keeps the guess counters.
type guard struct {
	store GuessStore
	now   func() time.Time
}

// wait returns how long the next try must wait; 0 means now.
func (g *guard) wait(ctx context.Context, counters []counter) (time.Duration, error) {
	var longest time.Duration
	for _, c := range counters {
		row, err := g.store.GetGuess(ctx, c.name, g.now())
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}
		longest = max(longest, row.BlockedUntil.Sub(g.now()))
	}
	return longest, nil
}

// failed counts a failure under every counter.
func (g *guard) failed(ctx context.Context, counters []counter) error {
	now := g.now()
	for _, c := range counters {
		n, err := g.store.CountGuess(ctx, c.name, now, now.Add(guessMemory))
		if err != nil {
			return err
		}
		wait := waitAfter(n, c.free)
		if wait == 0 {
			continue
		}
		if err := g.store.BlockGuess(ctx, c.name, now.Add(wait)); err != nil {
			return err
		}
	}
	return nil
}

// succeeded forgets the failures of the account or device; those of the source
// stay, or one good account would pay for guessing at all others.
func (g *guard) succeeded(ctx context.Context, counters []counter) error {
	return g.store.DeleteGuess(ctx, counters[0].name)
}

// credentials are what a person typed, already within bounds (SL-07).
type credentials struct {
	email    string
	password oauth.Secret
	deviceID string // hash of the device cookie, "" for none
}

// Reasons for which a sign-in fails, as the audit record names them.
const (
	failedCredentials = "credentials"
	failedDisabled    = "disabled"
	failedBlocked     = "blocked"
)

// verdict is what became of credentials.
type verdict struct {
	user     User // zero when nobody has that address
	failure  string
	wait     time.Duration
	rehash   string // the hash to keep from now on
	counters []counter
}

// verify checks credentials without changing anything. Unknown and known
// accounts cost the same statements and the same hashing (SL-05). The counters
// are read again while the slot is held, so that a burst of parallel guesses
// cannot outrun them by more than the number of slots.
func (h *Handler) verify(ctx context.Context, c credentials) (verdict, error) {
	var v verdict
	key := EmailKey(c.email)
	user, err := h.o.Users.GetUserByEmail(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return v, err
	}
	v.user = user
	known, err := h.o.Devices.KnowsDevice(ctx, c.deviceID, user.ID, h.o.Now())
	if err != nil {
		return v, err
	}
	v.counters = countersFor(ctx, key, c.deviceID, known)
	if blocked, err := h.blocked(ctx, &v); blocked || err != nil {
		return v, err
	}
	err = h.o.Passwords.slot(ctx, func() error {
		if blocked, err := h.blocked(ctx, &v); blocked || err != nil {
			return err
		}
		return h.compare(&v, c.password)
	})
	return v, err
}

func (h *Handler) blocked(ctx context.Context, v *verdict) (bool, error) {
	wait, err := h.guard.wait(ctx, v.counters)
	if err != nil || wait <= 0 {
		return false, err
	}
	v.failure, v.wait = failedBlocked, wait
	return true, nil
}

// compare does the hashing. An account that is switched off says so only to
// somebody who knows its password.
func (h *Handler) compare(v *verdict, password oauth.Secret) error {
	ok, err := h.o.Passwords.match(v.user.PasswordHash, password)
	switch {
	case err != nil:
		return err
	case !ok:
		v.failure = failedCredentials
		return nil
	case !v.user.Enabled():
		v.failure = failedDisabled
		return nil
	}
	v.rehash = v.user.PasswordHash
	if h.o.Passwords.outdated(v.rehash) {
		v.rehash, err = h.o.Passwords.hash(password)
	}
	return err
}
