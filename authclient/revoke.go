package authclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Logout revokes what is stored for the server and the account (RFC 7009) and
// forgets it. The registration stays, for the next Login. What could not be revoked
// is forgotten too, and reported. Nothing stored is no error.
func (c *Client) Logout(ctx context.Context) error {
	release, err := c.session.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	defer c.session.set(nil)
	rest := c.session.takeUnsaved() // it lives at the server, whatever is stored
	p, err := c.loadPointer(ctx)
	if err != nil || p == nil {
		return errors.Join(err, c.revoke(ctx, rest.grant))
	}
	unlock, err := c.o.Store.Lock(ctx, c.grantKey(*p))
	if err != nil {
		return err
	}
	g, err := c.loadGrant(ctx, *p)
	if rest.follows(g) {
		g = nil // it was rotated away
	}
	return errors.Join(err, c.revoke(ctx, rest.grant), c.revoke(ctx, g), c.o.Store.Delete(ctx, c.grantKey(*p)), c.o.Store.Delete(ctx, c.serverKey()), unlock())
}

// revoke sends the token that ends the most to the server that issued it. g may be nil.
func (c *Client) revoke(ctx context.Context, g *grant) error {
	if g == nil {
		return nil
	}
	token, hint := g.RefreshToken, "refresh_token"
	if token == "" {
		token, hint = g.AccessToken, "access_token"
	}
	if token == "" {
		return nil
	}
	as, err := c.issuerOf(ctx, g)
	if err != nil {
		return err
	}
	if as.RevocationEndpoint == "" {
		return errors.New("the authorization server revokes no tokens; what was issued works until it expires")
	}
	auth, err := c.authOf(ctx, as, g.ClientID)
	if err != nil {
		return err
	}
	a, err := c.endpoint.postForm(ctx, as, "revocation", as.RevocationEndpoint,
		tokenRequest{form: url.Values{"token": {token}, "token_type_hint": {hint}}, auth: auth})
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return readServerError("revocation", a, c.o.Now())
	}
	return nil
}

// issuerOf asks the grant's own issuer for its metadata, wherever the MCP server has
// moved since.
func (c *Client) issuerOf(ctx context.Context, g *grant) (*authorizationServer, error) {
	if p := c.session.knownPlace(c.o.Now()); p != nil && p.server.Issuer == g.Issuer {
		return p.server, nil
	}
	return c.endpoint.metadataOf(ctx, g.Issuer)
}
