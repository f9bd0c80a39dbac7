package netguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// ParseHost reads "host" or "host:port" as an operator writes it and returns
// "host:port", in lower case, an IPv6 address in brackets; without a port it is
// 443.
func ParseHost(raw string) (string, error) {
	t, err := parse("https://" + raw)
	if err != nil || strings.ContainsAny(raw, "/?") {
		return "", fmt.Errorf("%q is not a host or host:port", raw)
	}
	return net.JoinHostPort(t.host, t.port), nil
}

// NeverOpened reports whether host, as ParseHost returns it, is an address to
// which no allowance leads: link-local, multicast, a cloud's metadata service.
// What a name leads to is known when it is asked for.
func NeverOpened(host string) bool {
	address, err := netip.ParseAddrPort(host)
	if err != nil {
		return false
	}
	d := dialer{guard: privateToo()}
	return d.check(address) != nil
}

// ParseProxy reads the URL of a proxy, http or https, with a user name and
// password where it wants them; "" is nil: no proxy.
func ParseProxy(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		(u.Path == "" || u.Path == "/") && !strings.ContainsAny(raw, "?#") {
		return u, nil
	}
	return nil, errors.New("the proxy is not http://host:port or https://host:port") // without raw: it may hold a password
}

// hostName is letters, digits and hyphens in labels (RFC 1123 §2.1), without the
// trailing dot that makes a second spelling of a name.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// normalHost returns the one spelling of a host: a name in lower case, or an
// address in its canonical form.
func normalHost(host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		return a.Unmap().String(), nil
	}
	host = strings.ToLower(host)
	if len(host) > 253 || !hostName.MatchString(host) || isNumeric(host) {
		return "", refuse("the host %.64q is not a name", host)
	}
	return host, nil
}

// isNumeric reports an address, or a name that some resolvers read as one: the
// last label is a number, decimal, octal or hexadecimal (WHATWG URL, "ends in a
// number"), such as 127.1, 0x7f.1 or 2130706433.
func isNumeric(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	last := host[strings.LastIndex(host, ".")+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	digits, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(digits, "0123456789abcdef") == ""
}

// normalPort returns the port, "443" when there is none; written is the host as
// it stands in the URL.
func normalPort(port, written string) (string, error) {
	if port == "" && !strings.HasSuffix(written, ":") {
		return "443", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return "", refuse("the port %.10q is not one", port)
	}
	return port, nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}
