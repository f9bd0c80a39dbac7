package authclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// stepUp returns a grant with more scopes after a 403 insufficient_scope (rule C7).
// It never refreshes: that cannot grow. nil means that asking is of no use.
func (c *Client) stepUp(ctx context.Context, used string, ch challenge) (*grant, error) {
	seen := c.session.attempts()
	release, err := c.session.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	g, err := c.brought(ctx, func(g *grant) bool { return g.AccessToken != used && covers(g.Scopes, ch.scopes) })
	if err != nil || g != nil {
		return g, err
	}
	have, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	if have == nil {
		have = c.session.current()
	}
	var need []string
	if have != nil {
		need = slices.Clone(have.Scopes)
	}
	if len(ch.scopes) == 0 || covers(need, ch.scopes) {
		return nil, nil
	}
	need = union(need, ch.scopes)
	if err := c.session.failedSince(seen, c.o.Now()); err != nil {
		return nil, err
	}
	if c.o.Authorizer == nil && c.o.Machine == nil {
		return nil, fmt.Errorf("%w with more scopes: %s", ErrLoginRequired, c.o.Server)
	}
	if !c.session.mayStepUp(need) {
		return nil, nil
	}
	p, err := c.rediscover(ctx, ch)
	if err != nil {
		return nil, err
	}
	if have != nil && (have.Issuer != p.server.Issuer || have.Resource != p.resource) {
		// the server has moved: what was granted elsewhere is nothing to tell there (MM-13)
		if need, err = c.scopesFor(ctx, p, ch); err != nil {
			return nil, err
		}
	}
	return c.obtain(ctx, p, c.withOffline(p, need), request{used: used, covering: ch.scopes})
}

// mayStepUp counts that these scopes are asked for, and reports whether they may be
// again.
func (s *session) mayStepUp(scopes []string) bool {
	sorted := slices.Sorted(slices.Values(scopes))
	key := strings.Join(sorted, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.stepUps[key]; !known && len(s.stepUps) == maxDemands {
		return false
	}
	s.stepUps[key]++
	return s.stepUps[key] <= maxStepUps
}
