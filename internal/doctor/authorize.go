package doctor

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// A client that nobody registered, at a host that RFC 2606 keeps free.
const (
	unknownClient   = "ostiary-doctor"
	unknownRedirect = browserOrigin + "/callback"
)

// A PKCE challenge whose verifier is RFC 7636 appendix B's: nothing is redeemed
// with it.
const exampleChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

func authorizeChecks() []Check {
	needs := []string{"metadata-endpoints", "metadata-urls"}
	return []Check{
		{ID: "authorize-answer", Title: "A client that nobody knows gets an error page", Needs: needs,
			Fix:       "Answer 400 with a page that says that the app is not known here and what the person can do.",
			Reference: "RFC 6749 §4.1.2.1", Run: checkAuthorizeAnswer},
		{ID: "authorize-redirect", Title: "It sends nobody to a redirect URI that was not registered", Needs: needs,
			Fix:       "Redirect only to a redirect_uri that exactly matches one of the client.",
			Reference: "OAuth 2.1 §2.3.1; RFC 9700 §4.11", Run: checkAuthorizeRedirect},
		{ID: "authorize-frames", Title: "Its pages cannot be framed", Needs: []string{"authorize-answer"},
			Fix:       "Send Content-Security-Policy: frame-ancestors 'none' (and X-Frame-Options: DENY) with every page where people decide.",
			Reference: "RFC 9700 §4.16", Run: checkAuthorizeFrames},
		{ID: "authorize-accepts", Title: "A client that it knows is led to sign in", Needs: []string{"authorize-answer", "resource-identity"},
			Fix:       "See what the page or the error says.",
			Reference: "RFC 6749 §4.1.1", Run: checkAuthorizeAccepts},
		{ID: "authorize-pkce", Title: "It refuses a request without PKCE", Needs: []string{"authorize-accepts"},
			Fix:       "Require code_challenge with S256 of every client.",
			Reference: "OAuth 2.1 §4.1.1, §7.5.2; RFC 9700 §2.1.1", Run: checkAuthorizePKCE},
		{ID: "authorize-port", Title: "A loopback redirect may use any port", Needs: []string{"authorize-accepts"},
			Fix:       "Ignore the port when an http redirect URI on 127.0.0.1, [::1] or localhost is compared.",
			Reference: "RFC 8252 §7.3; OAuth 2.1 §8.4.2", Run: checkAuthorizePort},
	}
}

// authorizeURL is an authorization request as clients make it; pairs are further
// parameters, or replace one, and "" removes it.
func (x *examination) authorizeURL(clientID, redirectURI string, pairs ...string) string {
	v := url.Values{"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirectURI},
		"code_challenge": {exampleChallenge}, "code_challenge_method": {"S256"}, "state": {"ostiary-doctor-state"}}
	if x.kind == KindServer {
		v.Set("resource", x.resource())
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if v.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			v.Del(pairs[i])
		}
	}
	endpoint := x.issuerDoc.text("authorization_endpoint")
	sep := "?"
	if strings.Contains(endpoint, "?") { // RFC 6749 §3.1: it may have a query
		sep = "&"
	}
	return endpoint + sep + v.Encode()
}

// resource is what clients ask a token for: the document's word (C2).
func (x *examination) resource() string {
	if r := x.resourceDoc.text("resource"); r != "" {
		return r
	}
	return x.o.URL
}

func (x *examination) openAuthorize(ctx context.Context, rawURL string) *exchange {
	return x.probe.ask(ctx, get(rawURL, "Accept", "text/html"))
}

// stranger is the request of a client that nobody knows.
func (x *examination) stranger(ctx context.Context) *exchange {
	return x.openAuthorize(ctx, x.authorizeURL(unknownClient, unknownRedirect))
}

func checkAuthorizeAnswer(ctx context.Context, x *examination) Outcome {
	e := x.stranger(ctx)
	to, redirected := e.redirects()
	switch {
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e)
	case e.marked() != "" && e.status != http.StatusBadRequest && e.status >= 400:
		return broken("%s answered, not the server", e.marked()).on(e)
	case (e.status == http.StatusUnauthorized || e.status == http.StatusForbidden) && e.bare():
		return broken("%d with no page of the server's: a proxy or firewall answers in its place", e.status).on(e).
			fix("Let the proxy or firewall pass %s on to the server, and ask for nothing before it: people come here to sign in.", x.issuerDoc.text("authorization_endpoint"))
	case e.status == http.StatusMisdirectedRequest:
		return broken("the server does not answer by the name that its proxy sends").on(e)
	case e.status == http.StatusTooManyRequests:
		return warn("429: this machine has asked too often, or the limit is too low for a log-in").on(e)
	case e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed:
		return broken("the endpoint that the metadata names is not there").on(e).
			fix("Have the proxy route %s to the server, or name the URL where it is in the metadata.", x.issuerDoc.text("authorization_endpoint"))
	case e.status >= 500:
		return broken("the endpoint that the metadata names does not answer").on(e)
	case redirected:
		return warn("it redirects to %s before it knows the client: somebody signs in only to see an error", to).on(e)
	case e.status < 300:
		return warn("status %d: the person is asked to sign in for a client that does not exist", e.status).on(e)
	case !e.isHTML():
		return warn("the error is %s, and a person reads it", mediaName(e)).on(e)
	}
	return Outcome{State: OK}.on(e)
}

