package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// checkIssuer returns what is wrong with an issuer identifier and the one to
// write instead ("" when that cannot be told). RFC 8414 §2 asks for an https URL
// without query and fragment; the rest is ours, so that there is one spelling
// (D1, MM-06).
func checkIssuer(raw string) (problem, fix string) {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Hostname() == "" {
		return "must be a URL with a host, such as https://auth.example.com", ""
	}
	fix = cleanIssuer(u)
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme != "https" && scheme != "http":
		return "must begin with https://", fix
	case scheme == "http" && !isLoopbackHost(u.Hostname()):
		return "must be https: http is for loopback hosts only", fix
	case !isHostname(u.Hostname()):
		return "has a host that is not ASCII letters, digits, dots and hyphens (an IP literal in brackets); write its xn-- form", ""
	case u.User != nil:
		return "must not hold a user name or password", fix
	case strings.ContainsRune(raw, '?'):
		return "must not have a query", fix
	case strings.ContainsRune(raw, '#'):
		return "must not have a fragment", fix
	case strings.HasSuffix(u.Path, "/"):
		return "must not end with a slash", fix
	case strings.HasSuffix(u.Host, ":"):
		return "has an empty port", fix
	case isDefaultPort(scheme, u.Port()):
		return "must leave out the default port", fix
	case !issuerPath.MatchString(u.EscapedPath()):
		return "has a path that is not plain segments of letters, digits, '-', '_' and '.'", ""
	case strings.HasPrefix(u.Path+"/", "/.well-known/"):
		return "must not lie below /.well-known", ""
	case raw != fix:
		return "must be in lower case up to its path", fix
	}
	return "", ""
}

// issuerPath is the paths we mount under: no empty, "." or ".." segment and
// nothing that is escaped in one place and not in another.
var issuerPath = regexp.MustCompile(`^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)

// cleanIssuer is u with all of checkIssuer's complaints repaired.
func cleanIssuer(u *url.URL) string {
	scheme := "https"
	if isLoopbackHost(u.Hostname()) && strings.EqualFold(u.Scheme, "http") {
		scheme = "http"
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && !isDefaultPort(strings.ToLower(u.Scheme), port) && !isDefaultPort(scheme, port) {
		host = net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	return scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/")
}

func isDefaultPort(scheme, port string) bool {
	return scheme == "https" && port == "443" || scheme == "http" && port == "80"
}

// isLoopbackHost reports localhost and loopback addresses.
func isLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

var hostname = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

func isHostname(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Zone() == ""
	}
	return hostname.MatchString(host) && !strings.Contains(host, "..")
}
