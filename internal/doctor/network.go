package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Bounds of what is fine.
const (
	certificateSoon = 14 * 24 * time.Hour
	slowAnswer      = 5 * time.Second
)

// place is a host that is looked at: the MCP server's or the issuer's.
type place struct {
	prefix string
	hop    Hop
	// url is where it is, nil while nobody has said.
	url func(x *examination) *url.URL
	// first is what a client asks there first.
	first func(ctx context.Context, x *examination) *exchange
}

var serverPlace = place{prefix: "server-", hop: HopServerNetwork,
	url:   func(x *examination) *url.URL { return x.target },
	first: func(ctx context.Context, x *examination) *exchange { return x.unauthorizedGet(ctx) }}

var issuerPlace = place{prefix: "issuer-", hop: HopIssuerNetwork,
	url: func(x *examination) *url.URL { return x.issuerURL() },
	first: func(ctx context.Context, x *examination) *exchange {
		return x.probe.ask(ctx, get(issuerForms(x.issuer)[0].url, "Accept", "application/json"))
	}}

// networkChecks are those of a place, from its name to its first answer.
func networkChecks(p place) []Check {
	checks := []Check{
		{ID: "dns", Title: "Its name leads to an address",
			Fix:       "Add an A or AAAA record for the name, or give the URL with the name that has one.",
			Reference: "RFC 1035", Run: p.dns},
		{ID: "connect", Title: "Each of its addresses accepts connections", Needs: []string{"dns"},
			Fix:       "Listen there, open the port in the firewall, or remove the address (often an AAAA record of a host without IPv6) from the DNS.",
			Reference: "RFC 8305", Run: p.connect},
		{ID: "https", Title: "It speaks https", Needs: []string{"dns"},
			Fix:       "Serve it over TLS and give clients the https URL; http is for loopback hosts alone.",
			Reference: "MCP authorization, Communication Security; OAuth 2.1 §1.5", Run: p.https},
		{ID: "tls", Title: "Its certificate is valid for every client", Needs: []string{"connect", "https"},
			Fix:       "Install a certificate for this name with its intermediates, the leaf first (fullchain.pem).",
			Reference: "RFC 8446 §4.4.2; RFC 9110 §4.3.4", Run: p.tls},
		{ID: "answer", Title: "It answers a request", Needs: []string{"tls"},
			Fix:       "See what listens on this port: it takes connections and does not answer as a web server does. A proxy that waits for what is behind it looks so too.",
			Reference: "RFC 9110 §3.3, §3.4", Run: p.answer},
		{ID: "tls-expiry", Title: "Its certificate is good for two weeks more", Needs: []string{"answer"},
			Fix: "Renew the certificate, and look why that did not happen by itself.", Reference: "RFC 5280 §4.1.2.5", Run: p.expiry},
		{ID: "waf", Title: "Nothing in front of it answers in its place", Needs: []string{"answer"},
			Fix:       challengeFix,
			Reference: "docs/doctor.md, firewalls", Run: p.firewall},
		{ID: "user-agents", Title: "It answers every client's User-Agent alike", Needs: []string{"waf"},
			Fix:       nameFix,
			Reference: "RFC 9110 §10.1.5", Run: p.userAgents},
		{ID: "speed", Title: "It answers within seconds", Needs: []string{"answer"},
			Fix: "Find what is slow: discovery is a handful of requests in a row, and hosted clients give each 10 seconds.", Reference: "docs/clients.md",
			Run: p.speed},
		{ID: "clock", Title: "Its clock agrees with this machine's", Needs: []string{"answer"},
			Fix:       "Run NTP on the server and on this machine: tokens carry times, and receivers tolerate seconds.",
			Reference: "RFC 7519 §4.1.4; RFC 9110 §6.6.1", Run: p.clock},
	}
	for i := range checks {
		checks[i].ID = p.prefix + checks[i].ID
		for j := range checks[i].Needs {
			checks[i].Needs[j] = p.prefix + checks[i].Needs[j]
		}
	}
	if p.hop == HopIssuerNetwork {
		checks[0].Needs = []string{"issuer-known"}
		checks = append([]Check{issuerKnown()}, checks...)
	}
	return at(p.hop, checks)
}

