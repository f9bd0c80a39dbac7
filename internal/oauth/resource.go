package oauth

import (
	"net/url"
	"strings"
)

// maxResource bounds a resource indicator, in bytes.
const maxResource = 2048

// ParseResource checks the syntax of a resource indicator (RFC 8707 §2): an
// absolute http or https URI with a host, without fragment, userinfo and dot
// segments, at most 2048 bytes of ASCII. Anything else is invalid_target.
func ParseResource(raw string) (*url.URL, error) {
	switch {
	case raw == "":
		return nil, InvalidTarget("resource is empty")
	case len(raw) > maxResource:
		return nil, InvalidTarget("resource is longer than %d bytes", maxResource)
	case strings.ContainsRune(raw, '#'):
		return nil, InvalidTarget("resource must not have a fragment")
	case !isVisibleASCII(raw):
		return nil, InvalidTarget("resource has a character that a URI may not contain")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, InvalidTarget("resource is not a URI").With(err)
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http", u.Opaque != "":
		return nil, InvalidTarget("resource must be an absolute https or http URI")
	case u.Hostname() == "":
		return nil, InvalidTarget("resource has no host")
	case u.User != nil:
		return nil, InvalidTarget("resource must not have userinfo")
	case strings.HasSuffix(u.Host, ":"):
		return nil, InvalidTarget("resource has an empty port")
	case hasDotSegment(u.Path):
		// encoded or not: programs differ in what such a path names
		return nil, InvalidTarget("resource must not have dot segments")
	}
	return u, nil
}

// CanonicalResource returns the form in which resource indicators are compared
// (rule A23): scheme and host in lower case, no default port, no trailing
// slash; the query, if any, stays.
func CanonicalResource(raw string) (string, error) {
	u, err := ParseResource(raw)
	if err != nil {
		return "", err
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && !(u.Scheme == "https" && port == "443") && !(u.Scheme == "http" && port == "80") {
		host += ":" + port
	}
	s := u.Scheme + "://" + host + strings.TrimSuffix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		s += "?" + u.RawQuery
	}
	return s, nil
}

// ResourceWithin reports whether the canonical resource child names parent or a
// path below it, by whole segments (rule A24). A query on the parent admits
// only equality.
func ResourceWithin(parent, child string) bool {
	if child == parent {
		return true
	}
	return !strings.Contains(parent, "?") && strings.HasPrefix(child, parent+"/")
}

// hasDotSegment looks at a decoded path.
func hasDotSegment(p string) bool {
	for seg := range strings.SplitSeq(p, "/") {
		if seg == "." || seg == ".." {
			return true
		}
	}
	return false
}

func isVisibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
