package authclient

import (
	"context"
	"fmt"
	"log/slog"
)

// unsaved is a rotated grant that could not be stored: it must not be used, and must
// not be lost.
type unsaved struct {
	grant *grant // nil: there is none
	from  *grant // what was stored, and refreshed
}

// follows reports whether stored is still what the grant came from. Otherwise somebody
// has logged in, logged out or refreshed since, and the store is right.
func (u unsaved) follows(stored *grant) bool {
	return u.grant != nil && stored != nil && stored.RefreshToken == u.from.RefreshToken && stored.AccessToken == u.from.AccessToken
}

func (s *session) keepUnsaved(u unsaved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved = u
}

func (s *session) takeUnsaved() unsaved {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unsaved
	s.unsaved = unsaved{}
	return u
}

// saveRest stores what could not be stored before, unless the store has moved on (rule
// C6).
func (c *Client) saveRest(ctx context.Context) error {
	u := c.session.takeUnsaved()
	if u.grant == nil {
		return nil
	}
	err := c.withLock(ctx, c.pointerOf(u.grant), func(ctx context.Context) error { return c.saveUnsaved(ctx, u) })
	if err != nil {
		c.session.keepUnsaved(u)
	}
	return err
}

func (c *Client) saveUnsaved(ctx context.Context, u unsaved) error {
	p, err := c.loadPointer(ctx)
	if err != nil {
		return err
	}
	stored, err := c.loadGrant(ctx, c.pointerOf(u.grant))
	if err != nil {
		return err
	}
	if p == nil || *p != c.pointerOf(u.grant) || !u.follows(stored) {
		c.o.Log.InfoContext(ctx, "a refreshed token is dropped: the stored login has changed since", slog.String("issuer", u.grant.Issuer))
		return nil
	}
	if err := c.saveGrant(ctx, u.grant); err != nil {
		return err
	}
	c.session.setNew(u.grant, false)
	return nil
}

// withLock runs fn while nobody else changes the grant that p names. Once fn has begun,
// the end of ctx does not interrupt it.
func (c *Client) withLock(ctx context.Context, p pointer, fn func(context.Context) error) error {
	unlock, err := c.o.Store.Lock(ctx, c.grantKey(p))
	if err != nil {
		return fmt.Errorf("lock the stored tokens: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	err = fn(ctx)
	if unlockErr := unlock(); unlockErr != nil {
		c.o.Log.WarnContext(ctx, "could not unlock the stored tokens", slog.Any("error", unlockErr))
	}
	return err
}
