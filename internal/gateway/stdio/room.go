package stdio

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ostiary-auth/ostiary/internal/ratelimit"
)

// Why no child was started.
var (
	errSubjectFull = errors.New("you have as many sessions as one person may have; end one, or try again shortly")
	errFull        = errors.New("there are as many sessions as the server may have; try again shortly")
	errClosed      = errors.New("the gateway stops")
)

// newStarts counts how often each subject has a child started.
func newStarts(o Options) (*ratelimit.Limiter, error) {
	return ratelimit.New(ratelimit.Options{PerSource: o.StartsPerMinute, Period: time.Minute, Now: o.Now})
}

// mayStart counts a start of p. Children that end at once, or are ended for the
// next one, cost as much as those that stay.
func (b *Bridge) mayStart(ctx context.Context, p person) error {
	// Digests are of one size, whatever names an issuer gives.
	digest := sha256.Sum256([]byte(strconv.Quote(p.issuer) + p.subject))
	wait, err := b.starts.Wait(ctx, string(digest[:]))
	if err != nil || wait == 0 {
		return err
	}
	f := refuse(http.StatusTooManyRequests, codeUnavailable, "you have begun too many sessions within a minute; use one for longer, or try again shortly")
	f.retry = wait
	return f
}

// reserve counts s, once there is room. Who has no more makes room by his own child
// that was not used for longest: clients forget sessions without ending them, and
// one that comes back begins anew. When everybody together has no more, somebody
// who has more than s's owner does.
func (b *Bridge) reserve(ctx context.Context, s *session) error {
	if err := b.mayStart(ctx, s.owner.person()); err != nil {
		return err
	}
	for {
		victim, err := b.admit(s)
		if err != nil || victim == nil {
			return err
		}
		select {
		case <-victim.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// admit counts s, or returns the child that ends to make room.
func (b *Bridge) admit(s *session) (*session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	have := map[person]int{}
	for other := range b.all {
		have[other.owner.person()]++
	}
	full := have[s.owner.person()] >= b.opts.MaxPerSubject
	if !full && len(b.all) < b.opts.MaxChildren {
		b.all[s] = true
		b.begin.Do(func() { go b.sweepOnTime() })
		return nil, nil
	}
	victim := b.victim(s.owner.person(), have, full)
	switch {
	case victim == nil && full:
		return nil, errSubjectFull
	case victim == nil:
		return nil, errFull
	}
	victim.awaited = true
	if b.retireHeld(victim) { // now: nobody may use it before it is told
		go victim.stop(reasonFor(s, victim))
	}
	return victim, nil
}

func reasonFor(s, victim *session) string {
	if s.owner.person() == victim.owner.person() {
		return "its owner began another session"
	}
	return "somebody else had no room"
}

// victim returns the child whose end makes room for p's: one that ends anyway, else
// p's own, else, unless ownOnly, of whoever has most and more than p; of these the
// one that was not used for longest. One whose room others wait for comes last: they
// would wait for one another. It is nil when all are in use.
func (b *Bridge) victim(p person, have map[person]int, ownOnly bool) *session {
	var candidates []*session
	for s := range b.all {
		of := s.owner.person()
		allowed := of == p || !ownOnly && (s.ending || have[of] > have[p])
		if allowed && (s.ending || s.open == 0) {
			candidates = append(candidates, s)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return slices.MinFunc(candidates, func(x, y *session) int {
		return cmp.Or(trueFirst(y.awaited, x.awaited), trueFirst(x.ending, y.ending), trueFirst(x.owner.person() == p, y.owner.person() == p),
			cmp.Compare(have[y.owner.person()], have[x.owner.person()]), x.usedAt.Compare(y.usedAt))
	})
}

func trueFirst(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}
