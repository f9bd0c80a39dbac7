package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Limits of connections to the upstream.
const (
	dialTimeout       = 10 * time.Second
	idleTimeout       = 90 * time.Second
	maxIdle           = 256
	maxResponseHeader = 64 << 10 // bytes
)

// upstream is where requests go.
type upstream struct {
	name   string   // as configured: the audience of identities
	url    *url.URL // scheme, host and path of forwarded requests
	socket string   // path of a unix socket; "" for TCP
}

// parseUpstream reads http(s)://host/path and unix:/socket[:/path].
func parseUpstream(raw string) (*upstream, error) {
	if rest, ok := strings.CutPrefix(raw, "unix:"); ok {
		socket, path, found := strings.Cut(rest, ":")
		if !found {
			path = "/"
		}
		u, err := url.Parse("http://localhost" + path)
		if err != nil || !filepath.IsAbs(socket) || !strings.HasPrefix(path, "/") || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("upstream %q is not unix:/path/of/socket or unix:/path/of/socket:/url/path", raw)
		}
		return &upstream{name: raw, url: u, socket: socket}, nil
	}
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return nil, errors.New("an upstream is required")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("upstream %q is not an http or https URL, or unix:/path/of/socket", raw)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("upstream %q must have neither a user, a query nor a fragment", raw)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return &upstream{name: raw, url: u}, nil
}

// isLocal reports an upstream that nobody else on a network can stand in for.
func (u *upstream) isLocal() bool {
	if u.socket != "" || strings.EqualFold(u.url.Hostname(), "localhost") {
		return true
	}
	a, err := netip.ParseAddr(u.url.Hostname())
	return err == nil && a.Unmap().IsLoopback()
}

// isOpen reports requests that cross a network unencrypted.
func (u *upstream) isOpen() bool { return u.url.Scheme == "http" && !u.isLocal() }

func (u *upstream) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	if u.socket != "" {
		return d.DialContext(ctx, "unix", u.socket)
	}
	return d.DialContext(ctx, network, addr)
}

// ping opens a connection and closes it again.
func (u *upstream) ping(ctx context.Context) error {
	port := u.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.url.Scheme]
	}
	conn, err := u.dial(ctx, "tcp", net.JoinHostPort(u.url.Hostname(), port))
	if err != nil {
		return fmt.Errorf("the MCP server does not take connections: %w", err)
	}
	return conn.Close()
}

// transport returns one of this upstream's own: no proxy of the environment, no
// decompression (what comes is what goes), no limit on how long a stream lasts.
func (u *upstream) transport(timeout time.Duration) http.RoundTripper {
	return &roundTripper{http.Transport{
		DialContext:            u.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  timeout,
		DisableCompression:     true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}}
}

// roundTripper keeps from the client what ReverseProxy would pass on unseen:
// informational responses, and the trailers that come after a body.
type roundTripper struct{ http.Transport }

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.Transport.RoundTrip(r.WithContext(untraced{r.Context()}))
	if err != nil {
		return nil, err
	}
	// The transport writes trailers into its own Response when the body has ended.
	out := *res
	out.Trailer = nil
	return &out, nil
}

// untraced hides ReverseProxy's trace, by which it would forward the header of a
// 103 unfiltered and then clear ours.
type untraced struct{ context.Context }

// Value implements context.Context.
func (c untraced) Value(key any) any {
	v := c.Context.Value(key)
	if _, ok := v.(*httptrace.ClientTrace); ok {
		return nil
	}
	return v
}
