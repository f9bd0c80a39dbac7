package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// browserChecks look with the eyes of a page: what a browser would not let it do
// (Fetch §3.3).
func browserChecks() []Check {
	return []Check{
		{ID: "browser-server", Title: "A page may call the MCP server", Server: true, Needs: []string{"challenge-status"},
			Fix:       "Answer OPTIONS without authentication, with Access-Control-Allow-Origin and the headers MCP clients send: Authorization by its name (* does not cover it), Content-Type, MCP-Protocol-Version, Mcp-Session-Id.",
			Reference: "Fetch §3.3.3, §4.8", Run: checkBrowserServer},
		{ID: "browser-challenge", Title: "A page may read the challenge", Server: true, Needs: []string{"browser-server"},
			Fix:       "Send Access-Control-Allow-Origin and Access-Control-Expose-Headers: WWW-Authenticate, Mcp-Session-Id with the 401 too. In nginx that needs add_header … always.",
			Reference: "Fetch §3.3.3", Run: checkBrowserChallenge},
		{ID: "browser-resource", Title: "A page may read the resource metadata", Server: true, Needs: []string{"resource-served"},
			Fix:       "Send Access-Control-Allow-Origin: * and allow MCP-Protocol-Version in the preflight.",
			Reference: "RFC 9728 §3.2; Fetch §3.3.3", Run: checkBrowserResource},
		{ID: "browser-metadata", Title: "A page may read the authorization server's metadata", Needs: []string{"metadata-served"},
			Fix:       "Send Access-Control-Allow-Origin: * and allow MCP-Protocol-Version in the preflight.",
			Reference: "RFC 8414 §3.2; Fetch §3.3.3", Run: checkBrowserMetadata},
		{ID: "browser-endpoints", Title: "A page may register and redeem codes", Needs: []string{"metadata-urls"},
			Fix:       "Answer OPTIONS of the registration, token and revocation endpoints without authentication, allowing POST, Content-Type and Authorization. Never with credentials.",
			Reference: "Fetch §3.3.3, §4.8; OAuth 2.0 for Browser-Based Applications §6.3", Run: checkBrowserEndpoints},
		{ID: "browser-errors", Title: "A page may read the token endpoint's errors", Needs: []string{"browser-endpoints", "metadata-endpoints"},
			Fix:       "Send Access-Control-Allow-Origin with errors too. In nginx that needs add_header … always.",
			Reference: "Fetch §3.3.3; RFC 6749 §5.2", Run: checkBrowserErrors},
		{ID: "browser-authorize", Title: "No page may read the authorization endpoint", Needs: []string{"metadata-urls", "metadata-endpoints"},
			Fix:       "Send no CORS headers where people sign in and consent: people open these pages, programs have no business there.",
			Reference: "OAuth 2.0 for Browser-Based Applications §6.3; RFC 9700 §2.6", Run: checkBrowserAuthorize},
	}
}

// forbids says what keeps a page from reading an answer, "" when nothing does.
func forbids(e *exchange) string {
	if e.err != nil {
		return plainError(e.err)
	}
	switch e.header.Get("Access-Control-Allow-Origin") {
	case "*", e.query.header.Get("Origin"):
		if len(e.header.Values("Access-Control-Allow-Origin")) > 1 {
			return "Access-Control-Allow-Origin stands there twice (server and proxy both add it), which browsers refuse"
		}
		return ""
	case "":
		return "no Access-Control-Allow-Origin"
	}
	return "Access-Control-Allow-Origin is " + e.header.Get("Access-Control-Allow-Origin")
}

// simpleMethods need no permission (Fetch §2.2.1).
var simpleMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost}

// forbidsRequest says what keeps a page from sending a request, by the answer to
// its preflight.
func forbidsRequest(e *exchange, method string, headers ...string) string {
	if why := forbids(e); why != "" || e.status < 200 || e.status > 299 {
		if why == "" || e.status >= 400 {
			why = fmt.Sprintf("the preflight is answered with %d", e.status)
		}
		return why
	}
	methods := words(e.header.Values("Access-Control-Allow-Methods"))
	if !slices.Contains(simpleMethods, method) && !slices.Contains(methods, strings.ToLower(method)) && !slices.Contains(methods, "*") {
		return "the preflight does not allow " + method
	}
	allowed := words(e.header.Values("Access-Control-Allow-Headers"))
	for _, h := range headers {
		h = strings.ToLower(h)
		// Fetch §4.8: the wildcard covers everything but Authorization
		if !slices.Contains(allowed, h) && (h == "authorization" || !slices.Contains(allowed, "*")) {
			return "the preflight does not allow the header " + h
		}
	}
	return ""
}

