package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of an examination. Claude gives a discovery request 10 seconds.
const (
	requestTimeout = 10 * time.Second
	totalTimeout   = 2 * time.Minute
	maxRequests    = 200
	maxBody        = 1 << 20
	userAgent      = "ostiary-doctor"
)

// errTooMany ends an examination that a server leads in circles.
var errTooMany = fmt.Errorf("the examination has made its %d requests", maxRequests)

// privateError is a server-named URL that leads to an address nobody outside
// could reach.
type privateError struct {
	host string
	addr netip.Addr
}

// Error names the host and the address.
func (e *privateError) Error() string {
	return fmt.Sprintf("%s is at %s, a private address: it was not asked", e.host, e.addr)
}

// query is one request. The zero method is GET.
type query struct {
	method, url string
	header      http.Header
	body        string
}

func get(rawURL string, header ...string) query {
	q := query{method: http.MethodGet, url: rawURL, header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		q.header.Set(header[i], header[i+1])
	}
	return q
}

// post sends a body that cannot succeed, or, with --write, one that shall.
func post(rawURL, contentType, body string, header ...string) query {
	q := get(rawURL, header...)
	q.method, q.body = http.MethodPost, body
	q.header.Set("Content-Type", contentType)
	return q
}

// preflight is what a browser asks before a page's request (Fetch §4.8).
func preflight(origin, rawURL, method string, headers ...string) query {
	q := get(rawURL, "Origin", origin, "Access-Control-Request-Method", method)
	q.method = http.MethodOptions
	if len(headers) > 0 {
		slices.Sort(headers)
		q.header.Set("Access-Control-Request-Headers", strings.ToLower(strings.Join(headers, ",")))
	}
	return q
}

// Origins of pages: one somewhere, at a name that RFC 2606 keeps free, and the
// MCP Inspector on this machine. Servers on a loopback host serve the second alone.
const (
	browserOrigin  = "https://doctor.example"
	loopbackOrigin = "http://localhost:6274"
)

// origin is that of a page which the MCP server should serve.
func (x *examination) origin() string {
	if isLoopbackHost(x.target.Hostname()) {
		return loopbackOrigin
	}
	return browserOrigin
}

// exchange is a request and what came of it: an answer or err.
type exchange struct {
	query
	status int
	header http.Header
	body   []byte
	tls    *tls.ConnectionState
	took   time.Duration
	at     time.Time
	err    error
}

// asked says what was asked, in one line.
func (e *exchange) asked() string {
	s := e.method + " " + e.url
	if ua := e.query.header.Get("User-Agent"); ua != "" {
		s += ", as " + ua
	}
	if e.query.header.Get("Authorization") != "" {
		s += ", with Authorization"
	}
	return s
}

// shown are the answer's headers worth a place in a report.
var shown = []string{"Location", "Www-Authenticate", "Content-Type", "Retry-After", "Server"}

// came says what came, in one line.
func (e *exchange) came() string {
	if e.err != nil {
		return plainError(e.err)
	}
	s := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	for _, name := range shown {
		for _, v := range e.header.Values(name) {
			s += "; " + name + ": " + v
		}
	}
	if about := e.excerpt(); about != "" && e.status >= 400 {
		s += "; " + about
	}
	return s
}

// maxExcerpt bounds what is shown of a body, in bytes.
const maxExcerpt = 160

var title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// excerpt is what a body says: the JSON of an error, the title of a page.
func (e *exchange) excerpt() string {
	switch m := title.FindSubmatch(e.body); {
	case e.isHTML() && m != nil:
		return "a page titled " + strconv.Quote(html.UnescapeString(strings.TrimSpace(string(m[1]))))
	case parseDocument(e.body) != nil && len(e.body) <= maxExcerpt:
		return strings.TrimSpace(string(e.body))
	}
	return ""
}

// redirects reports a redirect and where it leads.
func (e *exchange) redirects() (string, bool) {
	if e.status < 300 || e.status > 399 || e.status == http.StatusNotModified {
		return "", false
	}
	return e.header.Get("Location"), true
}

