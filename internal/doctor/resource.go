package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// form is a place where clients look for a document.
type form struct{ name, url string }

// named is the place that the challenge names.
const named = "named by the challenge"

const wellKnownResource = "/.well-known/oauth-protected-resource"

// resourceMetadataURLs are the places of RFC 9728 §3.1 and MCP: below the path,
// then at the root.
func resourceMetadataURLs(u *url.URL) []form {
	origin, path := u.Scheme+"://"+u.Host, u.EscapedPath()
	if path == "/" {
		path = ""
	}
	query := ""
	if u.RawQuery != "" {
		query = "?" + u.RawQuery
	}
	forms := []form{{"path", origin + wellKnownResource + path + query}}
	if path != "" || query != "" {
		forms = append(forms, form{"root", origin + wellKnownResource})
	}
	return forms
}

func resourceChecks() []Check {
	return []Check{
		{ID: "resource-public", Title: "The metadata is for everybody", Needs: []string{"server-tls", "server-waf"},
			Fix:       "Serve everything below /.well-known/oauth-protected-resource without authentication.",
			Reference: "RFC 9728 §3", Run: checkResourcePublic},
		{ID: "resource-status", Title: "Its well-known places answer with a document or 404", Needs: []string{"server-tls", "server-waf", "resource-public"},
			Fix:       "Answer 404 where there is no document; never redirect and never fail below /.well-known/.",
			Reference: "RFC 9728 §3.2; RFC 8615 §3", Run: checkResourceStatus},
		{ID: "resource-format", Title: "What is served there is JSON", Needs: []string{"resource-status"},
			Fix:       "Serve a JSON object as application/json; exempt /.well-known/ from the fallback of a single-page app.",
			Reference: "RFC 9728 §3.2", Run: checkResourceFormat},
		{ID: "resource-served", Title: "The server describes itself (RFC 9728)", Needs: []string{"resource-format"},
			Fix:       "Serve the document at /.well-known/oauth-protected-resource followed by the path of the MCP URL. The proxy must route it to the MCP server.",
			Reference: "RFC 9728 §3.1; MCP authorization, Authorization Server Location", Run: checkResourceServed},
		{ID: "resource-named", Title: "The document is where the challenge says", Needs: []string{"resource-served", "challenge-origin"},
			Fix:       "Name the URL at which the document is served.",
			Reference: "RFC 9728 §5.1", Run: checkResourceNamed},
		{ID: "resource-identity", Title: "It is about this URL", Needs: []string{"resource-served"},
			Fix:       "Set resource to the MCP URL as people type it: same scheme, host, port, path, and no slash more or less.",
			Reference: "RFC 9728 §3.3", Run: checkResourceIdentity},
		{ID: "resource-root", Title: "The root place has no document of a path", Needs: []string{"resource-served"},
			Fix:       "Serve the root form only where resource is the bare origin.",
			Reference: "RFC 9728 §3.3", Run: checkResourceRoot},
		{ID: "resource-issuers", Title: "It names the authorization server", Needs: []string{"resource-served"},
			Fix:       "List the issuer of the authorization server in authorization_servers, the one to use first.",
			Reference: "RFC 9728 §2; MCP authorization, Authorization Server Location", Run: checkResourceIssuers},
		{ID: "resource-scopes", Title: "Its scopes are its own", Needs: []string{"resource-served"},
			Fix:       "List only the scopes that this server itself asks for at first; offline_access and openid are between a client and the authorization server.",
			Reference: "MCP authorization, Scope Selection Strategy; RFC 9728 §2", Run: checkResourceScopes},
	}
}

// resourceForms asks every place, those of the challenge included.
func (x *examination) resourceForms(ctx context.Context) (forms []form, answers []*exchange) {
	forms = resourceMetadataURLs(x.target)
	if c, found := x.bearer(ctx); found && c.params["resource_metadata"] != "" {
		f := form{named, c.params["resource_metadata"]}
		if u, err := url.Parse(f.url); err == nil && sameOrigin(u, x.target) {
			forms = append([]form{f}, forms...)
		}
	}
	for _, f := range forms {
		answers = append(answers, x.document(ctx, f.url))
	}
	return forms, answers
}

