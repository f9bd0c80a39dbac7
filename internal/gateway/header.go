package gateway

import (
	"net/http"
	"strings"
)

// ownPrefix begins the names of the headers that only this gateway writes, in
// either direction.
const ownPrefix = "x-ostiary-"

// notForwarded are headers of a request that end here: credentials of this door
// and of others, where the request came from according to itself, and what a
// browser says of the page that asks, for Origin was judged here. A server that
// trusted the headers of another proxy before trusts them still, so those by which
// common ones tell who calls are among them; Options.RemoveHeaders names others.
var notForwarded = map[string]bool{
	"authorization": true, "proxy-authorization": true, "cookie": true, "cookie2": true, "dpop": true,
	"forwarded": true, "x-real-ip": true, "x-client-ip": true, "x-cluster-client-ip": true, "true-client-ip": true,
	"cf-connecting-ip": true, "via": true, "client-cert": true, "client-cert-chain": true,
	"x-http-method": true, "x-http-method-override": true, "x-method-override": true,
	"x-original-url": true, "x-rewrite-url": true, "x-original-host": true, "x-host": true,
	"origin": true, "referer": true,
	"remote-user": true, "remote-name": true, "remote-email": true, "remote-groups": true, "x-forwarded": true,
	"x-client-cert": true, "x-client-verify": true, "x-client-dn": true, "x-user": true, "x-username": true, "x-user-id": true,
	"x-user-email": true, "x-email": true, "x-groups": true, "x-roles": true, "x-scope": true, "x-subject": true,
	"proxy": true, // CGI makes HTTP_PROXY of it
	// RFC 9110 §7.6.1: of this connection alone. ReverseProxy puts Te and Upgrade back.
	"connection": true, "proxy-connection": true, "keep-alive": true, "te": true, "trailer": true, "upgrade": true,
	"transfer-encoding": true, "http2-settings": true, "expect": true,
}

// forwardedPrefixes are families of such headers.
var forwardedPrefixes = []string{ownPrefix, "x-forwarded-", "x-envoy-", "sec-fetch-", "access-control-",
	"x-original-", "x-remote-", "x-webauth-", "x-auth-", "x-authenticated-", "x-authentik-", "x-vouch-", "x-pomerium-", "x-consumer-",
	"x-ssl-", "ssl-client-", "x-ms-client-principal", "x-ms-token-", "x-goog-iap-", "x-goog-authenticated-user-", "x-amzn-oidc-",
	"cf-access-", "tailscale-"}

// paramPrefix begins headers whose names tools choose (MCP 2026-07-28), so every
// character of a token may be in them.
const paramPrefix = "Mcp-Param-"

// cleanRequest removes from h what is not forwarded; more has further names in
// lower case.
func cleanRequest(h http.Header, more map[string]bool) {
	for name := range h {
		if !isForwarded(name) || len(more) > 0 && isReserved(name, more, nil) {
			delete(h, name)
		}
	}
}

// isForwarded judges a name. CGI, WSGI and PHP read "_" and "." as "-", so a name
// with such a character may be another header's to them: X_Ostiary_Subject, or
// Mcp_Session_Id past the check of Mcp-Session-Id. None is forwarded.
func isForwarded(name string) bool {
	if !isPlainName(name) {
		return strings.HasPrefix(name, paramPrefix)
	}
	return !isReserved(name, notForwarded, forwardedPrefixes)
}

// isPlainName reports letters, digits and hyphens.
func isPlainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return name != ""
}

// isReserved compares a name, as a server might read it, with names and prefixes
// in lower case.
func isReserved(name string, names map[string]bool, prefixes []string) bool {
	var buf [64]byte
	lower := appendFolded(buf[:0], name)
	if names[string(lower)] {
		return true
	}
	for _, p := range prefixes {
		if len(lower) >= len(p) && string(lower[:len(p)]) == p {
			return true
		}
	}
	return false
}

// appendFolded writes name in lower case, with a hyphen for whatever is neither a
// letter nor a digit.
func appendFolded(b []byte, name string) []byte {
	for i := range len(name) {
		c := name[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
		default:
			c = '-'
		}
		b = append(b, c)
	}
	return b
}

// notReturned are headers of a response that end here: cookies, since none go the
// other way; challenges, since only this door knows where tokens come from; CORS,
// which was answered here; and what sends clients past this door.
var notReturned = map[string]bool{
	"set-cookie": true, "set-cookie2": true, "www-authenticate": true, "proxy-authenticate": true,
	"authentication-info": true, "proxy-authentication-info": true, "alt-svc": true, "refresh": true,
	"clear-site-data": true, "trailer": true, "upgrade": true, "via": true,
}

var returnedPrefixes = []string{ownPrefix, "access-control-"}

// cleanResponse removes from h what does not reach the client.
func cleanResponse(h http.Header) {
	for name := range h {
		if isReserved(name, notReturned, returnedPrefixes) {
			delete(h, name)
		}
	}
}