// words splits header values at their commas, in lower case.
func words(values []string) []string {
	var list []string
	for _, v := range values {
		for w := range strings.SplitSeq(v, ",") {
			list = append(list, strings.ToLower(strings.TrimSpace(w)))
		}
	}
	return list
}

func checkBrowserServer(ctx context.Context, x *examination) Outcome {
	headers := []string{"Authorization", "Content-Type", "MCP-Protocol-Version"}
	e := x.probe.ask(ctx, preflight(x.origin(), x.o.URL, http.MethodPost, headers...))
	if why := forbidsRequest(e, http.MethodPost, headers...); why != "" {
		return broken("%s", why).on(e)
	}
	e = x.probe.ask(ctx, preflight(x.origin(), x.o.URL, http.MethodDelete, append(headers, "Mcp-Session-Id")...))
	if why := forbidsRequest(e, http.MethodDelete, append(headers, "Mcp-Session-Id")...); why != "" {
		return warn("%s: where the server has sessions, a page cannot use them", why).on(e)
	}
	return ok("POST and DELETE, with %s", strings.Join(headers, ", "))
}

func checkBrowserChallenge(ctx context.Context, x *examination) Outcome {
	q := message(x.o.URL, impossible, "Origin", x.origin())
	e := x.probe.ask(ctx, q)
	if why := forbids(e); why != "" {
		return broken("%s in the 401", why).on(e)
	}
	exposed := words(e.header.Values("Access-Control-Expose-Headers"))
	if !slices.Contains(exposed, "www-authenticate") && !slices.Contains(exposed, "*") {
		return broken("Access-Control-Expose-Headers does not name WWW-Authenticate: the page cannot read the challenge").on(e)
	}
	return ok("WWW-Authenticate is exposed")
}

func checkBrowserResource(ctx context.Context, x *examination) Outcome {
	forms, answers := x.resourceForms(ctx)
	return x.readable(ctx, forms, answers)
}

func checkBrowserMetadata(ctx context.Context, x *examination) Outcome {
	forms, answers := x.metadataForms(ctx)
	return x.readable(ctx, forms, answers)
}

// readable asks for every document that is served as a page would.
func (x *examination) readable(ctx context.Context, forms []form, answers []*exchange) Outcome {
	for i, f := range forms {
		if answers[i].status != http.StatusOK {
			continue
		}
		e := x.probe.ask(ctx, get(f.url, "Accept", "application/json", "Origin", x.origin()))
		if why := forbids(e); why != "" {
			return broken("%s", why).on(e)
		}
		e = x.probe.ask(ctx, preflight(x.origin(), f.url, http.MethodGet, "MCP-Protocol-Version"))
		if why := forbidsRequest(e, http.MethodGet, "MCP-Protocol-Version"); why != "" {
			return broken("%s", why).on(e)
		}
	}
	return ok("every form")
}

func checkBrowserEndpoints(ctx context.Context, x *examination) Outcome {
	hidden := ""
	for _, endpoint := range []struct {
		name, check string
		answers     func(context.Context, *examination) Outcome
	}{
		{"registration_endpoint", "registration-answer", checkRegistrationAnswer},
		{"token_endpoint", "token-answer", checkTokenAnswer},
		{"revocation_endpoint", "revocation", checkRevocation},
	} {
		name := endpoint.name
		u := x.issuerDoc.text(name)
		if u == "" {
			continue
		}
		if endpoint.answers(ctx, x).State == Broken {
			hidden = endpoint.check // which every client meets, pages or not
			continue
		}
		headers := []string{"Authorization", "Content-Type"}
		if name == "registration_endpoint" {
			headers = headers[1:]
		}
		e := x.probe.ask(ctx, preflight(x.origin(), u, http.MethodPost, headers...))
		if why := forbidsRequest(e, http.MethodPost, headers...); why != "" {
			return broken("%s: %s", name, why).on(e)
		}
		if e.header.Get("Access-Control-Allow-Credentials") == "true" {
			return warn("%s allows credentials: a page could use a person's cookies there", name).on(e)
		}
	}
	if hidden != "" {
		return skipped("%s is broken", hidden)
	}
	return ok("registration, token and revocation")
}

func checkBrowserErrors(ctx context.Context, x *examination) Outcome {
	q := x.bogusCode("Origin", x.origin())
	e := x.probe.ask(ctx, q)
	if why := forbids(e); why != "" {
		return broken("%s in an error", why).on(e)
	}
	return ok("readable")
}

func checkBrowserAuthorize(ctx context.Context, x *examination) Outcome {
	q := get(x.authorizeURL(unknownClient, unknownRedirect), "Origin", x.origin())
	e := x.probe.ask(ctx, q)
	if e.err == nil && forbids(e) == "" {
		return warn("Access-Control-Allow-Origin is %s", e.header.Get("Access-Control-Allow-Origin")).on(e)
	}
	return ok("no CORS")
}
