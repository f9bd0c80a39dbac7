package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func registrationChecks() []Check {
	return []Check{
		{ID: "registration-way", Title: "A client that nobody prepared can register", Needs: []string{"metadata-types"},
			Fix:       "Support Client ID Metadata Documents and dynamic registration, and say so in the metadata.",
			Reference: "MCP authorization, Client Registration Approaches; RFC 7591 §3", Run: checkRegistrationWay},
		{ID: "registration-answer", Title: "The registration endpoint answers programs", Needs: []string{"metadata-urls"},
			Fix:       "Answer a registration that is wrong with 400 and JSON {\"error\":\"invalid_client_metadata\"}; no page, no redirect, no 5xx.",
			Reference: "RFC 7591 §3.2.2", Run: checkRegistrationAnswer},
		{ID: "cimd-advertised", Title: "It accepts Client ID Metadata Documents", Needs: []string{"metadata-types"},
			Fix:       `Support them and say "client_id_metadata_document_supported":true, with "none" among the authentication methods.`,
			Reference: "MCP authorization, Client ID Metadata Documents; draft-ietf-oauth-client-id-metadata-document §5", Run: checkCIMDAdvertised},
		{ID: "cimd-accepted", Title: "It accepts the document of a real client", Needs: []string{"cimd-advertised", "metadata-endpoints", "metadata-urls", "resource-identity"},
			Fix:       documentFix,
			Reference: "draft-ietf-oauth-client-id-metadata-document §4", Run: checkCIMDAccepted},
		{ID: "registration-works", Title: "A client registers", Needs: []string{"registration-answer"},
			Fix:       "Answer 201 with client_id and every member as it was stored: redirect_uris, numbers as numbers, nothing null.",
			Reference: "RFC 7591 §3.2.1", Run: checkRegistrationWorks},
		{ID: "registration-mixed", Title: "https, loopback and private-use redirect URIs register together", Needs: []string{"registration-works"},
			Fix:       "Accept the three kinds in one request, whatever application_type says.",
			Reference: "RFC 8252 §7; RFC 7591 §2", Run: checkRegistrationMixed},
	}
}

// made is what the examination made and must take back.
type made struct {
	attempt   Attempt
	byURL     candidate
	clients   []registration
	issued    issued
	left      []string
	cleanedUp bool
}

// registration is a client that was registered (RFC 7591 §3.2.1, RFC 7592 §3).
type registration struct {
	id, redirectURI, manageURI string
	secret, manageToken        oauth.Secret
}

func checkRegistrationWay(_ context.Context, x *examination) Outcome {
	dcr, cimd := x.issuerDoc.text("registration_endpoint") != "", x.issuerDoc.is("client_id_metadata_document_supported")
	switch {
	case dcr && cimd:
		return ok("by document and dynamically")
	case dcr:
		return ok("dynamically")
	case cimd:
		return warn("by document alone: clients that have none cannot register")
	}
	return broken("neither registration_endpoint nor client_id_metadata_document_supported: each client must be added by hand")
}

// brokenJSON is a registration that no server can carry out.
const brokenJSON = `{"redirect_uris":`

func checkRegistrationAnswer(ctx context.Context, x *examination) Outcome {
	u := x.issuerDoc.text("registration_endpoint")
	if u == "" {
		return skipped("no registration_endpoint")
	}
	e := x.probe.ask(ctx, post(u, "application/json", brokenJSON, "Accept", "application/json"))
	if e.status == http.StatusUnauthorized {
		return warn("registration needs an initial access token: clients have none").on(e).
			fix("Let clients register without one, or add each of them by hand.")
	}
	if out, bad := badEndpoint(e); bad {
		return out
	}
	if e.status != http.StatusBadRequest {
		return warn("a request that is no JSON gets %d: some clients read the error of a 400 alone", e.status).on(e)
	}
	return ok("%d %s", e.status, oauthError(e)).on(e)
}

func checkCIMDAdvertised(_ context.Context, x *examination) Outcome {
	switch {
	case !x.issuerDoc.is("client_id_metadata_document_supported"):
		return warn("%s", x.issuerDoc.member("client_id_metadata_document_supported"))
	case !slices.Contains(x.issuerDoc.list("token_endpoint_auth_methods_supported"), "none"):
		return broken("advertised, but %s has no none: clients then do not use their documents", x.issuerDoc.member("token_endpoint_auth_methods_supported"))
	}
	return ok("advertised")
}

const documentFix = "See what the page says. The server must be able to fetch the document: let it reach the Internet, and look in its log for a 403 of the client's host."

func checkCIMDAccepted(ctx context.Context, x *examination) Outcome {
	if !x.issuerDoc.is("client_id_metadata_document_supported") {
		return skipped("not advertised")
	}
	if checkAuthorizeAnswer(ctx, x).State == Broken {
		return skipped("authorize-answer is broken")
	}
	c, out := x.clientByURL(ctx)
	if out.State != OK {
		return out
	}
	e := x.openAuthorize(ctx, x.authorizeURL(c.id, c.redirectURI))
	switch {
	case accepted(e, c.redirectURI):
	case e.status == http.StatusServiceUnavailable && isLoopbackHost(x.issuerURL().Hostname()):
		return warn("the server cannot read %s just now: is this machine on the Internet?", c.id).on(e).fix(documentFix)
	case e.status == http.StatusServiceUnavailable:
		return broken("the server cannot read %s", c.id).on(e).fix(documentFix)
	case x.kind == KindIssuer:
		return skipped("the client %s is refused, perhaps because no resource is named: examine an MCP server", c.id)
	default:
		return broken("the client %s is refused", c.id).on(e)
	}
	x.byURL = c
	return ok("%s", c.id)
}

