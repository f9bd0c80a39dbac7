package authclient

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// maxURL bounds a URL that a server names, in bytes.
const maxURL = 4096

// parseURL reads a URL that somebody else wrote, what is what: it names it in the
// error. Only https, and http on this machine, without userinfo and fragment and with
// characters that no shell, terminal or browser reads otherwise (rule C8: MM-11).
func parseURL(what, raw string) (*url.URL, error) {
	if raw == "" || len(raw) > maxURL || strings.ContainsFunc(raw, isForeign) {
		return nil, refused("the %s %s is not a URL", what, quoted(raw))
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme == "":
		return nil, refused("the %s %s is not a URL", what, quoted(raw))
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, refused("the %s %s is neither https nor http", what, quoted(raw))
	case u.Opaque != "" || u.Hostname() == "" || badPort(u):
		return nil, refused("the %s %s is not a URL", what, quoted(raw))
	case u.Scheme == "http" && !netguard.IsLoopback(u.Hostname()):
		return nil, refused("the %s %s is http, and not on this machine: only https is safe there", what, quoted(raw))
	case u.User != nil:
		return nil, refused("the %s %s has a user name", what, quoted(raw))
	case strings.Contains(raw, "#"):
		return nil, refused("the %s %s has a fragment", what, quoted(raw))
	}
	return u, nil
}

// isForeign reports what no URL has (RFC 3986 §2).
func isForeign(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\\\"<>^`{|}", r) }

func badPort(u *url.URL) bool {
	if u.Port() == "" {
		return strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err != nil || n == 0
}

// quoted is a server's text in quotes, short and printable.
func quoted(s string) string {
	if len(s) > maxTheirs {
		s = s[:maxTheirs] + "…"
	}
	return strconv.Quote(s)
}

// hostPort is a URL's host in one spelling, with its port.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// origin is a URL's origin in one spelling.
func origin(u *url.URL) string { return u.Scheme + "://" + hostPort(u) }

// sameOrigin compares scheme, host and port.
func sameOrigin(a, b *url.URL) bool { return origin(a) == origin(b) }
