package authclient

import (
	"context"
	"time"
)

// Status is what is stored for an MCP server and an account, without its secrets.
type Status struct {
	// Issuer is the authorization server's issuer identifier.
	Issuer string
	// Resource is the resource that the token is for; "" when none was asked for.
	Resource string
	// ClientID is the client that the token was issued to.
	ClientID string
	// Scopes are those granted, as far as the server said.
	Scopes []string
	// TokenType is Bearer or DPoP.
	TokenType string
	// Expiry is when the access token ends; zero when the server did not say.
	Expiry time.Time
	// Refreshable reports that there is a refresh token.
	Refreshable bool
}

// Status returns what is stored, ErrNotFound when that is nothing. It asks nobody,
// so what it returns may have been ended at the server.
func (c *Client) Status(ctx context.Context) (Status, error) {
	p, err := c.loadPointer(ctx)
	if err != nil {
		return Status{}, err
	}
	if p == nil {
		return Status{}, ErrNotFound
	}
	g, err := c.loadGrant(ctx, *p)
	if err != nil {
		return Status{}, err
	}
	if g == nil {
		return Status{}, ErrNotFound
	}
	return Status{Issuer: g.Issuer, Resource: g.Resource, ClientID: g.ClientID, Scopes: append([]string(nil), g.Scopes...),
		TokenType: g.TokenType, Expiry: g.Expiry, Refreshable: g.RefreshToken != ""}, nil
}