// document asks for a document as every client does.
func (x *examination) document(ctx context.Context, rawURL string) *exchange {
	return x.probe.ask(ctx, get(rawURL, "Accept", "application/json", "MCP-Protocol-Version", protocolVersion))
}

func checkResourcePublic(ctx context.Context, x *examination) Outcome {
	forms, answers := x.resourceForms(ctx)
	// the place of the path, or the root where there is none: resource-named looks
	// at the one that the challenge names, and resource-served at all
	i := slices.IndexFunc(forms, func(f form) bool { return f.name != named })
	if served := firstServed(answers); served >= 0 && served < i {
		return ok("nobody comes to %s", forms[i].url)
	}
	if e := answers[i]; e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		return broken("the document is refused to a client that has no token yet, and cannot get one without it").on(e)
	}
	return ok("no authentication asked for")
}

func checkResourceStatus(ctx context.Context, x *examination) Outcome {
	_, answers := x.resourceForms(ctx)
	served := firstServed(answers)
	for i, e := range answers {
		if out, bad := badStatus(e); bad {
			if served >= 0 && i > served {
				out.State = Warn // most clients have stopped before
			}
			return stopping(out, "resource-status", "resource-served", served >= 0)
		}
	}
	return ok("%s", statuses(answers))
}

// stopping names who stops at a place that fails: those of the check, and everybody
// where no place has a document.
func stopping(out Outcome, check, none string, served bool) Outcome {
	rows := []string{check}
	if out.from.status == http.StatusTooManyRequests {
		rows = []string{rateLimited}
	}
	if !served {
		rows = append(rows, none)
	}
	return out.breaks(rows...)
}

// badStatus judges an answer of a well-known place by its status: clients pass
// over most of 4xx and stop at anything else.
func badStatus(e *exchange) (Outcome, bool) {
	to, redirected := e.redirects()
	switch {
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e), true
	case redirected:
		out := broken("it redirects to %s: clients must not follow, or not off the origin", to).on(e)
		if e.signsOn() {
			out = out.fix(signOnFix)
		}
		return out, true
	case e.status == http.StatusTooManyRequests:
		return broken("429: there is a rate limit, and it leaves no room for a log-in").on(e), true
	case e.status >= 500:
		return broken("%d stops discovery: clients do not try the next place", e.status).on(e), true
	}
	return Outcome{}, false
}

func statuses(answers []*exchange) string {
	var s []string
	for _, e := range answers {
		s = append(s, short(e))
	}
	return strings.Join(s, ", ")
}

func checkResourceFormat(ctx context.Context, x *examination) Outcome {
	_, answers := x.resourceForms(ctx)
	for _, e := range answers {
		if e.status == http.StatusOK {
			if out, bad := badFormat(e); bad {
				return out
			}
		}
	}
	return ok("JSON")
}

// badFormat judges an answer that should be a JSON document.
func badFormat(e *exchange) (Outcome, bool) {
	switch {
	case e.isHTML():
		return broken("a page where a document or 404 is expected, probably the fallback of a web application").on(e), true
	case parseDocument(e.body) == nil:
		return broken("the body is not a JSON object").on(e), true
	case !e.isJSON():
		return broken("JSON as %s", mediaName(e)).on(e), true
	}
	return Outcome{}, false
}

func checkResourceServed(ctx context.Context, x *examination) Outcome {
	forms, answers := x.resourceForms(ctx)
	for i, e := range answers {
		if e.status == http.StatusOK {
			x.resourceDoc, x.resourceFrom = parseDocument(e.body), e
			if i == len(answers)-1 && forms[i].name == "root" {
				return warn("only the root form is served, not the one of the path").on(e).
					fix("Serve the document at %s too.", forms[i-1].url)
			}
			return Outcome{State: OK}.on(e)
		}
	}
	return broken("none of the places has a document (%s)", byPlace(forms, answers)).on(answers[0])
}

