package endpoint

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/web"
)

// misdirected applies D1 and D4: the issuer is never taken from the request, so
// a request for another name, or through a proxy nobody set up, is refused.
func (s *site) misdirected(r *http.Request) error {
	// The page that says so needs its style sheet, and static files are the same
	// for everybody.
	if strings.HasPrefix(r.URL.Path, s.base+"/static/") {
		return nil
	}
	host := canonicalHost(r.Host, s.Issuer.Scheme)
	if !slices.Contains(s.hosts, host) {
		return &PageError{Status: http.StatusMisdirectedRequest,
			Page: web.Error{Case: web.CaseMisdirected, Host: s.Issuer.String(),
				Code: "this server answers as " + s.Issuer.String() + "; open that address, or change the line issuer: or allowed_hosts: of its configuration"},
			Err: errors.New("the Host header names another server")}
	}
	if s.Development && forwarded(r.Header) {
		return &PageError{Status: http.StatusMisdirectedRequest,
			Page: web.Error{Case: web.CaseMisdirected, Host: s.Issuer.String(),
				Code: "a proxy forwarded this request, but the server is in development mode; change the line issuer: of its configuration to the public https address"},
			Err: errors.New("forwarded request in development mode")}
	}
	return nil
}

func forwarded(h http.Header) bool {
	for name := range h {
		if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

// canonicalHost lowers the case and drops the scheme's default port.
func canonicalHost(host, scheme string) string {
	host = strings.ToLower(host)
	name, port, err := net.SplitHostPort(host)
	if err != nil || (scheme == "https" && port != "443") || (scheme == "http" && port != "80") {
		return host
	}
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}
