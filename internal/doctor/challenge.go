package doctor

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// protocolVersion is what a client of today says it speaks.
const protocolVersion = "2025-11-25"

// impossible is a message that no MCP server can carry out, so that an unprotected
// one does nothing: its method does not exist.
const impossible = `{"jsonrpc":"2.0","id":1,"method":"ostiary-doctor/nothing"}`

// bogusToken is a token that nobody issued.
const bogusToken = "ostiary-doctor-no-token"

func challengeChecks() []Check {
	return []Check{
		{ID: "server-redirect", Title: "Its URL answers itself", Needs: []string{"server-tls", "server-waf"},
			Fix:       "Serve the MCP endpoint at the URL that people type, slash or none included, or tell them the other one.",
			Reference: "RFC 9110 §15.4", Run: checkServerRedirect},
		{ID: "challenge-status", Title: "A request without a token gets 401", Needs: []string{"server-redirect"},
			Fix:       "Answer every request without a valid token with 401, before anything else is looked at.",
			Reference: "MCP authorization, Access Token Usage; RFC 6750 §3", Run: checkChallengeStatus},
		{ID: "challenge-header", Title: "The 401 has a Bearer challenge", Needs: []string{"challenge-status"},
			Fix:       `Send WWW-Authenticate: Bearer resource_metadata="…" with the 401; see that no proxy drops it.`,
			Reference: "RFC 6750 §3; RFC 9728 §5.1", Run: checkChallengeHeader},
		{ID: "challenge-syntax", Title: "The challenge can be parsed", Needs: []string{"challenge-header"},
			Fix:       `Write name="value" pairs, each value in double quotes, ASCII, separated by commas.`,
			Reference: "RFC 9110 §11.6.1", Run: checkChallengeSyntax},
		{ID: "challenge-first", Title: "Bearer is the first challenge", Needs: []string{"challenge-header"},
			Fix:       "Send the Bearer challenge first or alone: some clients read no other. A second one often comes from a proxy's own authentication.",
			Reference: "RFC 9110 §11.6.1", Run: checkChallengeFirst},
		{ID: "challenge-resource", Title: "The challenge names the metadata", Needs: []string{"challenge-syntax"},
			Fix:       "Add resource_metadata with the absolute URL of the RFC 9728 document.",
			Reference: "RFC 9728 §5.1", Run: checkChallengeResource},
		{ID: "challenge-origin", Title: "The metadata named is on the server's own origin", Needs: []string{"challenge-resource"},
			Fix:       "Name the document on the origin of the MCP URL, with its scheme, host and port. Behind a proxy, configure the public URL; do not build it from the request.",
			Reference: "RFC 9728 §5.1, §7.3", Run: checkChallengeOrigin},
		{ID: "challenge-error", Title: "The challenge accuses nobody who sent nothing", Needs: []string{"challenge-syntax"},
			Fix:       "Send error only when the request had a token.",
			Reference: "RFC 6750 §3.1", Run: checkChallengeError},
		{ID: "challenge-get", Title: "GET is challenged too", Needs: []string{"challenge-header"},
			Fix:       "Answer GET without a token with the same 401, also where the server knows no GET.",
			Reference: "MCP transports, Streamable HTTP", Run: checkChallengeGet},
		{ID: "token-refused", Title: "A made-up token gets 401 invalid_token", Needs: []string{"challenge-syntax"},
			Fix:       `Answer a token that does not verify with 401 and error="invalid_token": clients refresh on that alone. Pass the Authorization header through every proxy.`,
			Reference: "RFC 6750 §3.1", Run: checkTokenRefused},
	}
}

// message is a JSON-RPC request as MCP clients send it.
func message(rawURL, body string, header ...string) query {
	header = append(header, "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", protocolVersion)
	return post(rawURL, "application/json", body, header...)
}

// unauthorized is the first request of a client: a POST without a token.
func (x *examination) unauthorized(ctx context.Context) *exchange {
	return x.probe.ask(ctx, message(x.o.URL, impossible))
}

func (x *examination) unauthorizedGet(ctx context.Context) *exchange {
	return x.probe.ask(ctx, get(x.o.URL, "Accept", "text/event-stream", "MCP-Protocol-Version", protocolVersion))
}

func checkServerRedirect(ctx context.Context, x *examination) Outcome {
	for _, e := range []*exchange{x.unauthorized(ctx), x.unauthorizedGet(ctx)} {
		to, redirected := e.redirects()
		if e.err != nil {
			return broken("%s", plainError(e.err)).on(e)
		}
		if !redirected {
			continue
		}
		out := broken("it redirects to %s: clients turn the POST into a GET, follow only within the origin, or not at all", to).on(e)
		if e.signsOn() {
			return out.fix(signOnFix)
		}
		if u, known := e.leads(); known {
			out = out.fix("Serve the MCP endpoint at %s itself, or give people the URL %s.", x.o.URL, u)
		}
		return out
	}
	return ok("no redirect")
}

const endpointFix = "Give the URL of the MCP endpoint, path included, or have the proxy route this one to the MCP server with its path unchanged."

func checkChallengeStatus(ctx context.Context, x *examination) Outcome {
	e := x.unauthorized(ctx)
	switch {
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e)
	case e.status == http.StatusUnauthorized:
		return Outcome{State: OK}.on(e)
	case e.status == http.StatusForbidden:
		return broken("403 says that a token lacks something; clients without one never begin to log in").on(e)
	case e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed:
		return broken("there is no MCP endpoint at this URL, or its path changes on the way").on(e).fix(endpointFix)
	case e.status == http.StatusMisdirectedRequest:
		return broken("the server does not answer by the name that its proxy sends").on(e)
	case e.status == http.StatusTooManyRequests:
		return broken("there is a rate limit, and it leaves no room for a log-in").on(e)
	case e.status >= 500:
		return broken("the server, or what is behind its proxy, fails").on(e)
	case e.status < 300 && e.isHTML():
		return broken("a page answers, and no MCP server").on(e).fix(endpointFix)
	case e.status < 300, e.status == http.StatusBadRequest:
		return broken("the server looked at the message of somebody without a token: it is not protected").on(e)
	}
	return broken("status %d is not what makes a client log in", e.status).on(e)
}