// byPlace says what each place answers.
func byPlace(forms []form, answers []*exchange) string {
	var list, seen []string
	for i, f := range forms {
		if slices.Contains(seen, f.url) {
			continue // the challenge names it
		}
		list, seen = append(list, f.name+": "+short(answers[i])), append(seen, f.url)
	}
	return strings.Join(list, ", ")
}

func checkResourceNamed(ctx context.Context, x *examination) Outcome {
	forms, answers := x.resourceForms(ctx)
	switch {
	case forms[0].name != named:
		return skipped("the challenge names none")
	case answers[0].status != http.StatusOK:
		return broken("the challenge names a place that has no document").on(answers[0])
	}
	return Outcome{State: OK}.on(answers[0])
}

func checkResourceIdentity(_ context.Context, x *examination) Outcome {
	got, want := x.resourceDoc.text("resource"), x.o.URL
	if got == want {
		return ok("%s", got)
	}
	out := broken("resource is %q, asked for was %q", got, want).fix("Set resource to %s, and use the same at the authorization server.", want)
	canonical, err := oauth.CanonicalResource(got)
	asked, err2 := oauth.CanonicalResource(want)
	switch {
	case got == "":
		return broken("it has no resource").fix("Set resource to %s.", want)
	case err != nil || err2 != nil:
		return out
	case canonical == asked && strings.Trim(x.target.Path, "/") == "":
		return warn("resource is %q: a slash more or less than what was asked for, which some libraries add themselves", got)
	case canonical == asked:
		out.Why += ": the same but for a slash or the case, and strict clients compare bytes"
		out.Fix = fmt.Sprintf("Set resource to %s, or give people the URL %s.", want, got)
	case strings.TrimPrefix(canonical, "http:") == strings.TrimPrefix(asked, "https:"):
		out.Why += ": the server does not know that its proxy speaks https"
	case insteadOf(got, want):
		out.Why += ": the server probably builds it of the Host header that its proxy sends"
		out.Fix += " " + hostFix
	case oauth.ResourceWithin(canonical, asked):
		out.Why += ": a parent of the URL, which strict clients refuse"
	}
	return out
}

func checkResourceRoot(ctx context.Context, x *examination) Outcome {
	forms, answers := x.resourceForms(ctx)
	last := len(forms) - 1
	if forms[last].name != "root" || answers[last].status != http.StatusOK {
		return ok("nothing there")
	}
	got := parseDocument(answers[last].body).text("resource")
	if u, err := url.Parse(got); err == nil && strings.Trim(u.Path, "/") != "" {
		return warn("the root form describes %q: clients that check it refuse it", got).on(answers[last])
	}
	return ok("%s", got)
}

func checkResourceIssuers(_ context.Context, x *examination) Outcome {
	list := x.resourceDoc.list("authorization_servers")
	switch {
	case len(list) == 0:
		return broken("%s", x.resourceDoc.member("authorization_servers"))
	case !slices.ContainsFunc(list, func(s string) bool { return s != "" }):
		return broken("authorization_servers holds an empty string")
	case len(list) > 1:
		return warn("%d authorization servers: every client known to us takes the first and never tries another", len(list))
	}
	return ok("%s", list[0])
}

func checkResourceScopes(_ context.Context, x *examination) Outcome {
	list := x.resourceDoc.list("scopes_supported")
	if i := slices.IndexFunc(list, oauth.IsProtocolScope); i >= 0 {
		return warn("scopes_supported has %s", list[i])
	}
	if x.resourceDoc.has("scopes_supported") && list == nil {
		return broken("scopes_supported is not a list of strings")
	}
	return ok("%s", fmt.Sprint(len(list), " scopes"))
}
