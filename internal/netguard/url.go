package netguard

import (
	"net"
	"net/url"
	"strings"
)

// maxURL bounds a URL, in bytes.
const maxURL = 2048

// specialNames are top-level names that no public DNS answers for (RFC 6761,
// 6762, 7686, 8375, 9476 and ICANN's "internal"). Asking would tell the local
// network what a foreigner wants to know of it.
var specialNames = []string{"localhost", "local", "internal", "home.arpa", "onion", "alt", "invalid"}

// target is a URL that may be asked.
type target struct {
	*url.URL
	host, port string // host in its one spelling, an IPv6 address without brackets
	allowed    bool   // by the operator
}

// check parses rawURL and refuses what no public client needs.
func (c *Client) check(rawURL string) (target, error) {
	t, err := parse(rawURL)
	if err != nil {
		return target{}, err
	}
	hostPort := net.JoinHostPort(t.host, t.port)
	if c.own[hostPort] {
		return target{}, refuse("%s is this server", hostPort)
	}
	if t.allowed = c.allowed[hostPort]; t.allowed {
		return t, nil
	}
	return t, t.isPublic()
}

// parse reads the URL and writes its host in the one spelling that the rest
// compares, looks up and sends.
func parse(rawURL string) (target, error) {
	if len(rawURL) > maxURL {
		return target{}, refuse("the URL is longer than %d bytes", maxURL)
	}
	if strings.ContainsFunc(rawURL, isForeign) {
		return target{}, refuse("the URL has a character that URLs do not have; hosts are written in punycode")
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return target{}, refuse("the URL cannot be parsed") // err repeats it
	}
	switch {
	case u.Scheme != "https":
		return target{}, refuse("the URL is not https")
	case u.User != nil:
		return target{}, refuse("the URL has a user name or password")
	case strings.Contains(rawURL, "#"):
		return target{}, refuse("the URL has a fragment")
	}
	t := target{URL: u}
	if t.port, err = normalPort(u.Port(), u.Host); err != nil {
		return target{}, err
	}
	if t.host, err = normalHost(u.Hostname()); err != nil {
		return target{}, err
	}
	u.Host = strings.TrimSuffix(net.JoinHostPort(t.host, t.port), ":443") // some hosts know themselves without it only
	return t, nil
}

// isForeign reports what no URL has (RFC 3986 §2); browsers read a backslash as
// a slash.
func isForeign(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\\\"<>^`{|}", r) }

// isPublic refuses what only an operator may name: ports, addresses, names of
// the local network (CI-02, CI-03, CI-11).
func (t target) isPublic() error {
	switch {
	case t.port != "443":
		return refuse("port %s is not 443", t.port)
	case isNumeric(t.host):
		return refuse("the host %q is an address", t.host)
	}
	return publicName(t.host)
}

// publicName refuses a name that no public DNS answers for.
func publicName(host string) error {
	if !strings.Contains(host, ".") {
		return refuse("the host %q is a single label", host)
	}
	for _, name := range specialNames {
		if strings.HasSuffix(host, "."+name) {
			return refuse("the host %q is a name of the local network", host)
		}
	}
	return nil
}
