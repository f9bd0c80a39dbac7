package netguard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"code.dny.dev/ssrf"
)

// ErrRefused is the error of a URL or an address that is not talked to: nothing
// was sent. Its text is for logs; telling it to whoever named the URL would
// answer what stands behind an address (CI-15).
var ErrRefused = errors.New("outbound request refused")

// ErrTooLarge is the error of a body beyond GetOptions.MaxBytes.
var ErrTooLarge = errors.New("the answer is too large")

// ErrUnreachable is the error of a host that may be asked and that the network
// did not lead to or back from: no connection, no TLS, no whole answer in time.
// It may pass. A name that does not exist is not one: nobody is there to come back.
var ErrUnreachable = errors.New("the host did not answer")

// userAgent and an Accept header are all that a request says of us (CI-21).
const userAgent = "ostiary"

const (
	defaultTimeout  = 5 * time.Second
	defaultMaxBytes = 64 << 10
	maxHeaderBytes  = 16 << 10
)

// Options configures New. The zero Options talks to public hosts only.
type Options struct {
	// AllowHosts are names or addresses, "host" (its port 443) or "host:port", that
	// may also be private and be spelled as an address or a single label. Exact:
	// no name below them is meant. They are reached without Proxy. Even they never
	// lead to a link-local address or to where else clouds keep the machine's credentials.
	AllowHosts []string
	// OwnHosts are this server's own, "host" or "host:port", which are never asked,
	// allowed or not: a request that asks us to ask us does not end (CI-13).
	OwnHosts []string
	// Proxy is the URL of an HTTP proxy for everything else. It looks up names by
	// itself, so which addresses are public is then its business. Default none;
	// the environment's proxy variables are not read.
	Proxy string
	// Timeout bounds a whole request, from name to last byte. Default 5 s.
	Timeout time.Duration
	// RootCAs are the authorities trusted for TLS. Default: the machine's.
	RootCAs *x509.CertPool
	// Resolver looks names up. Default net.DefaultResolver.
	Resolver Resolver
	// Dial connects to an address that has passed the guard. Default: the system's
	// way, whose socket is checked once more. Tests lead public addresses to hosts
	// of theirs with it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// GetOptions says what one request wants.
type GetOptions struct {
	// Accept is the Accept header. Default */*.
	Accept string
	// MaxBytes bounds the body. Default 64 KiB.
	MaxBytes int64
	// IfNoneMatch is the entity tag of the copy that the caller has, or "".
	IfNoneMatch string
	// IfModifiedSince is the Last-Modified of that copy, as it was sent, or "".
	IfModifiedSince string
}

// Response is what a host answered, a redirect too: nobody follows it.
type Response struct {
	// Status is the HTTP status.
	Status int
	// Header holds at most 16 KiB.
	Header http.Header
	// Body is whole. It is read for status 200 only, and nil for any other.
	Body []byte
}

// Client asks foreign hosts. It is safe for concurrent use.
type Client struct {
	allowed, own map[string]bool // host:port
	timeout      time.Duration
	public       http.RoundTripper // over the proxy, where there is one
	private      http.RoundTripper // for allowed hosts
}

// New returns a Client, or all that is wrong with o.
func New(o Options) (*Client, error) {
	allowed, allowErr := hostSet(o.AllowHosts)
	own, ownErr := hostSet(o.OwnHosts)
	proxy, proxyErr := ParseProxy(o.Proxy)
	if err := errors.Join(allowErr, ownErr, proxyErr); err != nil {
		return nil, fmt.Errorf("netguard: %w", err)
	}
	c := &Client{allowed: allowed, own: own, timeout: o.Timeout}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	c.private = c.transport(o, o.dialer(privateToo()))
	if proxy == nil {
		c.public = c.transport(o, o.dialer(publicOnly()))
		return c, nil
	}
	// with a proxy this transport connects to nothing else, so its dialer is plain
	over := c.transport(o, (&net.Dialer{}).DialContext)
	over.Proxy = http.ProxyURL(proxy)
	c.public = over
	return c, nil
}

func hostSet(list []string) (map[string]bool, error) {
	set := map[string]bool{}
	var errs []error
	for _, raw := range list {
		hostPort, err := ParseHost(raw)
		set[hostPort] = true
		errs = append(errs, err)
	}
	return set, errors.Join(errs...)
}

// dialer returns what connects to addresses that guard permits.
func (o Options) dialer(guard *ssrf.Guardian) dialFunc {
	d := newDialer(o.Resolver, guard)
	if o.Dial != nil {
		d.connect = o.Dial
	}
	return d.DialContext
}

// transport returns one that makes a connection a request. It speaks HTTP/1.1:
// one exchange needs no more, and its limits are simple.
func (c *Client) transport(o Options, dial dialFunc) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            within(c.timeout, dial),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		DisableKeepAlives:      true,
		DisableCompression:     true, // a small answer must not become a large one (CI-06)
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// Get asks for rawURL once and returns what the host answered. A URL or address
// that is not talked to is ErrRefused, a large body ErrTooLarge, a failure of the
// network ErrUnreachable; any other error is a name that does not exist, or an
// answer that cannot be used.
func (c *Client) Get(ctx context.Context, rawURL string, o GetOptions) (*Response, error) {
	t, err := c.check(rawURL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	res, err := c.do(ctx, t, o)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", t, err)
	}
	return res, nil
}

// Check reports with ErrRefused whether Get would refuse rawURL for how it is
// written. It asks nobody, so a name that leads to a private address passes.
func (c *Client) Check(rawURL string) error {
	_, err := c.check(rawURL)
	return err
}

// do uses the transport itself: without an http.Client there are no redirects,
// cookies or Referer to switch off.
func (c *Client) do(ctx context.Context, t target, o GetOptions) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = o.header()
	via := c.public
	if t.allowed {
		via = c.private
	}
	res, err := via.RoundTrip(req)
	if err != nil {
		return nil, unreachable(err)
	}
	defer func() { _ = res.Body.Close() }()
	out := &Response{Status: res.StatusCode, Header: res.Header}
	if res.StatusCode != http.StatusOK {
		return out, nil
	}
	out.Body, err = readBody(res, o.MaxBytes)
	return out, err
}

// unreachable makes err an ErrUnreachable unless it says that we do not talk to
// the host, or that it does not exist.
func unreachable(err error) error {
	var dns *net.DNSError
	if errors.Is(err, ErrRefused) || errors.As(err, &dns) && dns.IsNotFound {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

func (o GetOptions) header() http.Header {
	h := http.Header{"User-Agent": {userAgent}, "Accept-Encoding": {"identity"}, "Accept": {"*/*"}}
	for name, value := range map[string]string{
		"Accept": o.Accept, "If-None-Match": o.IfNoneMatch, "If-Modified-Since": o.IfModifiedSince,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// readBody reads an unencoded body of at most limit bytes.
func readBody(res *http.Response, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = defaultMaxBytes
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, fmt.Errorf("the answer has Content-Encoding %.20q, which was not asked for", e)
	}
	if res.ContentLength > limit {
		return nil, fmt.Errorf("%w: %d bytes, the most is %d", ErrTooLarge, res.ContentLength, limit)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return nil, unreachable(err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w: the most is %d bytes", ErrTooLarge, limit)
	}
	return body, nil
}