// clientByURL is Claude Code, or the client whose document the operator named.
func (x *examination) clientByURL(ctx context.Context) (candidate, Outcome) {
	const how = "by its document"
	if x.o.ClientMetadataURL == "" {
		c, _ := knowledge().Client("claude-code")
		return candidate{c.Document, c.Redirect, how}, ok("")
	}
	e := x.document(ctx, x.o.ClientMetadataURL)
	d := parseDocument(e.body)
	redirects := d.list("redirect_uris")
	if e.status != http.StatusOK || len(redirects) == 0 || d.text("client_id") != x.o.ClientMetadataURL {
		return candidate{}, skipped("%s is no client metadata document that can be read from here (%s)", x.o.ClientMetadataURL, short(e))
	}
	return candidate{x.o.ClientMetadataURL, redirects[0], how}, ok("")
}

// registrationBody is what clients send (C10).
func registrationBody(redirectURIs ...string) string {
	body := map[string]any{"client_name": "ostiary doctor", "redirect_uris": redirectURIs, "application_type": "native",
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none"}
	b, _ := json.Marshal(body) // strings and lists of them marshal
	return string(b)
}

// register registers a client and remembers to take it back.
func (x *examination) register(ctx context.Context, redirectURIs ...string) (registration, *exchange) {
	e := x.probe.send(ctx, post(x.issuerDoc.text("registration_endpoint"), "application/json", registrationBody(redirectURIs...), "Accept", "application/json"))
	d := parseDocument(e.body)
	r := registration{id: d.text("client_id"), redirectURI: redirectURIs[0], manageURI: d.text("registration_client_uri"),
		secret: oauth.Secret(d.text("client_secret")), manageToken: oauth.Secret(d.text("registration_access_token"))}
	x.secrets.add(r.secret, r.manageToken)
	if r.id != "" && e.status < 300 {
		x.clients = append(x.clients, r)
	}
	return r, e
}

const needsWrite = "nothing is registered without --write"

func checkRegistrationWorks(ctx context.Context, x *examination) Outcome {
	switch {
	case x.issuerDoc.text("registration_endpoint") == "":
		return skipped("no registration_endpoint")
	case !x.o.Write:
		return skipped(needsWrite)
	}
	r, e := x.register(ctx, x.redirectURI(ctx))
	if e.err != nil || e.status < 200 || e.status > 299 {
		return broken("a public native client with a loopback redirect URI is refused: %s", oauthError(e)).on(e)
	}
	if out := checkRegistrationDocument(parseDocument(e.body), r); out.State != OK {
		return out.on(e)
	}
	if e.status != http.StatusCreated {
		return warn("status %d, not 201", e.status).on(e)
	}
	return ok("201 with a client_id")
}

// checkRegistrationDocument reads a response as the parsers with a schema do.
func checkRegistrationDocument(d document, r registration) Outcome {
	switch {
	case r.id == "":
		return broken("no client_id")
	case !slices.Contains(d.list("redirect_uris"), r.redirectURI):
		return broken("%s: the redirect URI that was sent is not in it", d.member("redirect_uris"))
	case r.secret != "":
		return warn("a client that asked for none got a client_secret: parsers then expect it to be used")
	case d.text("token_endpoint_auth_method") != "none":
		return warn("%s: clients take its absence for client_secret_basic", d.member("token_endpoint_auth_method"))
	}
	for _, name := range []string{"client_id_issued_at", "client_secret_expires_at"} {
		if v, found := d[name]; found && !fits[float64](v) {
			return broken("%s is %s, not a number", name, v)
		}
	}
	for name, v := range d {
		if s := string(v); s == "null" || s == `""` && slices.Contains([]string{"client_uri", "jwks_uri"}, name) {
			return broken("%s is %s: leave it out", name, s)
		}
	}
	return ok("")
}

// checkRegistrationMixed registers as Cursor does.
func checkRegistrationMixed(ctx context.Context, x *examination) Outcome {
	cursor, _ := knowledge().Client("cursor")
	_, e := x.register(ctx, cursor.Redirects...)
	if e.err != nil || e.status < 200 || e.status > 299 {
		return broken("the redirect URIs of Cursor are refused together: %s", oauthError(e)).on(e)
	}
	kept := parseDocument(e.body).list("redirect_uris")
	if len(kept) != len(cursor.Redirects) {
		return broken("%d of %d redirect URIs were kept", len(kept), len(cursor.Redirects)).on(e)
	}
	return ok("%d redirect URIs", len(kept))
}

// cleanUp takes back what was made, once. It has a time of its own: a server that
// has used up the examination's, or somebody who interrupts, leaves nothing behind.
func (x *examination) cleanUp(ctx context.Context) {
	if x.cleanedUp {
		return
	}
	x.cleanedUp = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	x.closeAttempt()
	x.revokeIssued(ctx)
	for _, c := range x.clients {
		if !x.unregister(ctx, c) {
			x.left = append(x.left, "client "+c.id)
		}
	}
}

// unregister removes a client (RFC 7592 §2.3). Its token goes to the issuer's own
// origin alone.
func (x *examination) unregister(ctx context.Context, c registration) bool {
	u, err := url.Parse(c.manageURI)
	endpoint, err2 := url.Parse(x.issuerDoc.text("registration_endpoint"))
	if err != nil || err2 != nil || c.manageToken == "" || !sameOrigin(u, endpoint) {
		return false
	}
	q := get(c.manageURI, "Authorization", "Bearer "+c.manageToken.Reveal())
	q.method = http.MethodDelete
	e := x.probe.send(ctx, q)
	return e.err == nil && (e.status == http.StatusNoContent || e.status == http.StatusOK)
}
