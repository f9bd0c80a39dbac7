package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// Bounds of an examination. Claude gives a discovery request 10 seconds.
const (
	requestTimeout = 10 * time.Second
	connectTimeout = 7 * time.Second
	totalTimeout   = 2 * time.Minute
	cleanUpTimeout = 30 * time.Second
	maxRequests    = 200
	maxBody        = 1 << 20
	maxHeader      = 64 << 10
	userAgent      = "ostiary-doctor"
)

// errTooMany ends an examination that a server leads in circles.
var errTooMany = fmt.Errorf("the examination has made its %d requests", maxRequests)

// prober sends every request of an examination. It follows no redirect, keeps no
// cookie, remembers answers, and goes to private addresses only where the
// operator named or allowed them.
type prober struct {
	client   *http.Client
	resolver Resolver
	// connectTo says where to go instead of host:port, as the operator wants it.
	connectTo map[string]string
	now       func() time.Time
	// named are what the operator named, as host:port, and reach is how far all else
	// may lead.
	named   []string
	reach   netguard.Reach
	sent    int
	answers map[string]*exchange
}

func newProber(o Options, target *url.URL) *prober {
	p := &prober{resolver: o.Resolver, connectTo: o.ConnectTo, now: o.Now, reach: writtenReach(target.Hostname()), answers: map[string]*exchange{}}
	if o.AllowPrivate {
		p.reach = netguard.Private
	}
	p.named = []string{strings.ToLower(hostPort(target))}
	if u, err := url.Parse(o.ClientMetadataURL); err == nil {
		p.named = append(p.named, strings.ToLower(hostPort(u)))
	}
	p.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            p.connect,
			TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, Time: o.Now},
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    requestTimeout,
			ResponseHeaderTimeout:  requestTimeout,
			MaxResponseHeaderBytes: maxHeader,
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
	started := p.now()
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
	e.took = p.now().Sub(started)
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

// connect goes where the operator wants, else to an address within reach. The
// dialer looks the name up for itself and connects to what it has looked at, so a
// second answer of the DNS changes nothing.
func (p *prober) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if to, ok := p.connectTo[strings.ToLower(address)]; ok {
		var d net.Dialer
		return d.DialContext(ctx, network, to)
	}
	if _, err := p.addresses(ctx, address); err != nil {
		return nil, err // it names the address
	}
	// net/http dials outside the request's time; each address has its part of this
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return netguard.NewDialer(p.reachOf(address), p.resolver)(ctx, network, address)
}
