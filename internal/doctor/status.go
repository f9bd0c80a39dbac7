package doctor

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// What to change where an answer tells the cause, whatever finding rests on it.
const (
	hostFix     = "Let the proxy pass the Host header on (nginx: proxy_set_header Host $host; or $http_host where the URL has a port), and configure the public URL as the server's own."
	limitFix    = "Raise the rate limit of these paths: to discover and log in is a dozen requests within seconds, and hosted clients share a few addresses. Then wait, and examine again."
	upstreamFix = "See why the proxy does not reach what is behind it: does it run, and has the proxy its address, port and scheme (nginx: proxy_pass, and its error log)?"
	busyFix     = upstreamFix + " A rate limit of nginx says 503 too (limit_req_status)."
	signOnFix   = "Exempt the MCP endpoint, /.well-known/ and the endpoints for programs from the single sign-on in front of them: clients bring a token of their own, and see no page to sign in at."
)

// statusFix is the advice that the status of an answer gives, "" where it gives none.
func statusFix(e *exchange) string {
	switch {
	case e == nil:
		return ""
	case e.status == http.StatusMisdirectedRequest:
		return hostFix
	case e.status == http.StatusTooManyRequests:
		return limitFix
	case e.status == http.StatusBadGateway, e.status == http.StatusGatewayTimeout:
		return upstreamFix
	case e.status == http.StatusServiceUnavailable && oauthError(e) == "": // else the server itself says so
		return busyFix
	}
	return ""
}

// limiting reports a status with which rate limits refuse; nginx's own is 503.
func limiting(e *exchange) bool {
	return e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable
}

// leads is where an answer redirects to, in full.
func (e *exchange) leads() (*url.URL, bool) {
	to, redirected := e.redirects()
	from, err := url.Parse(e.url)
	if !redirected || err != nil {
		return nil, false
	}
	u, err := from.Parse(to)
	return u, err == nil
}

// moved reports a redirect to the same path elsewhere: another scheme or host, a
// slash more or less.
func (e *exchange) moved() bool {
	u, redirected := e.leads()
	from, err := url.Parse(e.url)
	return redirected && err == nil && strings.Trim(u.Path, "/") == strings.Trim(from.Path, "/")
}

var signInPath = regexp.MustCompile(`(?i)log-?in|sign[-_]?in|sso|saml|oauth2/`)

// signsOn reports a redirect as a single sign-on proxy sends it: to another
// origin, or to a path that says so.
func (e *exchange) signsOn() bool {
	u, redirected := e.leads()
	from, err := url.Parse(e.url)
	return redirected && err == nil && !e.moved() && (!sameOrigin(u, from) || signInPath.MatchString(u.Path))
}

// bare reports a page of a proxy's own, which says its status and nothing else.
func (e *exchange) bare() bool {
	if !e.isHTML() {
		return oauthError(e) == ""
	}
	m := title.FindSubmatch(e.body)
	if m == nil {
		return len(e.body) < maxExcerpt
	}
	said := strings.ToLower(strings.TrimSpace(string(m[1])))
	return strings.HasPrefix(said, short(e)) || said == strings.ToLower(http.StatusText(e.status)) || said == "access denied"
}

// innerName reports a URL of a host that nobody outside knows by this name, as a
// server builds it whose proxy does not pass Host on.
func innerName(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return false
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return netguard.CheckHost(netguard.Public, a.String()) != nil
	}
	return isLoopbackHost(u.Hostname()) || !strings.Contains(u.Hostname(), ".")
}

// insteadOf reports an inner name where a public one was asked for.
func insteadOf(got, want string) bool { return innerName(got) && !innerName(want) }