// isJSON reports a JSON media type (RFC 6839 §3.1 allows the suffix).
func (e *exchange) isJSON() bool {
	t := e.mediaType()
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

func (e *exchange) mediaType() string {
	t, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// isHTML reports a page, whatever its media type says.
func (e *exchange) isHTML() bool {
	start := strings.ToLower(strings.TrimSpace(string(e.body[:min(len(e.body), 200)])))
	return strings.Contains(e.mediaType(), "html") || strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
}

// plainError is the innermost error that tells something, without the URL that
// net/http puts before it.
func plainError(err error) string {
	var private *privateError
	if errors.As(err, &private) {
		return private.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", requestTimeout)
	}
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	return err.Error()
}

// Resolver looks up the addresses of a host; *net.Resolver is one.
type Resolver interface {
	// LookupNetIP is net.Resolver's.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// prober sends every request of an examination. It follows no redirect, keeps no
// cookie, remembers answers, and goes to private addresses only where the
// operator's own URL is on one.
type prober struct {
	client   *http.Client
	resolver Resolver
	// connectTo says where to go instead of host:port, as the operator wants it.
	connectTo map[string]string
	now       func() time.Time
	// target is the host that the operator named, and targetPrivate whether it is
	// private itself; then everything may be. named are further hosts of the
	// operator's.
	target        string
	targetPrivate bool
	named         []string
	sent          int
	answers       map[string]*exchange
}

func newProber(o Options, target *url.URL) *prober {
	p := &prober{resolver: o.Resolver, connectTo: o.ConnectTo, now: o.Now, target: target.Hostname(), answers: map[string]*exchange{}}
	if u, err := url.Parse(o.ClientMetadataURL); err == nil {
		p.named = append(p.named, u.Hostname())
	}
	p.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:           p.connect,
			TLSClientConfig:       &tls.Config{RootCAs: o.RootCAs, Time: o.Now},
			ForceAttemptHTTP2:     true,
			TLSHandshakeTimeout:   requestTimeout,
			ResponseHeaderTimeout: requestTimeout,
		},
	}
	return p
}

// ask sends a request once; the same one again has the same answer.
func (p *prober) ask(ctx context.Context, q query) *exchange {
	key := fmt.Sprint(q.method, " ", q.url, " ", q.header, " ", q.body)
	if e, asked := p.answers[key]; asked {
		return e
	}
	e := p.send(ctx, q)
	p.answers[key] = e
	return e
}

// send sends a request. It never returns nil.
func (p *prober) send(ctx context.Context, q query) *exchange {
	e := &exchange{query: q, header: http.Header{}}
	if p.sent++; p.sent > maxRequests {
		e.err = errTooMany
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, q.method, q.url, strings.NewReader(q.body))
	if err != nil {
		e.err = err
		return e
	}
	if err := webURL(req.URL); err != nil {
		e.err = err
		return e
	}
	req.Header = q.header.Clone()
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	started := time.Now()
	resp, err := p.client.Do(req)
	if err != nil {
		e.err = err
		return e
	}
	defer func() { _ = resp.Body.Close() }()
	e.at = p.now()
	e.status, e.header, e.tls = resp.StatusCode, resp.Header, resp.TLS
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		e.body, e.err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	}
	e.took = time.Since(started)
	if len(e.body) > maxBody {
		e.err = fmt.Errorf("the answer is larger than %d bytes", maxBody)
	}
	return e
}

// webURL refuses what a server could name to make a client do something else
// than ask the web (C8).
func webURL(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q is not an https URL", u.Redacted())
	case u.Hostname() == "":
		return fmt.Errorf("%q names no host", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("%q holds a user name", u.Redacted())
	}
	return nil
}

// connect resolves, looks at the addresses, and dials one of those that it has
// looked at.
func (p *prober) connect(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	if to, ok := p.connectTo[strings.ToLower(address)]; ok {
		return d.DialContext(ctx, network, to)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := p.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, a := range addrs[:min(len(addrs), 4)] {
		each, cancel := context.WithTimeout(ctx, requestTimeout/3)
		conn, err := d.DialContext(each, network, net.JoinHostPort(a.String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// addresses looks a host up, and refuses a private one that the operator did not
// name while the target is public (C9).
func (p *prober) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs, err := p.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if host == p.target {
		p.targetPrivate = slices.ContainsFunc(addrs, isPrivate)
	}
	if host == p.target || p.targetPrivate || slices.Contains(p.named, host) {
		return addrs, nil
	}
	if i := slices.IndexFunc(addrs, isPrivate); i >= 0 {
		return nil, &privateError{host: host, addr: addrs[i]}
	}
	return addrs, nil
}

func (p *prober) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if p.resolver == nil {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	return p.resolver.LookupNetIP(ctx, "ip", host)
}

// sharedAddresses are those of carriers' networks (RFC 6598).
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() || sharedAddresses.Contains(a)
}