// bearer is the challenge that clients with a full parser find.
func (x *examination) bearer(ctx context.Context) (challenge, bool) {
	for _, v := range x.unauthorized(ctx).header.Values("Www-Authenticate") {
		list, err := parseChallenges(v)
		if err != nil {
			return challenge{}, false
		}
		for _, c := range list {
			if strings.EqualFold(c.scheme, "Bearer") {
				return c, true
			}
		}
	}
	return challenge{}, false
}

func checkChallengeHeader(ctx context.Context, x *examination) Outcome {
	e := x.unauthorized(ctx)
	values := e.header.Values("Www-Authenticate")
	switch {
	case len(values) == 0:
		return broken("the 401 has no WWW-Authenticate").on(e)
	case !slices.ContainsFunc(values, func(v string) bool { return strings.Contains(strings.ToLower(v), "bearer") }):
		return broken("none of the challenges is Bearer").on(e)
	}
	return Outcome{State: OK}.on(e)
}

func checkChallengeSyntax(ctx context.Context, x *examination) Outcome {
	e := x.unauthorized(ctx)
	for _, v := range e.header.Values("Www-Authenticate") {
		if _, err := parseChallenges(v); err != nil {
			return broken("%s", err).on(e)
		}
		if strings.Contains(v, "resource_metadata=") && !strings.Contains(v, `resource_metadata="`) {
			return broken("the value of resource_metadata is not quoted, and a URL is no token").on(e)
		}
	}
	if _, found := x.bearer(ctx); !found {
		return broken("no Bearer challenge can be made out").on(e)
	}
	return ok("a Bearer challenge")
}

func checkChallengeFirst(ctx context.Context, x *examination) Outcome {
	e := x.unauthorized(ctx)
	values := e.header.Values("Www-Authenticate")
	switch {
	case !strings.HasPrefix(strings.ToLower(strings.TrimSpace(values[0])), "bearer"):
		return broken("another scheme comes first").on(e)
	case len(values) > 1:
		return warn("%d challenges: clients that join the headers read them as one", len(values)).on(e)
	}
	return ok("Bearer")
}

func checkChallengeResource(ctx context.Context, x *examination) Outcome {
	c, _ := x.bearer(ctx)
	e := x.unauthorized(ctx)
	raw := c.params["resource_metadata"]
	if raw == "" {
		return warn("no resource_metadata: clients guess the well-known URL, and those that do not know RFC 9728 §3 give up").on(e)
	}
	u, err := url.Parse(raw)
	if err != nil || webURL(u) != nil {
		return broken("resource_metadata is %q, not an absolute URL", raw).on(e)
	}
	return ok("%s", raw)
}

func checkChallengeOrigin(ctx context.Context, x *examination) Outcome {
	c, _ := x.bearer(ctx)
	raw := c.params["resource_metadata"]
	u, err := url.Parse(raw)
	switch {
	case raw == "" || err != nil:
		return skipped("the challenge names none")
	case sameOrigin(u, x.target):
		return ok("%s://%s", u.Scheme, u.Host)
	case u.Hostname() == x.target.Hostname() && u.Scheme == "http" && x.target.Scheme == "https":
		return broken("%s is http: the server does not know that its proxy speaks https", raw).on(x.unauthorized(ctx))
	}
	out := broken("%s is on another origin than %s", raw, x.o.URL).on(x.unauthorized(ctx))
	if insteadOf(raw, x.o.URL) {
		out.Why += ": the server probably builds it of the Host header that its proxy sends"
		out.Fix = hostFix
	}
	return out
}

func checkChallengeError(ctx context.Context, x *examination) Outcome {
	c, _ := x.bearer(ctx)
	if code := c.params["error"]; code != "" {
		return warn("error=%q though no token was sent: some clients take it for the end of a session", code).on(x.unauthorized(ctx))
	}
	return ok("no error")
}

func checkChallengeGet(ctx context.Context, x *examination) Outcome {
	e := x.unauthorizedGet(ctx)
	switch {
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e)
	case e.status != http.StatusUnauthorized:
		return broken("GET is answered with %d: clients that look with GET find no challenge", e.status).on(e)
	case e.header.Get("Www-Authenticate") == "":
		return broken("the 401 to GET has no WWW-Authenticate").on(e)
	}
	return Outcome{State: OK}.on(e)
}

func checkTokenRefused(ctx context.Context, x *examination) Outcome {
	e := x.probe.ask(ctx, message(x.o.URL, impossible, "Authorization", "Bearer "+bogusToken))
	if e.err != nil {
		return broken("%s", plainError(e.err)).on(e)
	}
	if e.status != http.StatusUnauthorized {
		return broken("a token that does not verify must be 401, so that clients get a new one").on(e)
	}
	for _, v := range e.header.Values("Www-Authenticate") {
		if list, err := parseChallenges(v); err == nil && slices.ContainsFunc(list, func(c challenge) bool { return c.params["error"] == "invalid_token" }) {
			return Outcome{State: OK}.on(e)
		}
	}
	return broken(`there is no error="invalid_token": the server did not see the token, or does not say what is wrong with it`).on(e)
}