// shared tells that the issuer is where the MCP server is, which was looked at.
func (p place) shared(x *examination) bool {
	return p.hop == HopIssuerNetwork && x.kind == KindServer && sameOrigin(p.url(x), x.target)
}

var sameAsServer = ok("the same host as the MCP server's")

// given is the address that the operator wants asked in place of the place's own.
func (p place) given(x *examination) (string, bool) {
	to, found := x.probe.connectTo[strings.ToLower(hostPort(p.url(x)))]
	return to, found
}

func (p place) dns(ctx context.Context, x *examination) Outcome {
	if p.shared(x) {
		return sameAsServer
	}
	u := p.url(x)
	if to, found := p.given(x); found {
		return ok("%s is asked at %s, as you said", u.Host, to)
	}
	addrs, err := x.probe.addresses(ctx, hostPort(u))
	var private *privateError
	switch {
	case errors.As(err, &private) && p.hop == HopIssuerNetwork && x.kind == KindServer:
		return broken("%s, which the MCP server names, is at %s: nobody outside reaches it, and clients refuse to ask there", private.host, private.addr).
			fix("Name the authorization server's public URL in the MCP server's metadata. Where all of this belongs into a private network, examine it with --allow-private.")
	case errors.As(err, &private):
		return broken("%s", private)
	case err != nil:
		return broken("%s cannot be looked up: %s", u.Hostname(), plainError(err))
	}
	return ok("%s is at %s", u.Hostname(), join(addrs))
}

func join(addrs []netip.Addr) string {
	var texts []string
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}

// connect tries each address by itself: many clients take the first one only.
func (p place) connect(ctx context.Context, x *examination) Outcome {
	if p.shared(x) {
		return sameAsServer
	}
	_, port, _ := net.SplitHostPort(hostPort(p.url(x)))
	var targets []string
	if to, found := p.given(x); found {
		targets = []string{to}
	} else {
		addrs, err := x.probe.addresses(ctx, hostPort(p.url(x)))
		if err != nil {
			return broken("%s", plainError(err))
		}
		for _, a := range addrs[:min(len(addrs), 8)] {
			targets = append(targets, net.JoinHostPort(a.String(), port))
		}
	}
	var failed []string
	for _, t := range targets {
		if err := tryConnect(ctx, t); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %s", t, plainError(err)))
		}
	}
	switch {
	case len(failed) == len(targets):
		return broken("no connection: %s", strings.Join(failed, "; "))
	case len(failed) > 0:
		return warn("some addresses do not answer: %s", strings.Join(failed, "; "))
	}
	return ok("%s", strings.Join(targets, ", "))
}

func tryConnect(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (p place) https(ctx context.Context, x *examination) Outcome {
	u := p.url(x)
	switch {
	case u.Scheme == "https":
		return ok("%s", u.Scheme)
	case isLoopbackHost(u.Hostname()):
		return ok("http on a loopback host, for development")
	}
	return broken("%s is an http URL: tokens would cross the network in clear text", u)
}

func (p place) speed(ctx context.Context, x *examination) Outcome {
	e := p.first(ctx, x)
	switch {
	case p.shared(x):
		return sameAsServer
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e)
	case e.took > slowAnswer:
		return warn("the answer took %s", e.took.Round(100*time.Millisecond)).on(e)
	}
	return ok("in time")
}

// hostPort is what a client connects to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func sameOrigin(a, b *url.URL) bool {
	return a != nil && b != nil && a.Scheme == b.Scheme && strings.EqualFold(hostPort(a), hostPort(b))
}

func isLoopbackHost(host string) bool {
	host = strings.ToLower(host)
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.IsLoopback()
}
