// Package mcpsdk joins authclient with the official Go SDK of the Model Context
// Protocol, for programs that configure a transport's OAuthHandler.
//
// A program that can configure the transport's http.Client gives it
// (*authclient.Client).HTTPClient instead and needs nothing of this package. That also
// does what an OAuthHandler cannot: DPoP, and both a login and a step-up for one
// request.
package mcpsdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"

	"github.com/ostiary-auth/ostiary/authclient"
)

// ErrDPoP reports a token that only the http.Client of authclient can send.
var ErrDPoP = errors.New("the token is bound to a key (DPoP), which an OAuthHandler cannot prove to have: use authclient's HTTPClient")

// Handler returns an OAuthHandler that gets its tokens from c. Handlers of one Client
// share its tokens.
//
// It is the SDK that sends them, wherever the transport's endpoint is and its
// http.Client is redirected: the endpoint has to be c's server, and the http.Client one
// with c.CheckRedirect. Another server that asks for a token is told nothing.
func Handler(c *authclient.Client) auth.OAuthHandler { return &handler{c} }

type handler struct {
	client *authclient.Client
}

// TokenSource implements auth.OAuthHandler. It asks no person, since the SDK holds a
// lock: without a token the request goes out as it is, and Authorize hears the answer.
func (h *handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	token, err := h.client.CurrentToken(ctx)
	if err != nil || token == nil {
		return nil, err
	}
	if token.TokenType != "Bearer" {
		return nil, ErrDPoP
	}
	return oauth2.StaticTokenSource(token), nil
}

// Authorize implements auth.OAuthHandler.
func (h *handler) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_ = resp.Body.Close() // unread: it may have no end
	if err := h.client.Authorize(ctx, req, resp); err != nil {
		return fmt.Errorf("authorize: %w", err)
	}
	return nil
}
