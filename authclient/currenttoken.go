package authclient

import (
	"context"

	"golang.org/x/oauth2"
)

// CurrentToken returns the access token that RoundTrip would send now: the stored one,
// refreshed when it has expired. It asks no person: where RoundTrip would send a
// request without a token, to hear what the server wants, the token is nil.
func (c *Client) CurrentToken(ctx context.Context) (*oauth2.Token, error) {
	g, err := c.usable(ctx)
	if err != nil || g == nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: g.AccessToken, TokenType: g.TokenType, Expiry: g.Expiry}, nil
}
