package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func tokenChecks() []Check {
	return []Check{
		{ID: "token-answer", Title: "The token endpoint answers errors as JSON", Needs: []string{"metadata-endpoints", "metadata-urls"},
			Fix:       "Answer every error of the token endpoint as JSON with error, by status 400 or 401; no redirect, no page, no 5xx. See that POST reaches it.",
			Reference: "RFC 6749 §5.2", Run: checkTokenAnswer},
		{ID: "token-error", Title: "Its errors say the right thing", Needs: []string{"token-answer"},
			Fix:       "Answer an unknown client with 401 invalid_client, and a code that is none with 400 invalid_grant.",
			Reference: "RFC 6749 §5.2", Run: checkTokenError},
		{ID: "token-cache", Title: "Its answers are not stored", Needs: []string{"token-answer"},
			Fix:       "Send Cache-Control: no-store with every answer of the token endpoint, errors included.",
			Reference: "RFC 6749 §5.1", Run: checkTokenCache},
		{ID: "token-basic", Title: "Credentials in the header reach it", Needs: []string{"token-answer"},
			Fix:       "Pass the Authorization header through the proxy, and answer credentials that are wrong with 401 and WWW-Authenticate: Basic.",
			Reference: "RFC 6749 §2.3.1, §5.2", Run: checkTokenBasic},
		{ID: "revocation", Title: "Tokens can be revoked", Needs: []string{"metadata-types", "metadata-urls"},
			Fix:       "Offer RFC 7009 and name it as revocation_endpoint: without it logging out leaves tokens alive.",
			Reference: "RFC 7009 §2", Run: checkRevocation},
	}
}

const formType = "application/x-www-form-urlencoded"

// bogusCode redeems a code that nobody issued for a client that nobody knows.
func (x *examination) bogusCode(header ...string) query {
	v := url.Values{"grant_type": {"authorization_code"}, "code": {"ostiary-doctor-no-code"}, "redirect_uri": {unknownRedirect},
		"client_id": {unknownClient}, "code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}}
	if x.kind == KindServer {
		v.Set("resource", x.resource())
	}
	return post(x.issuerDoc.text("token_endpoint"), formType, v.Encode(), append(header, "Accept", "application/json")...)
}

func (x *examination) refused(ctx context.Context) *exchange { return x.probe.ask(ctx, x.bogusCode()) }

// oauthError reads an OAuth error response (RFC 6749 §5.2).
func oauthError(e *exchange) string { return parseDocument(e.body).text("error") }

func checkTokenAnswer(ctx context.Context, x *examination) Outcome {
	e := x.refused(ctx)
	out, bad := badEndpoint(e)
	switch {
	case bad:
		return out
	case e.status < 300 && parseDocument(e.body).has("access_token"):
		return broken("a made-up code was redeemed").on(e)
	case e.status < 300:
		return broken("an error with status %d: clients take it for a success", e.status).on(e)
	case oauthError(e) == "":
		return broken("the JSON has no error").on(e)
	}
	return ok("%d %s", e.status, oauthError(e)).on(e)
}

// badEndpoint judges how an endpoint for programs answers a request that must
// fail.
func badEndpoint(e *exchange) (Outcome, bool) {
	to, redirected := e.redirects()
	switch {
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e), true
	case redirected:
		return broken("it redirects to %s: clients do not follow with a secret", to).on(e).fix("%s", redirectFix(e)), true
	case e.status == http.StatusMisdirectedRequest:
		return broken("the server does not answer by the name that its proxy sends").on(e), true
	case e.status == http.StatusTooManyRequests:
		return warn("429: this machine has asked too often, or the limit is too low for a log-in").on(e), true
	case e.status == http.StatusNotFound, e.status == http.StatusMethodNotAllowed:
		return broken("POST does not reach the endpoint that the metadata names").on(e), true
	case e.status >= 500:
		return broken("%d: clients begin again in the browser, or drop their tokens", e.status).on(e), true
	case e.isHTML():
		return broken("a page where JSON is expected: a proxy or firewall answers in its place").on(e).
			fix("Let the proxy or firewall pass POST %s on to the server: its clients are programs, and bring neither cookies nor a browser.", e.url), true
	case parseDocument(e.body) == nil:
		return broken("the body is not a JSON object").on(e), true
	case !e.isJSON():
		return broken("JSON as %s: some libraries parse it as a form", mediaName(e)).on(e), true
	}
	return Outcome{}, false
}

// redirectFix is what to change where an endpoint for programs redirects.
func redirectFix(e *exchange) string {
	if u, known := e.leads(); known && !e.signsOn() {
		return fmt.Sprintf("Answer POST at %s itself, or name %s in the metadata.", e.url, u)
	}
	return signOnFix
}

func checkTokenError(ctx context.Context, x *examination) Outcome {
	e := x.refused(ctx)
	switch code := oauthError(e); {
	case code == "invalid_client" && e.status == http.StatusUnauthorized, code == "invalid_grant" && e.status == http.StatusBadRequest:
		return ok("%d %s", e.status, code)
	case code == "invalid_client":
		return warn("invalid_client with status %d: clients register again on 401 alone", e.status).on(e)
	default:
		return warn("%d %s for a client that does not exist: clients learn neither to register again nor to log in again", e.status, code).on(e)
	}
}

func checkTokenCache(ctx context.Context, x *examination) Outcome {
	e := x.refused(ctx)
	if !strings.Contains(strings.ToLower(e.header.Get("Cache-Control")), "no-store") {
		return warn("Cache-Control is %q", e.header.Get("Cache-Control")).on(e)
	}
	return ok("no-store")
}

func checkTokenBasic(ctx context.Context, x *examination) Outcome {
	// RFC 8414 §2: without the list it is the one method
	if methods := x.issuerDoc.list("token_endpoint_auth_methods_supported"); methods != nil && !slices.Contains(methods, "client_secret_basic") {
		return skipped("client_secret_basic is not offered")
	}
	v := url.Values{"grant_type": {"authorization_code"}, "code": {"ostiary-doctor-no-code"}, "redirect_uri": {unknownRedirect}}
	q := post(x.issuerDoc.text("token_endpoint"), formType, v.Encode(), "Accept", "application/json",
		"Authorization", "Basic b3N0aWFyeS1kb2N0b3I6bm8tc2VjcmV0") // ostiary-doctor:no-secret
	e := x.probe.ask(ctx, q)
	if out, bad := badEndpoint(e); bad {
		return out
	}
	if e.status != http.StatusUnauthorized {
		return broken("wrong credentials in the header get %d %s, not 401: the header was lost on the way, or is not looked at", e.status, oauthError(e)).on(e)
	}
	if !strings.HasPrefix(strings.ToLower(e.header.Get("Www-Authenticate")), "basic") {
		return broken("the 401 has no WWW-Authenticate: Basic: the header was lost on the way, or is not looked at").on(e)
	}
	return ok("401 with Basic")
}

func checkRevocation(ctx context.Context, x *examination) Outcome {
	u := x.issuerDoc.text("revocation_endpoint")
	if u == "" {
		return warn("no revocation_endpoint")
	}
	v := url.Values{"token": {"ostiary-doctor-no-token"}, "client_id": {unknownClient}}
	e := x.probe.ask(ctx, post(u, formType, v.Encode(), "Accept", "application/json"))
	if e.err == nil && e.status == http.StatusOK && !e.isHTML() {
		return ok("200")
	}
	if out, bad := badEndpoint(e); bad {
		return out
	}
	return ok("%d %s", e.status, oauthError(e))
}
