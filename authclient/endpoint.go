package authclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

const (
	maxBody         = 1 << 20
	endpointTimeout = 30 * time.Second
	maxRedirects    = 3
)

// endpoint sends every request that goes to an authorization server, or for a
// document that a server named: what may be asked, how much is read and how long is
// decided here alone (rules C8 and C9). Its errors hold no secret.
type endpoint struct {
	// own reaches the MCP server's host, which the caller has named: any address.
	own http.RoundTripper
	// foreign reaches hosts that servers name.
	foreign http.RoundTripper
	// ownHost is the MCP server's host:port.
	ownHost string
	reach   netguard.Reach
	// tolerateSlash is Options.TolerateIssuerSlash.
	tolerateSlash bool
	now           func() time.Time
	log           *slog.Logger
	// nonces are those of authorization servers.
	nonces *nonces
}

// answer is what was answered, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
	// sent are the secrets of the request, which an error must not repeat.
	sent []string
}

// errTooLarge reports a body beyond maxBody.
var errTooLarge = fmt.Errorf("the answer is larger than %d bytes", maxBody)

// checkURL parses a URL that a server names, and refuses what may not be asked.
func (e *endpoint) checkURL(what, raw string) (*url.URL, error) {
	u, err := parseURL(what, raw)
	if err != nil {
		return nil, err
	}
	if hostPort(u) == e.ownHost {
		return u, nil
	}
	if err := netguard.CheckHost(e.reach, u.Hostname()); err != nil {
		return nil, refusedUnless(e.lifted(u), "the %s %s is on a host that is not talked to", what, quoted(raw))
	}
	return u, nil
}

// lifted is ErrPrivateAddress where Options.AllowPrivate makes a difference: not for
// hosts that are refused with it too.
func (e *endpoint) lifted(u *url.URL) error {
	if e.reach == netguard.Private || netguard.CheckHost(netguard.Private, u.Hostname()) != nil {
		return nil
	}
	return ErrPrivateAddress
}

// get asks for a document. Redirects within the origin are followed when within says
// so, and never to another (rule C9).
func (e *endpoint) get(ctx context.Context, what, raw string, within bool) (*answer, error) {
	u, err := e.checkURL(what, raw)
	if err != nil {
		return nil, err
	}
	for range maxRedirects + 1 {
		a, err := e.do(ctx, what, http.MethodGet, u, http.Header{"Accept": {"application/json"}}, nil)
		if err != nil || a.status < 300 || a.status > 399 {
			return a, err
		}
		if !within {
			return nil, refused("the %s at %s is a redirect", what, quoted(raw))
		}
		if u, err = e.follow(what, u, a.header.Get("Location")); err != nil {
			return nil, err
		}
	}
	return nil, refused("the %s at %s is behind more than %d redirects", what, quoted(raw), maxRedirects)
}

func (e *endpoint) follow(what string, from *url.URL, location string) (*url.URL, error) {
	rel, err := url.Parse(location)
	if err != nil || location == "" {
		return nil, refused("the %s redirects to nowhere", what)
	}
	to, err := e.checkURL(what, from.ResolveReference(rel).String())
	if err != nil {
		return nil, err
	}
	if !sameOrigin(from, to) {
		return nil, refused("the %s redirects to another origin, %s", what, quoted(origin(to)))
	}
	return to, nil
}

// post sends a body once. A redirect is an answer like others: nobody follows it,
// for the body holds secrets (MM-16).
func (e *endpoint) post(ctx context.Context, what, raw string, header http.Header, body []byte) (*answer, error) {
	u, err := e.checkURL(what+" endpoint", raw)
	if err != nil {
		return nil, err
	}
	return e.do(ctx, what+" endpoint", http.MethodPost, u, header, body)
}

// do sends one request. It uses the transport itself: without an http.Client there
// are no redirects, cookies or Referer to switch off, and no error repeats the URL.
func (e *endpoint) do(ctx context.Context, what, method string, u *url.URL, header http.Header, body []byte) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the %s: %w", what, err)
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", "ostiary-authclient")
	via := e.foreign
	if hostPort(u) == e.ownHost {
		via = e.own
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return nil, e.unanswered(what, u, err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := &answer{status: resp.StatusCode, header: resp.Header, sent: secretsOf(header, body)}
	if a.body, err = readBody(resp.Body); err != nil {
		return nil, fmt.Errorf("read the answer of the %s at %s: %w", what, quoted(origin(u)), err)
	}
	e.log.DebugContext(ctx, "asked", slog.String("what", what), slog.String("method", method),
		slog.String("origin", origin(u)), slog.Int("status", a.status))
	return a, nil
}

// unanswered is the error of a request without an answer. An address that the guard
// does not permit becomes ErrRefused.
func (e *endpoint) unanswered(what string, u *url.URL, err error) error {
	if errors.Is(err, netguard.ErrRefused) {
		return refusedUnless(e.lifted(u), "the %s is at %s, which leads to an address that is not talked to", what, quoted(origin(u)))
	}
	return &UnansweredError{Endpoint: what, Origin: origin(u), Err: err}
}

func readBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errTooLarge
	}
	return body, err
}
