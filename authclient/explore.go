package authclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// explore finds out where tokens come from without a request of the caller's: it asks
// the MCP server itself, as a client of MCP would begin.
func (c *Client) explore(ctx context.Context) (*place, challenge, error) {
	ch, status, err := c.probe(ctx, http.MethodGet)
	if err != nil {
		return nil, challenge{}, err
	}
	if status != http.StatusUnauthorized { // some answer GET with 405 before they look for a token
		if ch, status, err = c.probe(ctx, http.MethodPost); err != nil {
			return nil, challenge{}, err
		}
	}
	p, err := c.rediscover(ctx, ch)
	if err == nil && p.server.Legacy {
		err = c.unprotected(status)
	}
	return p, ch, err
}

// unprotected says what it means that a server, which names no authorization server,
// answers with this status who has no token.
func (c *Client) unprotected(status int) error {
	switch {
	case status == http.StatusUnauthorized:
		return nil
	case status == http.StatusNotFound, status >= 300 && status < 400, status >= 500:
		return fmt.Errorf("%s answers %d and names no authorization server: is it the address of an MCP server?", quoted(c.o.Server), status)
	}
	return fmt.Errorf("%w: %s", ErrNotProtected, c.o.Server)
}

// pingMessage is a request that every MCP server answers, and that changes nothing.
const pingMessage = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// probe asks the MCP server without a token, and returns its challenge and status.
func (c *Client) probe(ctx context.Context, method string) (challenge, int, error) {
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(pingMessage)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.o.Server, body)
	if err != nil {
		return challenge{}, 0, fmt.Errorf("ask the server: %w", err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.endpoint.own.RoundTrip(req)
	if err != nil {
		return challenge{}, 0, &UnansweredError{Endpoint: "MCP server", Origin: origin(c.server), Err: err}
	}
	_ = resp.Body.Close() // it may be a stream without end
	if resp.StatusCode != http.StatusUnauthorized {
		return challenge{}, resp.StatusCode, nil
	}
	return readChallenge(resp.Header), resp.StatusCode, nil
}
