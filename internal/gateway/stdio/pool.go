package stdio

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// owner is whom a child works for. No other subject reaches it, also when he knows
// the session's id (resourceserver's SessionKey says so first; JW-25). Another
// client of the subject does: the go-sdk registers anew to step up (ADR 0012).
type owner struct{ issuer, subject, client string }

func ownerOf(t *resourceserver.Token) owner { return owner{t.Issuer, t.Subject, t.ClientID} }

// person is a subject, with whichever client.
type person struct{ issuer, subject string }

func (o owner) person() person { return person{o.issuer, o.subject} }

// open starts a child of t's owner, which counts as used until release.
func (b *Bridge) open(ctx context.Context, t *resourceserver.Token) (*session, error) {
	s := newSession(b, ownerOf(t), rand.Text())
	b.mu.Lock()
	b.touch(s, t)
	b.mu.Unlock()
	if err := b.reserve(ctx, s); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		b.forget(s)
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !s.ending {
		b.sessions[s.id] = s
	}
	return s, nil
}

// openShared returns the one child of t's owner for requests without a session,
// and starts it when there is none.
func (b *Bridge) openShared(ctx context.Context, t *resourceserver.Token) (*session, error) {
	o := ownerOf(t)
	b.mu.Lock()
	s := b.shared[o] // one that runs has shown what it speaks, whatever others said
	starts := s == nil
	if starts && b.opts.Now().Before(b.legacyUntil) {
		b.mu.Unlock()
		return nil, errLegacy
	}
	if starts {
		s = newSession(b, o, "")
		b.shared[o] = s
	}
	b.touch(s, t)
	b.mu.Unlock()
	if starts {
		// Others wait for this start: that this client goes away must not fail it.
		go b.startShared(context.WithoutCancel(ctx), s)
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		b.release(s)
		return nil, ctx.Err()
	}
	if s.startErr != nil {
		b.release(s)
		return nil, s.startErr
	}
	return s, nil
}

func (b *Bridge) startShared(ctx context.Context, s *session) {
	defer close(s.ready)
	if s.startErr = b.reserve(ctx, s); s.startErr == nil {
		if s.startErr = s.start(); s.startErr != nil {
			b.forget(s)
		}
	}
	if s.startErr == nil {
		if s.startErr = s.probe(ctx); s.startErr != nil {
			s.end("it cannot serve clients of " + modernVersion)
		}
	}
	if s.startErr == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shared[s.owner] == s {
		delete(b.shared, s.owner)
	}
	if errors.Is(s.startErr, errLegacy) {
		b.legacyUntil = b.opts.Now().Add(legacyMemory)
	}
}

// find returns the session with this id when it is t's, which counts as used
// until release; nil otherwise.
func (b *Bridge) find(t *resourceserver.Token, id string) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[id]
	if s == nil || s.owner.person() != ownerOf(t).person() {
		return nil
	}
	b.touch(s, t)
	return s
}

// touch is called with mu held.
func (b *Bridge) touch(s *session, t *resourceserver.Token) {
	s.open++
	s.usedAt = b.opts.Now()
	switch {
	case t.ExpiresAt.IsZero():
		s.expires, s.forever = time.Time{}, true
	case !s.forever && t.ExpiresAt.After(s.expires):
		s.expires = t.ExpiresAt
	}
}

func (b *Bridge) release(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.open--
	s.usedAt = b.opts.Now()
}

// retire makes s unreachable; false when it was before.
func (b *Bridge) retire(s *session) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retireHeld(s)
}

// retireHeld is retire, with mu held.
func (b *Bridge) retireHeld(s *session) bool {
	was := s.ending
	s.ending = true
	delete(b.sessions, s.id)
	if b.shared[s.owner] == s {
		delete(b.shared, s.owner)
	}
	return !was
}

// forget stops counting s, whose process is gone.
func (b *Bridge) forget(s *session) {
	b.retire(s)
	b.mu.Lock()
	delete(b.all, s)
	b.mu.Unlock()
	close(s.gone)
}
