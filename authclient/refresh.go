package authclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"
)

// refreshTimeout bounds a refresh, which the end of the request that wanted it does
// not interrupt: a rotated token that nobody reads is a grant that ends.
const refreshTimeout = 60 * time.Second

// refreshAt refreshes g with its own authorization server (rules C2, C5, C6). p is
// where the MCP server says that tokens come from, nil to find out: when that is not
// where g is from, g is not sent (MM-13). unwanted is the access token that will not do:
// another one that is stored meanwhile will. nil means that g can no longer be
// refreshed.
func (c *Client) refreshAt(ctx context.Context, g *grant, unwanted string, p *place) (*grant, error) {
	if err := c.session.resting(c.o.Now()); err != nil {
		return nil, err
	}
	var err error
	if p == nil {
		if p, err = c.placeFor(ctx, challenge{}); err != nil {
			return nil, err
		}
	}
	if p.server.Issuer != g.Issuer || p.resource != g.Resource {
		c.o.Log.WarnContext(ctx, "the server has moved to another authorization server; its tokens are not sent there",
			slog.String("from", g.Issuer), slog.String("to", p.server.Issuer))
		return nil, nil
	}
	key := c.grantKey(c.pointerOf(g))
	unlock, err := c.o.Store.Lock(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("lock the stored tokens: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	next, err := c.refreshLocked(ctx, g, unwanted, p.server)
	if unlockErr := unlock(); unlockErr != nil {
		c.o.Log.WarnContext(ctx, "could not unlock the stored tokens", slog.Any("error", unlockErr))
	}
	return next, err
}

// refreshLocked reads the store again before it asks: whoever had the lock before
// may have refreshed.
func (c *Client) refreshLocked(ctx context.Context, g *grant, unwanted string, as *authorizationServer) (*grant, error) {
	now, err := c.loadGrant(ctx, c.pointerOf(g))
	if err != nil || now == nil {
		return nil, err
	}
	if now.AccessToken != unwanted && now.fresh(c.o.Now()) {
		c.session.set(now)
		return now, nil
	}
	if now.RefreshToken == "" || c.session.isSpent(now.RefreshToken) {
		return nil, nil
	}
	next, err := c.sendRefresh(ctx, now, as)
	if err != nil {
		return c.afterRefused(ctx, now, err)
	}
	c.session.rested()
	if err := c.saveGrant(ctx, next); err != nil {
		c.session.keepUnsaved(unsaved{next, now})
		return nil, err
	}
	c.session.setNew(next, false)
	c.o.Log.InfoContext(ctx, "token refreshed", slog.String("issuer", g.Issuer), slog.String("resource", g.Resource))
	return next, nil
}

// errUnknownClient reports a grant whose client this program no longer has.
var errUnknownClient = errors.New("the client that the stored tokens belong to is not configured any more")

func (c *Client) sendRefresh(ctx context.Context, g *grant, as *authorizationServer) (*grant, error) {
	auth, err := c.authOf(ctx, as, g.ClientID)
	if err != nil {
		return nil, err
	}
	key, err := c.proverOf(g)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}}
	if g.Resource != "" {
		form.Set("resource", g.Resource) // rule C2
	}
	began := c.o.Now()
	r, err := c.endpoint.token(ctx, as, tokenRequest{form: form, auth: auth, prover: proving(key)})
	if err != nil {
		return nil, err
	}
	return c.follow(g, r, began)
}

// follow makes the grant that comes after g. A server that does not rotate answers
// without a refresh token, one that grants the same without a scope.
func (c *Client) follow(g *grant, r *tokenResponse, began time.Time) (*grant, error) {
	if err := c.checkType(r, g.Key != nil); err != nil {
		return nil, err
	}
	next := *g
	next.AccessToken, next.TokenType, next.Issued, next.Expiry = r.AccessToken.Reveal(), r.TokenType, began, r.Expiry
	if r.RefreshToken != "" {
		next.RefreshToken = r.RefreshToken.Reveal()
	}
	if r.Scope != nil {
		next.Scopes = r.Scope
	}
	return &next, nil
}

// afterRefused decides what a failed refresh means (rule C5). nil, nil is: ask anew.
func (c *Client) afterRefused(ctx context.Context, g *grant, err error) (*grant, error) {
	var refused *ServerError
	if errors.Is(err, errUnknownClient) {
		return nil, nil
	}
	if !errors.As(err, &refused) {
		var unanswered *UnansweredError
		if errors.As(err, &unanswered) {
			c.session.rest(err, 0, c.o.Now())
		}
		return nil, err
	}
	if refused.Temporary() {
		c.session.rest(err, refused.RetryAfter, c.o.Now())
		return nil, err
	}
	c.o.Log.WarnContext(ctx, "the grant can no longer be refreshed", slog.String("issuer", g.Issuer), slog.Any("error", err))
	switch refused.Code {
	case "invalid_grant":
		// rule C6: a store whose lock does not reach everybody may have a newer one
		if next, err := c.loadGrant(ctx, c.pointerOf(g)); err != nil || next != nil && next.RefreshToken != g.RefreshToken {
			c.session.set(next)
			return next, err
		}
		return nil, c.dropTokens(ctx, g)
	case "invalid_client", "unauthorized_client":
		forgot, storeErr := c.forgetRegistration(ctx, g.Issuer, g.ClientID)
		// A client by its document becomes known again at the next login. One of the
		// caller's does not: its secret is to be mended, not the login.
		if again := forgot || g.ClientID == c.o.ClientMetadataURL; storeErr != nil || !again {
			c.session.rest(err, 0, c.o.Now())
			return nil, errors.Join(err, storeErr)
		}
		return nil, c.dropTokens(ctx, g)
	}
	c.session.spend(g.RefreshToken)
	return nil, nil
}

// dropTokens keeps what was granted, for the next authorization to ask for the same.
func (c *Client) dropTokens(ctx context.Context, g *grant) error {
	empty := *g
	empty.AccessToken, empty.RefreshToken, empty.Key = "", "", nil
	c.session.set(nil)
	return save(ctx, c.o.Store, c.grantKey(c.pointerOf(g)), &empty)
}