func checkAuthorizeRedirect(ctx context.Context, x *examination) Outcome {
	e := x.stranger(ctx)
	to, redirected := e.redirects()
	if u, err := url.Parse(to); redirected && err == nil && strings.HasPrefix(browserOrigin, u.Scheme+"://"+u.Host) && u.Host != "" {
		return broken("it redirects to the redirect_uri of a client that it does not know: an open redirector").on(e)
	}
	return ok("%s", short(e))
}

func checkAuthorizeFrames(ctx context.Context, x *examination) Outcome {
	e := x.stranger(ctx)
	if _, redirected := e.redirects(); redirected {
		return skipped("no page came")
	}
	policy := strings.Join(e.header.Values("Content-Security-Policy"), ";")
	if !strings.Contains(policy, "frame-ancestors") && e.header.Get("X-Frame-Options") == "" && e.isHTML() {
		return warn("neither frame-ancestors nor X-Frame-Options: another site can lay its own page over the buttons").on(e)
	}
	return ok("refused")
}

// accepted reports whether an authorization request was led on: to a page for the
// person, or to one of the server's own; not to an error.
func accepted(e *exchange, redirectURI string) bool {
	to, redirected := e.redirects()
	if redirected {
		u, err := url.Parse(to)
		client, err2 := url.Parse(redirectURI)
		return err == nil && err2 == nil && u.Query().Get("error") == "" && (u.Host == "" || u.Host != client.Host)
	}
	return e.err == nil && e.status == http.StatusOK
}

// candidate is a client that the authorization server should know.
type candidate struct{ id, redirectURI, how string }

// candidate is the client that was registered, or else the one whose document the
// server accepts.
func (x *examination) candidate() (candidate, bool) {
	switch {
	case x.state["registration-works"] != Broken && len(x.clients) > 0:
		return candidate{x.clients[0].id, x.clients[0].redirectURI, "registered"}, true
	case x.byURL.id != "":
		return x.byURL, true
	}
	return candidate{}, false
}

const noCandidate = "no client that the server knows: --write registers one"

func checkAuthorizeAccepts(ctx context.Context, x *examination) Outcome {
	c, found := x.candidate()
	if !found {
		return skipped(noCandidate)
	}
	e := x.openAuthorize(ctx, x.authorizeURL(c.id, c.redirectURI))
	switch {
	case accepted(e, c.redirectURI):
		return ok("%s", short(e))
	case x.kind == KindIssuer:
		return skipped("the request is refused, perhaps because no resource is named: examine an MCP server")
	}
	return broken("the request of a client that is known (%s) is refused", c.how).on(e)
}

func checkAuthorizePKCE(ctx context.Context, x *examination) Outcome {
	c, _ := x.candidate()
	e := x.openAuthorize(ctx, x.authorizeURL(c.id, c.redirectURI, "code_challenge", "", "code_challenge_method", ""))
	if accepted(e, c.redirectURI) {
		return broken("a request without code_challenge goes on: a stolen code can be redeemed").on(e)
	}
	e = x.openAuthorize(ctx, x.authorizeURL(c.id, c.redirectURI, "code_challenge_method", "plain"))
	if accepted(e, c.redirectURI) {
		return warn("code_challenge_method=plain goes on").on(e)
	}
	return ok("refused")
}

func checkAuthorizePort(ctx context.Context, x *examination) Outcome {
	c, _ := x.candidate()
	u, err := url.Parse(c.redirectURI)
	if err != nil || u.Scheme != "http" || !isLoopbackHost(u.Hostname()) {
		return skipped("the client has no loopback redirect URI")
	}
	u.Host = u.Hostname() + ":49321"
	e := x.openAuthorize(ctx, x.authorizeURL(c.id, u.String()))
	if !accepted(e, u.String()) {
		return broken("%s is refused where %s is registered", u, c.redirectURI).on(e)
	}
	return ok("%s", u.Host)
}
