package authclient

import (
	"context"
	"slices"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// scopesFor selects the scopes of a first authorization: the challenge's, or else the
// caller's, or else all that the resource supports, or else none; besides those, the
// caller's and what an earlier grant for the same server had.
func (c *Client) scopesFor(ctx context.Context, p *place, ch challenge) ([]string, error) {
	scopes := ch.scopes
	if len(scopes) == 0 && len(c.o.Scopes) == 0 {
		scopes = p.scopes
	}
	scopes = union(scopes, c.o.Scopes)
	g, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	if g != nil && g.Issuer == p.server.Issuer && g.Resource == p.resource {
		scopes = union(scopes, g.Scopes)
	}
	return c.withOffline(p, scopes), nil
}

// withOffline adds offline_access where the server advertises it and a refresh token
// is of use.
func (c *Client) withOffline(p *place, scopes []string) []string {
	if c.o.Machine == nil && slices.Contains(p.server.ScopesSupported, oauth.OfflineAccess) {
		return union(scopes, []string{oauth.OfflineAccess})
	}
	return scopes
}

// covers reports whether have has all of want.
func covers(have, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
}

// union returns a with what b adds, in order.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
