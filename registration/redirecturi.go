package registration

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"golang.org/x/net/idna"
)

// maxRedirectURI bounds a redirect URI, in bytes (DR-05).
const maxRedirectURI = 2048

// RedirectPolicy says which redirect URIs a client may register.
type RedirectPolicy struct {
	// Public says that the client has no credential; private-use schemes are
	// for public clients only (D12).
	Public bool
	// Operator says that the operator adds the client, and so may use any
	// private-use scheme that is not dangerous (D12).
	Operator bool
}

// CheckRedirectURI returns the form in which a redirect URI is stored, which is
// raw with an internationalized host in punycode (RU-18), or
// invalid_redirect_uri. It accepts https, http to a loopback host, and the
// private-use schemes of D12. It never reads a URI as a pattern (RU-13).
func CheckRedirectURI(raw string, o RedirectPolicy) (string, error) {
	if len(raw) > maxRedirectURI {
		return "", oauth.InvalidRedirectURI("longer than %d bytes", maxRedirectURI)
	}
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || !isScheme(scheme) {
		return "", oauth.InvalidRedirectURI("must be an absolute URI whose scheme is in lower case")
	}
	if oauth.IsDangerousScheme(scheme) {
		return "", oauth.InvalidRedirectURI("its scheme is not allowed")
	}
	if scheme == "https" || scheme == "http" {
		return checkWebRedirect(scheme, rest)
	}
	return raw, checkPrivateUse(raw, scheme, rest, o)
}

// checkWebRedirect checks an http or https URI, given as what follows "scheme:".
func checkWebRedirect(scheme, rest string) (string, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return "", oauth.InvalidRedirectURI("must have a host")
	}
	authority, tail := splitAuthority(rest)
	authority, err := asciiAuthority(authority)
	if err != nil {
		return "", err
	}
	if scheme == "http" && !isLoopbackAuthority(authority) {
		return "", oauth.InvalidRedirectURI("http is only for localhost, 127.0.0.1 and [::1]; use https")
	}
	stored := scheme + "://" + authority + tail
	return stored, checkTail(stored, tail)
}

// checkPrivateUse applies D12 to a URI with a scheme that is not a web one.
func checkPrivateUse(raw, scheme, rest string, o RedirectPolicy) error {
	if !o.Public {
		return oauth.InvalidRedirectURI("a private-use scheme is only for public clients (token_endpoint_auth_method none)")
	}
	if slices.Contains(knownPrivateUseURIs[:], raw) {
		return nil
	}
	authority, tail, ok := "", rest, strings.HasPrefix(rest, "/") && len(rest) > 1
	if after, found := strings.CutPrefix(rest, "//"); found && o.Operator {
		authority, tail = splitAuthority(after)
	} else if found {
		ok = false
	}
	if !ok || !o.Operator && !isReverseDomain(scheme) {
		// RFC 8252 §7.1: a private-use scheme is a domain name under the app's control, reversed
		return oauth.InvalidRedirectURI("a private-use scheme must be a reversed domain name followed by one slash, like com.example.app:/callback; ask the operator to add others")
	}
	if strings.ContainsAny(authority, "@:[]*+()$") {
		return oauth.InvalidRedirectURI("has a character that a redirect URI may not contain")
	}
	return checkTail(raw, tail)
}

// checkTail checks the characters of the whole URI, and path and query.
func checkTail(raw, tail string) error {
	if strings.ContainsRune(raw, '#') {
		// RFC 6749 §3.1.2; url.Parse would lose an empty fragment (RU-06)
		return oauth.InvalidRedirectURI("must not have a fragment")
	}
	path, query, _ := strings.Cut(tail, "?")
	if !isRedirectText(raw) || strings.ContainsAny(path, "*+$()[]") || strings.ContainsAny(query, "*$()[]") {
		return oauth.InvalidRedirectURI("has a character that a redirect URI may not contain; wildcards and patterns are not supported")
	}
	decoded, err := url.PathUnescape(path)
	if err != nil || !isPlainText(decoded) {
		return oauth.InvalidRedirectURI("its path cannot be decoded")
	}
	if slices.ContainsFunc(strings.Split(decoded, "/"), func(s string) bool { return s == "." || s == ".." }) {
		return oauth.InvalidRedirectURI("its path must not have dot segments")
	}
	return checkRedirectQuery(query)
}

// checkRedirectQuery refuses a query that could be taken for a response, or
// override one (RU-15).
func checkRedirectQuery(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return oauth.InvalidRedirectURI("its query cannot be decoded").With(err)
	}
	for _, name := range []string{"code", "state", "iss", "error", "error_description", "error_uri", "response"} {
		if values.Has(name) {
			return oauth.InvalidRedirectURI("its query must not have the response parameter %s", name)
		}
	}
	return nil
}

// asciiAuthority checks host and port and returns them with an
// internationalized host in punycode.
func asciiAuthority(authority string) (string, error) {
	if strings.Contains(authority, "@") {
		return "", oauth.InvalidRedirectURI("must not have userinfo")
	}
	host, port, ok := splitPort(authority)
	if !ok {
		return "", oauth.InvalidRedirectURI("its port is not a number from 0 to 65535")
	}
	if !isASCII(host) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", oauth.InvalidRedirectURI("its host is not a valid internationalized name").With(err)
		}
		host = ascii
	}
	if !isHost(host) {
		return "", oauth.InvalidRedirectURI("its host is not a valid name or address; wildcards are not supported")
	}
	if port != "" {
		host += ":" + port
	}
	return host, nil
}

