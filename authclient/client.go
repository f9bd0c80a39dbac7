package authclient

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Client calls one MCP server for one account. It is an http.RoundTripper, and
// safe for concurrent use.
type Client struct {
	o        Options
	server   *url.URL
	name     string // the server in its canonical form, for keys
	endpoint *endpoint
	session  session
}

// New returns a Client, or all that is wrong with o. It asks nobody.
func New(o Options) (*Client, error) {
	u, err := o.check()
	if err != nil {
		return nil, err
	}
	name, err := oauth.CanonicalResource(o.Server)
	if err != nil {
		return nil, fmt.Errorf("authclient: %w", err)
	}
	if o.Store == nil {
		o.Store = NewMemoryStore()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.DPoP = o.DPoP || o.RequireDPoP
	return &Client{o: o, server: u, name: name, endpoint: newEndpoint(u, o), session: newSession()}, nil
}

func newEndpoint(server *url.URL, o Options) *endpoint {
	reach := netguard.Public
	switch {
	case o.AllowPrivate:
		reach = netguard.Private
	case netguard.IsLoopback(server.Hostname()):
		reach = netguard.Loopback
	}
	e := &endpoint{own: o.Transport, foreign: o.Transport, ownHost: hostPort(server), reach: reach,
		tolerateSlash: o.TolerateIssuerSlash, now: o.Now, log: o.Log, nonces: newNonces()}
	if o.Transport == nil {
		e.own, e.foreign = newOwnTransport(), newForeignTransport(reach)
	}
	return e
}

// HTTPClient returns an http.Client whose transport is c. Do not give it a Timeout, nor
// a first request a short context: a request that opens the browser lasts as long as
// the person does. Or call Login before.
func (c *Client) HTTPClient() *http.Client { return &http.Client{Transport: c} }

// TokenSource returns a source of access tokens for the MCP server: the stored one,
// refreshed when it has expired, or a new one from the Authorizer or the Machine.
// The tokens carry no refresh token, since only c may use it. A token of type DPoP
// is of no use without c, which makes the proofs.
func (c *Client) TokenSource(ctx context.Context) oauth2.TokenSource { return tokenSource{c, ctx} }

type tokenSource struct {
	c   *Client
	ctx context.Context
}

// Token implements oauth2.TokenSource.
func (s tokenSource) Token() (*oauth2.Token, error) {
	g, err := s.c.usable(s.ctx)
	if err == nil && g == nil {
		g, err = s.c.acquire(s.ctx, false)
	}
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: g.AccessToken, TokenType: g.TokenType, Expiry: g.Expiry}, nil
}

// Login gets a new token, whatever is stored, and stores it.
func (c *Client) Login(ctx context.Context) error {
	_, err := c.acquire(ctx, true)
	return err
}
