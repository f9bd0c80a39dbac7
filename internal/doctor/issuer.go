package doctor

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// issuerForms are the places where clients look for an issuer's metadata, in MCP's
// order (RFC 8414 §3.1, §5; OpenID Connect Discovery 1.0 §4).
func issuerForms(issuer string) []form {
	u, err := url.Parse(issuer)
	if err != nil {
		return []form{{"RFC 8414", issuer}}
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	forms := []form{
		{"RFC 8414", origin + "/.well-known/oauth-authorization-server" + path},
		{"OpenID, inserted", origin + "/.well-known/openid-configuration" + path},
	}
	if path != "" {
		forms = append(forms, form{"OpenID, appended", origin + path + "/.well-known/openid-configuration"})
	}
	return forms
}

// issuerKnown is what decides which authorization server is looked at.
func issuerKnown() Check {
	return Check{ID: "issuer-known", Title: "The authorization server is known",
		Fix:       "Name it in authorization_servers of the MCP server's metadata, as an https URL without query and fragment.",
		Reference: "RFC 9728 §2; RFC 8414 §2", Run: checkIssuerKnown}
}

func checkIssuerKnown(ctx context.Context, x *examination) Outcome {
	raw := x.ownSpelling(ctx)
	if x.kind == KindServer {
		list := x.resourceDoc.list("authorization_servers")
		if len(list) == 0 {
			return x.legacyIssuer(ctx)
		}
		raw = list[0]
	}
	u, err := url.Parse(raw)
	if err != nil || webURL(u) != nil || u.RawQuery != "" || strings.Contains(raw, "#") {
		return broken("%q is not an issuer: https, a host, perhaps a path, and no more", raw)
	}
	x.issuer = raw
	return ok("%s", raw)
}

// ownSpelling is the issuer that the operator named, with the slash or without it
// as its metadata has it: browsers add one to what people copy.
func (x *examination) ownSpelling(ctx context.Context) string {
	if x.kind != KindIssuer {
		return ""
	}
	for _, f := range issuerForms(x.o.URL) {
		e := x.probe.ask(ctx, get(f.url, "Accept", "application/json"))
		if e.status == 0 {
			break
		}
		if issuer := parseDocument(e.body).text("issuer"); e.status == http.StatusOK && trimSlash(issuer) == trimSlash(x.o.URL) {
			return issuer
		}
	}
	return x.o.URL
}

// legacyIssuer does what clients of 2025-03-26 do: the MCP server's origin is, or
// hands on the metadata of, the authorization server.
func (x *examination) legacyIssuer(ctx context.Context) Outcome {
	if x.state["server-waf"] != OK {
		return skipped("the MCP server did not say")
	}
	e := x.document(ctx, x.target.Scheme+"://"+x.target.Host+"/.well-known/oauth-authorization-server")
	issuer := parseDocument(e.body).text("issuer")
	u, err := url.Parse(issuer)
	if e.status != http.StatusOK || issuer == "" || err != nil || webURL(u) != nil {
		return skipped("the MCP server did not say")
	}
	x.issuer = issuer
	return ok("%s, by the fall-back of 2025-03-26 alone", issuer)
}

func issuerChecks() []Check {
	needs := []string{"issuer-tls", "issuer-waf"}
	return []Check{
		{ID: "issuer-spelling", Title: "The issuer is spelled as everybody compares it", Needs: []string{"issuer-known"},
			Fix:       "Use lower case, no default port and no slash at the end, the same in the metadata, in tokens and in authorization_servers.",
			Reference: "RFC 8414 §2, §3.3; RFC 9207 §2.4", Run: checkIssuerSpelling},
		{ID: "metadata-status", Title: "Its well-known places answer with a document or 404", Needs: needs,
			Fix:       "Answer 404 where there is no document; never redirect, ask for authentication or fail below /.well-known/.",
			Reference: "RFC 8414 §3.2; RFC 8615 §3", Run: checkMetadataStatus},
		{ID: "metadata-format", Title: "What is served there is JSON", Needs: []string{"metadata-status"},
			Fix:       "Serve a JSON object as application/json; exempt /.well-known/ from the fallback of a single-page app.",
			Reference: "RFC 8414 §3.2", Run: checkMetadataFormat},
		{ID: "metadata-served", Title: "The authorization server describes itself (RFC 8414)", Needs: []string{"metadata-format"},
			Fix:       "Serve the metadata with the well-known segment between host and path of the issuer. The proxy must route it.",
			Reference: "RFC 8414 §3.1; MCP authorization, Authorization Server Metadata Discovery", Run: checkMetadataServed},
		{ID: "metadata-issuer", Title: "The metadata is of this issuer", Needs: []string{"metadata-served"},
			Fix:       "Make issuer in the metadata and authorization_servers at the MCP server the same string, byte for byte.",
			Reference: "RFC 8414 §3.3", Run: checkMetadataIssuer},
		{ID: "metadata-agree", Title: "All its forms say the same", Needs: []string{"metadata-served"},
			Fix:       "Serve one document in every form.",
			Reference: "RFC 8414 §5", Run: checkMetadataAgree},
		{ID: "metadata-types", Title: "Its members have the right types", Needs: []string{"metadata-served"},
			Fix:       "Leave out what has no value; send lists of strings, strings and booleans as such.",
			Reference: "RFC 8414 §2", Run: checkMetadataTypes},
		{ID: "metadata-endpoints", Title: "It names its endpoints", Needs: []string{"metadata-types"},
			Fix:       "Add authorization_endpoint, token_endpoint and response_types_supported with code.",
			Reference: "RFC 8414 §2", Run: checkMetadataEndpoints},
		{ID: "metadata-urls", Title: "Its endpoints are public https URLs", Needs: []string{"metadata-types", "metadata-issuer"},
			Fix:       "Configure the public https URL at the authorization server; behind a proxy do not build URLs from the request.",
			Reference: "RFC 8414 §2; OAuth 2.1 §1.5; MCP security best practices, SSRF", Run: checkMetadataURLs},
		{ID: "metadata-pkce", Title: "It offers PKCE with S256", Needs: []string{"metadata-types"},
			Fix:       `Add "code_challenge_methods_supported":["S256"].`,
			Reference: "MCP authorization, Authorization Code Protection; RFC 8414 §2", Run: checkMetadataPKCE},
		{ID: "metadata-public-clients", Title: "It takes clients without a secret", Needs: []string{"metadata-types"},
			Fix:       `Add "none" to token_endpoint_auth_methods_supported.`,
			Reference: "RFC 8414 §2; OAuth 2.1 §2.4", Run: checkMetadataPublic},
		{ID: "metadata-grants", Title: "It lists its grants", Needs: []string{"metadata-types"},
			Fix:       `Add "grant_types_supported":["authorization_code","refresh_token"].`,
			Reference: "RFC 8414 §2", Run: checkMetadataGrants},
		{ID: "metadata-iss", Title: "It promises iss in its responses", Needs: []string{"metadata-types"},
			Fix:       `Send iss in every authorization response, and say "authorization_response_iss_parameter_supported":true.`,
			Reference: "RFC 9207 §2, §3", Run: checkMetadataISS},
		{ID: "metadata-scopes", Title: "It lists its scopes", Needs: []string{"metadata-types"},
			Fix:       "Add scopes_supported, with offline_access where refresh tokens are asked for so.",
			Reference: "RFC 8414 §2", Run: checkMetadataScopes},
		{ID: "metadata-openid", Title: "Its OpenID form is whole", Needs: []string{"metadata-format"},
			Fix:       "Add jwks_uri, subject_types_supported, id_token_signing_alg_values_supported and response_types_supported, or serve 404 there.",
			Reference: "OpenID Connect Discovery 1.0 §3", Run: checkMetadataOpenID},
		{ID: "metadata-unknown", Title: "A well-known place that nobody serves is 404", Needs: []string{"metadata-status"},
			Fix:       "Answer 404 to what you do not know below /.well-known/.",
			Reference: "RFC 8615 §3", Run: checkMetadataUnknown},
		{ID: "metadata-legacy", Title: "Clients of 2025-03-26 find it", Needs: []string{"metadata-served", "server-tls"},
			Fix:       "Serve the authorization server's metadata at /.well-known/oauth-authorization-server of the MCP server's origin too.",
			Reference: "MCP 2025-03-26 authorization, Server Metadata Discovery", Run: checkMetadataLegacy},
	}
}

func checkIssuerSpelling(_ context.Context, x *examination) Outcome {
	u := x.issuerURL()
	switch {
	case strings.HasSuffix(x.issuer, "/"):
		return warn("%q ends with a slash: libraries drop or add it, and comparisons are exact", x.issuer)
	case u.Host != strings.ToLower(u.Host):
		return warn("%q has capitals in its host", x.issuer)
	case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
		return warn("%q names the default port, which libraries drop", x.issuer)
	}
	return ok("%s", x.issuer)
}

// metadataForms asks every place. The first document found is the one that
// clients use.
func (x *examination) metadataForms(ctx context.Context) (forms []form, answers []*exchange) {
	forms = issuerForms(x.issuer)
	for _, f := range forms {
		answers = append(answers, x.document(ctx, f.url))
	}
	return forms, answers
}

// firstServed is the place at which clients stop looking.
func firstServed(answers []*exchange) int {
	return slices.IndexFunc(answers, func(e *exchange) bool { return e.status == http.StatusOK && parseDocument(e.body) != nil })
}

func checkMetadataStatus(ctx context.Context, x *examination) Outcome {
	_, answers := x.metadataForms(ctx)
	served := firstServed(answers)
	for i, e := range answers {
		out, bad := badStatus(e)
		if !bad && (e.status == http.StatusUnauthorized || e.status == http.StatusForbidden) {
			out, bad = broken("the document is refused to a client that has no token yet, and cannot get one without it").on(e), true
		}
		if bad && served >= 0 && i > served {
			out.State = Warn // most clients have stopped before
		}
		if bad {
			return stopping(out, "metadata-status", "metadata-served", served >= 0)
		}
	}
	return ok("%s", statuses(answers))
}

func checkMetadataFormat(ctx context.Context, x *examination) Outcome {
	_, answers := x.metadataForms(ctx)
	for _, e := range answers {
		if e.status == http.StatusOK {
			if out, bad := badFormat(e); bad {
				return out
			}
		}
	}
	return ok("JSON")
}

func checkMetadataServed(ctx context.Context, x *examination) Outcome {
	forms, answers := x.metadataForms(ctx)
	i := firstServed(answers)
	if i < 0 {
		return broken("none of the places has a document (%s)", byPlace(forms, answers)).on(answers[0])
	}
	x.issuerDoc, x.issuerFrom = parseDocument(answers[i].body), answers[i]
	if forms[i].name != "RFC 8414" {
		return warn("only as OpenID configuration: clients that know RFC 8414 alone find nothing").on(answers[i]).
			fix("Serve the document at %s too.", forms[0].url)
	}
	return Outcome{State: OK}.on(answers[i])
}

func checkMetadataIssuer(_ context.Context, x *examination) Outcome {
	got := x.issuerDoc.text("issuer")
	switch {
	case got == x.issuer:
		return ok("%s", got)
	case got == "":
		return broken("it has no issuer")
	case trimSlash(got) == trimSlash(x.issuer):
		return broken("issuer is %q, expected %q: they differ by a slash, and strict clients compare bytes", got, x.issuer)
	case strings.TrimPrefix(got, "http:") == strings.TrimPrefix(x.issuer, "https:"):
		return broken("issuer is %q, expected %q: the server does not know that its proxy speaks https", got, x.issuer)
	}
	out := broken("issuer is %q, expected %q: clients must use nothing of it", got, x.issuer)
	if insteadOf(got, x.issuer) {
		out.Why += "; the server probably builds it of the Host header that its proxy sends"
		out.Fix = hostFix
	}
	return out
}

func checkMetadataAgree(ctx context.Context, x *examination) Outcome {
	forms, answers := x.metadataForms(ctx)
	for i, e := range answers {
		d := parseDocument(e.body)
		if e.status != http.StatusOK || d == nil {
			continue
		}
		for _, name := range []string{"issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint", "jwks_uri"} {
			if d.text(name) != x.issuerDoc.text(name) {
				return broken("the form %s has %s, the first %s", forms[i].name, d.member(name), x.issuerDoc.member(name)).on(e)
			}
		}
	}
	return ok("%s", statuses(answers))
}

func checkMetadataUnknown(ctx context.Context, x *examination) Outcome {
	u := x.issuerURL()
	e := x.document(ctx, u.Scheme+"://"+u.Host+"/.well-known/ostiary-doctor-nothing")
	if out, bad := badStatus(e); bad {
		out.State = Warn
		return out
	}
	if e.status < 300 {
		return warn("status %d for what cannot be there", e.status).on(e)
	}
	return ok("%d", e.status)
}

func checkMetadataLegacy(ctx context.Context, x *examination) Outcome {
	if x.kind == KindIssuer || sameOrigin(x.target, x.issuerURL()) {
		return ok("the MCP server's origin is the issuer's")
	}
	e := x.document(ctx, x.target.Scheme+"://"+x.target.Host+"/.well-known/oauth-authorization-server")
	if e.status != http.StatusOK || !parseDocument(e.body).has("token_endpoint") {
		return warn("the MCP server's origin has no authorization server metadata: old clients know no other place").on(e)
	}
	return ok("served").on(e)
}