// MatchRedirectURI returns the redirect URI to use for the one that was sent,
// or invalid_request. Strings are compared exactly, but for http to a loopback
// host, where the port is ignored on both sides (rule A8, RFC 8252 §7.3);
// localhost and 127.0.0.1 are two hosts. An empty got is the only registered
// URI, when there is one (OAuth 2.1 §4.1.1). What is returned is ASCII without
// control character, space, quote or angle bracket (D15).
func MatchRedirectURI(registered []string, got string) (matched string, err error) {
	if got == "" {
		if len(registered) != 1 || !isUsableRedirect(registered[0]) {
			return "", oauth.InvalidRequest("redirect_uri is required")
		}
		return registered[0], nil
	}
	if !isUsableRedirect(got) {
		return "", oauth.InvalidRequest("redirect_uri is not registered for this client")
	}
	for _, r := range registered {
		if r == got || sameLoopback(r, got) {
			return got, nil
		}
	}
	return "", oauth.InvalidRequest("redirect_uri is not registered for this client")
}

// IsLoopbackRedirect reports whether uri is http to a loopback host.
func IsLoopbackRedirect(uri string) bool {
	_, _, ok := splitLoopback(uri)
	return ok
}

// RedirectKey is the form of a redirect URI under which a consent is kept: a
// loopback URI without its port, which changes from one run of an app to the
// next (pages.md 4.2, "redirect URI class"); any other URI as it is.
func RedirectKey(uri string) string {
	if host, rest, ok := splitLoopback(uri); ok {
		return "http://" + host + rest
	}
	return uri
}

// sameLoopback reports whether both are http URIs of the same loopback host
// with the same path and query, as raw text.
func sameLoopback(a, b string) bool {
	hostA, restA, okA := splitLoopback(a)
	hostB, restB, okB := splitLoopback(b)
	return okA && okB && hostA == hostB && restA == restB
}

// splitLoopback splits an http URI of a loopback host into host, and path and
// query, leaving the port out. It works on the text: a parser would fold what
// must stay apart (RU-08, RU-09).
func splitLoopback(raw string) (host, rest string, ok bool) {
	after, ok := strings.CutPrefix(raw, "http://")
	if !ok {
		return "", "", false
	}
	authority, rest := splitAuthority(after)
	if !isLoopbackAuthority(authority) {
		return "", "", false
	}
	host, _, _ = splitPort(authority)
	return host, rest, true
}

// isUsableRedirect reports whether uri can stand in a Location or Refresh header
// and leads somewhere: port 0 is good to register ("any"), not to go to.
func isUsableRedirect(uri string) bool {
	if len(uri) > maxRedirectURI || strings.ContainsRune(uri, '#') || !isRedirectText(uri) {
		return false
	}
	_, after, _ := strings.Cut(uri, "://")
	authority, _ := splitAuthority(after)
	_, port, _ := splitPort(authority)
	return port != "0"
}

func isLoopbackAuthority(authority string) bool {
	host, _, ok := splitPort(authority)
	return ok && (host == "127.0.0.1" || host == "[::1]" || host == "localhost")
}

// splitAuthority splits what follows "//" where path, query or fragment begin.
func splitAuthority(s string) (authority, tail string) {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// splitPort splits host and port; ok is false for a port that is empty,
// zero-padded or out of range.
func splitPort(authority string) (host, port string, ok bool) {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.HasSuffix(authority, "]") {
		return authority, "", true
	}
	host, port = authority[:i], authority[i+1:]
	n, err := strconv.ParseUint(port, 10, 16)
	return host, port, err == nil && strconv.FormatUint(n, 10) == port
}

// isHost reports a host name of letters, digits, hyphens, underscores and dots,
// or an IP literal.
func isHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6() && addr.Zone() == ""
	}
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label {
			return false
		}
	}
	return strings.IndexFunc(host, func(r rune) bool { return !isAlnum(r) && r != '-' && r != '_' && r != '.' }) < 0
}

// isScheme reports an RFC 3986 §3.1 scheme in lower case.
func isScheme(s string) bool {
	for i, r := range s {
		switch {
		case 'a' <= r && r <= 'z':
		case i > 0 && ('0' <= r && r <= '9' || r == '+' || r == '-' || r == '.'):
		default:
			return false
		}
	}
	return s != ""
}

// isReverseDomain reports a scheme like com.example.app: two labels or more,
// none empty.
func isReverseDomain(scheme string) bool {
	return strings.Contains(scheme, ".") && !strings.HasPrefix(scheme, ".") && !strings.HasSuffix(scheme, ".") &&
		!strings.Contains(scheme, "..")
}

// isRedirectText reports visible ASCII without the characters that RFC 3986
// excludes and without the single quote (D15).
func isRedirectText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= 0x20 || c >= 0x7f || strings.IndexByte("\"'<>\\^`{|}", c) >= 0 {
			return false
		}
	}
	return true
}

func isPlainText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' }) < 0
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func isAlnum(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
