package authclient

import (
	"context"
	"log/slog"
)

// usable returns a grant whose access token can be sent, nil when there is none: the
// request then goes without, and the server's challenge says what it wants.
func (c *Client) usable(ctx context.Context) (*grant, error) {
	if g := c.session.current(); g.fresh(c.o.Now()) {
		return g, nil
	}
	release, err := c.session.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return c.revive(ctx)
}

// revive returns the stored grant, refreshed when it has expired.
func (c *Client) revive(ctx context.Context) (*grant, error) {
	if c.o.Machine != nil {
		return c.reviveMachine(ctx)
	}
	g, err := c.stored(ctx)
	if err != nil || g == nil {
		return nil, err
	}
	if g.fresh(c.o.Now()) {
		c.session.set(g)
		return g, nil
	}
	if g.RefreshToken == "" {
		return c.whileAlive(g), nil
	}
	next, err := c.refreshAt(ctx, g, g.AccessToken, nil)
	if alive := c.whileAlive(g); err != nil && alive != nil {
		c.o.Log.WarnContext(ctx, "could not refresh; the access token still lives", slog.Any("error", err))
		return alive, nil
	}
	return next, err
}

// whileAlive returns g if its access token has not ended.
func (c *Client) whileAlive(g *grant) *grant {
	if g.alive(c.o.Now()) {
		return g
	}
	return nil
}

// reviveMachine gets the next token as the last one was got. The first waits for the
// server's challenge.
func (c *Client) reviveMachine(ctx context.Context) (*grant, error) {
	g := c.session.current()
	if g == nil || g.fresh(c.o.Now()) {
		return g, nil
	}
	p, err := c.placeFor(ctx, challenge{})
	if err != nil {
		return nil, err
	}
	return c.askMachine(ctx, p, g.Scopes)
}

// stored returns the grant as the store has it now; another process may have changed
// it. nil is none.
func (c *Client) stored(ctx context.Context) (*grant, error) {
	if c.o.Machine != nil { // tokens of machines are not stored
		return c.session.current(), nil
	}
	if err := c.saveRest(ctx); err != nil {
		return nil, err
	}
	p, err := c.loadPointer(ctx)
	if err != nil || p == nil {
		return nil, err
	}
	return c.loadGrant(ctx, *p)
}

// placeFor discovers, or returns what was found lately when there is no challenge.
func (c *Client) placeFor(ctx context.Context, ch challenge) (*place, error) {
	if p := c.session.knownPlace(c.o.Now()); p != nil && ch.resourceMetadata == "" {
		return p, nil
	}
	ch = c.session.complete(ch)
	p, err := c.discover(ctx, ch)
	if err == nil {
		c.session.remember(ch)
		c.session.setPlace(p, c.o.Now())
	}
	return p, err
}

// rediscover asks anew, since the server has just refused.
func (c *Client) rediscover(ctx context.Context, ch challenge) (*place, error) {
	c.session.setPlace(nil, c.o.Now())
	return c.placeFor(ctx, ch)
}

// renew returns another grant after the server refused the access token used, "" for
// a request without one. nil means that another would be refused too.
func (c *Client) renew(ctx context.Context, used string, ch challenge) (*grant, error) {
	seen := c.session.attempts()
	release, err := c.session.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	g, err := c.brought(ctx, func(g *grant) bool { return g.AccessToken != used })
	if err != nil || g != nil {
		return g, err
	}
	fresh, asked := c.session.refusedNew(used)
	if asked {
		c.o.Log.WarnContext(ctx, "the server refuses a new access token")
		return nil, nil
	}
	p, err := c.rediscover(ctx, ch)
	if err != nil {
		return nil, err
	}
	if c.o.Machine == nil && !fresh {
		if g, err = c.refreshStored(ctx, used, p); err != nil || g != nil {
			return g, err
		}
	}
	if err := c.session.failedSince(seen, c.o.Now()); err != nil {
		return nil, err
	}
	scopes, err := c.scopesFor(ctx, p, ch)
	if err != nil {
		return nil, err
	}
	return c.obtain(ctx, p, scopes, request{used: used})
}

// brought returns a grant that somebody else has got meanwhile, in this process or
// another.
func (c *Client) brought(ctx context.Context, good func(*grant) bool) (*grant, error) {
	if g := c.session.current(); g.fresh(c.o.Now()) && good(g) {
		return g, nil
	}
	g, err := c.stored(ctx)
	if err != nil || !g.fresh(c.o.Now()) || !good(g) {
		return nil, err
	}
	c.session.set(g)
	return g, nil
}

func (c *Client) refreshStored(ctx context.Context, used string, p *place) (*grant, error) {
	g, err := c.stored(ctx)
	if err != nil || g == nil || g.RefreshToken == "" {
		return nil, err
	}
	return c.refreshAt(ctx, g, used, p)
}

// acquire gets a grant without a request that was refused. anew asks in any case.
func (c *Client) acquire(ctx context.Context, anew bool) (*grant, error) {
	seen := c.session.attempts()
	release, err := c.session.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if !anew {
		if err := c.session.failedSince(seen, c.o.Now()); err != nil {
			return nil, err
		}
		if g, err := c.brought(ctx, func(*grant) bool { return true }); err != nil || g != nil {
			return g, err
		}
	}
	p, ch, err := c.explore(ctx)
	if err != nil {
		return nil, err
	}
	scopes, err := c.scopesFor(ctx, p, ch)
	if err != nil {
		return nil, err
	}
	return c.obtain(ctx, p, scopes, request{anew: anew})
}

// request says what a new grant is wanted for.
type request struct {
	used     string   // the access token that will not do
	covering []string // what it must cover to do
	anew     bool     // ask even if another process has got one
}

// obtain asks the machine identity or the person.
func (c *Client) obtain(ctx context.Context, p *place, scopes []string, r request) (*grant, error) {
	if c.o.Machine != nil {
		return c.askMachine(ctx, p, scopes)
	}
	return c.authorize(ctx, p, scopes, r)
}
