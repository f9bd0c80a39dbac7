package authclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// authorize asks the person. Another process that asks for the same server meanwhile
// waits, and finds what this one brought.
func (c *Client) authorize(ctx context.Context, p *place, scopes []string, r request) (*grant, error) {
	if c.o.Authorizer == nil {
		return nil, fmt.Errorf("%w: %s", ErrLoginRequired, c.o.Server)
	}
	unlock, err := c.o.Store.Lock(ctx, c.serverKey())
	if err != nil {
		return nil, fmt.Errorf("lock the stored tokens: %w", err)
	}
	defer func() {
		if err := unlock(); err != nil {
			c.o.Log.WarnContext(ctx, "could not unlock the stored tokens", slog.Any("error", err))
		}
	}()
	if !r.anew {
		g, err := c.brought(ctx, func(g *grant) bool { return g.AccessToken != r.used && covers(g.Scopes, r.covering) })
		if err != nil || g != nil {
			return g, err
		}
	}
	g, err := c.attempt(ctx, p, scopes)
	if c.registrationRefused(ctx, err, p.server) { // rule C5: register anew, once
		g, err = c.attempt(ctx, p, scopes)
	}
	if err != nil && r.covering == nil {
		err = errors.Join(err, c.forgetScopes(ctx, p, err))
	}
	if ctx.Err() == nil { // who went away says nothing of the person
		c.session.ended(err, c.o.Now())
	}
	return g, err
}

// registrationRefused forgets a client that dynamic registration made and that the
// server seems not to know any more, and reports whether to try again at once.
func (c *Client) registrationRefused(ctx context.Context, err error, as *authorizationServer) bool {
	var refused *clientRefusedError
	if !errors.As(err, &refused) {
		return false
	}
	forgot, storeErr := c.forgetRegistration(ctx, as.Issuer, refused.clientID)
	// who did not come back is not asked once more; the next attempt begins anew
	return forgot && storeErr == nil && !errors.Is(err, ErrNoAnswer)
}

// forgetScopes forgets what an earlier grant had when the server no longer knows some
// of it: the next attempt asks for what the MCP server says alone.
func (c *Client) forgetScopes(ctx context.Context, p *place, err error) error {
	var refused *ServerError
	if !errors.As(err, &refused) || refused.Code != "invalid_scope" {
		return nil
	}
	g, err := c.stored(ctx)
	if err != nil || g == nil || g.Issuer != p.server.Issuer || len(g.Scopes) == 0 {
		return err
	}
	at := c.pointerOf(g)
	return c.withLock(ctx, at, func(ctx context.Context) error {
		g, err := c.loadGrant(ctx, at) // who had the lock before may have refreshed
		if err != nil || g == nil {
			return err
		}
		without := *g
		without.Scopes = nil
		return save(ctx, c.o.Store, c.grantKey(at), &without)
	})
}

// clientRefusedError is the error of an attempt whose client, from an earlier
// registration, the server does not know, or whose person never came back: a server
// cannot redirect for a client that it does not know (OAuth 2.1 §4.1.2.1).
type clientRefusedError struct {
	clientID string
	err      error
}

func (e *clientRefusedError) Error() string { return e.err.Error() }
func (e *clientRefusedError) Unwrap() error { return e.err }

// attempt makes one authorization, from the Authorizer to the stored grant.
func (c *Client) attempt(ctx context.Context, p *place, scopes []string) (*grant, error) {
	a, err := c.begin(ctx, p.server.Issuer)
	if err != nil {
		return nil, fmt.Errorf("prepare the login: %w", err)
	}
	defer func() { _ = a.Close() }()
	check := checkCodeFlow
	if a.RedirectURI() == "" {
		check = checkDeviceFlow
	}
	if err := check(p.server); err != nil {
		return nil, err
	}
	id, err := c.clientFor(ctx, p.server, a.RedirectURI())
	if err != nil {
		return nil, err
	}
	key, stored, err := c.newProver(p)
	if err != nil {
		return nil, err
	}
	w := &wanted{place: p, client: id, scopes: scopes, key: key}
	r, began, err := c.redeem(ctx, a, w)
	if err != nil {
		return nil, refusedFor(id, err)
	}
	if err := c.checkType(r, key != nil); err != nil {
		return nil, err
	}
	g := &grant{Issuer: p.server.Issuer, Resource: p.resource, ClientID: id.id, AccessToken: r.AccessToken.Reveal(),
		TokenType: r.TokenType, RefreshToken: r.RefreshToken.Reveal(), Issued: began, Expiry: r.Expiry, Scopes: scopes}
	if r.Scope != nil {
		g.Scopes = r.Scope
	}
	if r.TokenType == typeDPoP || key != nil && r.RefreshToken != "" {
		g.Key = stored // RFC 9449 §5: a public client's refresh token is bound too
	}
	return g, c.keep(ctx, g)
}

// refusedFor marks an error that a stale registration explains.
func refusedFor(id *identity, err error) error {
	if !id.kept {
		return err
	}
	code := ""
	var refused *ServerError
	if errors.As(err, &refused) {
		code = refused.Code
	}
	if code == "invalid_client" || code == "unauthorized_client" || errors.Is(err, ErrNoAnswer) {
		return &clientRefusedError{id.id, err}
	}
	return err
}

// wanted is what one attempt asks for.
type wanted struct {
	place  *place
	client *identity
	scopes []string
	key    *proofKey
}

// checkCodeFlow refuses a server without the code flow or PKCE.
func checkCodeFlow(as *authorizationServer) error {
	if as.AuthorizationEndpoint == "" || as.TokenEndpoint == "" {
		return fmt.Errorf("the authorization server %s has no authorization or no token endpoint", quoted(as.Issuer))
	}
	return checkPKCE(as)
}

// redirector is an Authorizer that can come back to a redirect URI registered before.
type redirector interface {
	beginAt(ctx context.Context, redirectURI string) (Attempt, error)
}

// begin prefers the redirect URI of an earlier registration, so that the client need
// not be registered again: not every server ignores the port of a loopback URI.
func (c *Client) begin(ctx context.Context, issuer string) (Attempt, error) {
	again, ok := c.o.Authorizer.(redirector)
	if !ok {
		return c.o.Authorizer.Begin(ctx)
	}
	r, err := c.loadRegistration(ctx, issuer)
	if err != nil || r == nil || r.RedirectURI == "" {
		return c.o.Authorizer.Begin(ctx)
	}
	return again.beginAt(ctx, r.RedirectURI)
}

// keep stores a new grant and makes it the current one. Whoever refreshes the old one
// at this moment is waited for: what it stores must not be the last.
func (c *Client) keep(ctx context.Context, g *grant) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	unlock, err := c.o.Store.Lock(ctx, c.grantKey(c.pointerOf(g)))
	if err != nil {
		return fmt.Errorf("lock the stored tokens: %w", err)
	}
	err = c.saveGrant(ctx, g)
	if unlockErr := unlock(); err == nil && unlockErr != nil {
		c.o.Log.WarnContext(ctx, "could not unlock the stored tokens", slog.Any("error", unlockErr))
	}
	if err != nil {
		return err
	}
	c.session.rested()
	c.session.setNew(g, true)
	c.o.Log.InfoContext(ctx, "access granted", slog.String("issuer", g.Issuer), slog.String("resource", g.Resource),
		slog.Any("scopes", g.Scopes))
	return nil
}
