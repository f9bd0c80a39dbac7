package authclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// maxReplay bounds the body of a request that is kept to be sent again.
const maxReplay = 1 << 20

// maxDrained bounds what is read of an answer that nobody wants, so that its
// connection can be used again.
const maxDrained = 64 << 10

// ErrBodyGone reports a request whose body is too large to be kept: authorization has
// been completed, and the caller has to send it again.
var ErrBodyGone = fmt.Errorf("authorized now, but the request's body, of more than %d bytes, is gone; send the request again", maxReplay)

// RoundTrip sends a request to the MCP server with a token. On 401 it gets one, on
// 403 insufficient_scope one with more scopes, and sends the request again. A
// request to any other place, or one that carries Authorization, goes out as it is.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	if !c.bearsToken(req) {
		return c.pass(req)
	}
	ctx := req.Context()
	body, err := newReplay(req)
	if err != nil {
		return nil, err
	}
	defer body.close()
	g, err := c.usable(ctx)
	if err != nil {
		return nil, err
	}
	for t := (turns{}); ; {
		resp, err := c.send(req, body, g)
		if err != nil || req.Method == http.MethodDelete && g == nil {
			return resp, err // the end of an MCP session: nobody is asked to log in for it
		}
		next, err := c.after(ctx, resp, g, &t)
		if err == nil && next == nil {
			resp.Request = req // who prints it prints no token
			return resp, nil
		}
		drain(resp)
		if err == nil && !body.again() {
			err = ErrBodyGone
		}
		if err != nil {
			return nil, err
		}
		g = next
	}
}

// pass sends a request as it is: by the MCP server's transport to its host, and
// guarded to where the server may have redirected.
func (c *Client) pass(req *http.Request) (*http.Response, error) {
	req, err := redirected(req)
	if err != nil {
		return nil, err
	}
	if hostPort(req.URL) == c.endpoint.ownHost {
		return c.endpoint.own.RoundTrip(req)
	}
	if err := netguard.CheckHost(c.endpoint.reach, req.URL.Hostname()); err != nil {
		return nil, refuseBody(req, "%s is a host that is not talked to", quoted(origin(req.URL)))
	}
	return c.endpoint.foreign.RoundTrip(req)
}

// turns counts what one request has been through.
type turns struct {
	renewed, steppedUp int
	demanded           []string // the scopes of the last step
}

// Most that one request goes through: a refresh and then a person; two steps up
// (rule C7).
const (
	maxRenewals = 2
	maxSteps    = 2
)

var errInsatiable = errors.New("whatever was allowed, the server asked for more")

// after returns the grant with which the request is sent again; nil when the answer is
// the caller's.
func (c *Client) after(ctx context.Context, resp *http.Response, g *grant, t *turns) (*grant, error) {
	used := ""
	if g != nil {
		used = g.AccessToken
	}
	ch := readChallenge(resp.Header)
	switch {
	case g != nil && g.TokenType == typeDPoP && asksForNonce(resp):
		return nil, nil // it has had two proofs, and is not content with a nonce of its own
	case resp.StatusCode == http.StatusUnauthorized:
		if t.renewed++; t.renewed > maxRenewals {
			return nil, nil
		}
		return c.renew(ctx, used, ch)
	case used != "":
		c.session.accepted(used)
	}
	if resp.StatusCode == http.StatusForbidden && ch.err == "insufficient_scope" {
		demanded := t.demanded
		t.demanded = ch.scopes
		if t.steppedUp++; t.steppedUp > maxSteps {
			if !slices.Equal(demanded, ch.scopes) {
				c.session.ended(errInsatiable, c.o.Now()) // the next request opens no windows either
			}
			return nil, nil
		}
		return c.stepUp(ctx, used, ch)
	}
	return nil, nil
}

// Authorize does what RoundTrip does on an answer of 401 or 403 insufficient_scope to
// req, for SDKs that send their requests by themselves: afterwards the TokenSource has
// a token to try again with. A refusal that no token mends is an error, and ErrRefused
// an answer from elsewhere than the MCP server, which gets no token.
func (c *Client) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if !c.bears(req.URL) || resp.Request != nil && !c.bears(resp.Request.URL) {
		return refused("it is not the MCP server %s that answered %d, but %s", quoted(c.o.Server), resp.StatusCode, quoted(origin(answered(req, resp))))
	}
	g := c.session.current()
	if g != nil && req.Header.Get("Authorization") != g.TokenType+" "+g.AccessToken {
		g = &grant{AccessToken: bearerOf(req)}
	}
	next, err := c.after(ctx, resp, g, &turns{})
	if err == nil && next == nil {
		err = fmt.Errorf("the server answered %d, and another token would be answered so too", resp.StatusCode)
	}
	return err
}

// answered is where the answer is from, which a redirect may have changed.
func answered(req *http.Request, resp *http.Response) *url.URL {
	if resp.Request != nil {
		return resp.Request.URL
	}
	return req.URL
}

func bearerOf(req *http.Request) string {
	value := req.Header.Get("Authorization")
	for i := range len(value) {
		if value[i] == ' ' {
			return value[i+1:]
		}
	}
	return ""
}

// send sends the request once, or twice when the first lacked the nonce of its proof
// (RFC 9449 §9).
func (c *Client) send(req *http.Request, body *replay, g *grant) (*http.Response, error) {
	if g == nil {
		return c.sendOnce(req, body, nil, nil, "")
	}
	key, err := c.proverOf(g)
	if err != nil {
		return nil, err
	}
	nonce := c.session.nonces.get(req.URL)
	resp, err := c.sendOnce(req, body, g, key, nonce)
	if err != nil || g.TokenType != typeDPoP {
		return resp, err
	}
	if fresh := c.session.nonces.keep(req.URL, resp.Header, nonce); !fresh || !asksForNonce(resp) {
		return resp, nil
	}
	drain(resp)
	if !body.again() {
		return nil, ErrBodyGone
	}
	nonce = c.session.nonces.get(req.URL)
	if resp, err = c.sendOnce(req, body, g, key, nonce); err == nil {
		c.session.nonces.keep(req.URL, resp.Header, nonce)
	}
	return resp, err
}

func (c *Client) sendOnce(req *http.Request, body *replay, g *grant, key *proofKey, nonce string) (*http.Response, error) {
	out := req.Clone(req.Context())
	var err error
	if out.Body, err = body.next(); err != nil {
		return nil, fmt.Errorf("send the request again: %w", err)
	}
	switch {
	case g == nil:
	case g.TokenType == typeDPoP:
		if key == nil {
			err = errors.New("the stored token is bound to a key that is not there")
			break
		}
		err = key.present(out, Secret(g.AccessToken), nonce, c.o.Now())
	default:
		out.Header.Set("Authorization", g.TokenType+" "+g.AccessToken)
	}
	if err != nil {
		return nil, err
	}
	return c.endpoint.own.RoundTrip(out)
}

// drain reads what is short, so that the connection can be used again, and closes. A
// stream is not waited for.
func drain(resp *http.Response) {
	if resp.ContentLength >= 0 && resp.ContentLength <= maxDrained {
		_, _ = io.CopyN(io.Discard, resp.Body, resp.ContentLength)
	}
	_ = resp.Body.Close()
}

// CloseIdleConnections closes connections that nobody uses, as http.Client's does.
func (c *Client) CloseIdleConnections() {
	for _, via := range []http.RoundTripper{c.endpoint.own, c.endpoint.foreign} {
		if closer, ok := via.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
		}
	}
}
