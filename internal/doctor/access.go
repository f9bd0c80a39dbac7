package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// longLife is when an access token is no longer short-lived.
const longLife = 24 * time.Hour

func accessChecks() []Check {
	needs := []string{"challenge-status", "metadata-issuer"}
	return []Check{
		{ID: "login", Title: "A person logs in", Needs: []string{"registration-works", "authorize-accepts"},
			Fix: "See what the page or the response says.", Reference: "RFC 6749 §4.1.2", Run: checkLogin},
		{ID: "login-iss", Title: "The response names its issuer", Needs: []string{"login"},
			Fix:       "Send the issuer as iss in every authorization response, errors included, and promise it in the metadata.",
			Reference: "RFC 9207 §2, §2.4", Run: checkResponseISS},
		{ID: "login-token", Title: "The code is redeemed", Needs: []string{"login"},
			Fix:       "Answer 200, JSON with access_token, token_type Bearer, expires_in as a number, and Cache-Control: no-store.",
			Reference: "RFC 6749 §5.1", Run: checkTokenResponse},
		{ID: "access-token", Title: "There is a token to look at", Needs: needs, Run: checkAccessToken},
		{ID: "access-issuer", Title: "The token is of this issuer", Needs: []string{"access-token"},
			Fix:       "Set iss to the issuer of the metadata, byte for byte.",
			Reference: "RFC 9068 §2.2, §4", Run: checkAccessIssuer},
		{ID: "access-audience", Title: "The token is for this MCP server", Needs: []string{"access-token", "resource-identity"},
			Fix:       "Register the MCP URL as a resource at the authorization server, and put exactly it into aud when a client asks with resource.",
			Reference: "RFC 8707 §2; RFC 9068 §3; MCP authorization, Token Audience Binding", Run: checkAccessAudience},
		{ID: "access-signature", Title: "A published key has signed it", Needs: []string{"access-token", "keys-usable"},
			Fix:       "Publish the key that signs, under the kid of the token, before it signs.",
			Reference: "RFC 9068 §4; RFC 8725 §3.1", Run: checkAccessSignature},
		{ID: "access-lifetime", Title: "It is valid now, and not for long", Needs: []string{"access-token"},
			Fix:       "Issue access tokens for minutes, typ at+jwt, with the clock set by NTP.",
			Reference: "RFC 9068 §2.1, §2.2; RFC 9700 §2.2.1", Run: checkAccessLifetime},
		{ID: "access-accepted", Title: "The MCP server accepts it", Needs: []string{"access-token", "access-issuer", "access-audience", "resource-identity", "server-tls"},
			Fix:       "See the challenge: the MCP server must expect this issuer and its own URL as audience, and the proxy must pass Authorization on.",
			Reference: "RFC 6750 §3.1; RFC 9068 §4", Run: checkAccessAccepted},
		{ID: "refresh", Title: "The token can be refreshed", Needs: []string{"login-token"},
			Fix:       "Issue refresh tokens, and let clients refresh without scope and resource: both stay as granted.",
			Reference: "RFC 6749 §6; RFC 8707 §2.2; OAuth 2.1 §4.3.1", Run: checkRefresh},
		{ID: "login-revoked", Title: "Revoking ends the grant", Needs: []string{"login-token"},
			Fix:       "Answer 200 to the revocation of a client's own refresh token and refuse it from then on.",
			Reference: "RFC 7009 §2.1", Run: checkRevoked},
		{ID: "registration-removed", Title: "What was registered is removed again", Needs: []string{"registration-works"},
			Fix:       "Offer RFC 7592: registration_client_uri and registration_access_token. Remove by hand what the report lists.",
			Reference: "RFC 7592 §2.3", Run: checkRemoved},
	}
}

// token is the one that was given, else that of the log-in.
func (x *examination) token() oauth.Secret {
	if x.o.Token != "" {
		return x.o.Token
	}
	return x.issued.access
}

func checkAccessToken(_ context.Context, x *examination) Outcome {
	switch {
	case x.kind == KindIssuer:
		return skipped("a token is for an MCP server: examine one")
	case x.token() == "":
		return skipped("no token: --token-stdin gives one, --write lets you log in")
	}
	if _, opaque := x.jwt(); opaque {
		return ok("opaque: only the MCP server and the issuer can read it")
	}
	return ok("a JWT")
}

// jwt takes the token apart; nothing in it is proven.
func (x *examination) jwt() (j *jose.JWS, opaque bool) {
	j = &jose.JWS{}
	err := j.Split(x.token().Reveal())
	return j, errors.Is(err, jose.ErrNotJWS)
}

var opaqueToken = ok("opaque")

func checkAccessIssuer(_ context.Context, x *examination) Outcome {
	j, opaque := x.jwt()
	if opaque {
		return opaqueToken
	}
	if iss, _ := j.Claims.Str("iss"); iss != x.issuerDoc.text("issuer") {
		return broken("iss is %q, the issuer %q; the token was sent nowhere", iss, x.issuerDoc.text("issuer"))
	}
	return ok("%s", x.issuer)
}

// audiences are aud's, a string or a list (RFC 7519 §4.1.3).
func audiences(j *jose.JWS) []string {
	raw := j.Claims.Get("aud")
	if s, isString := strictjson.String(raw); isString {
		return []string{s}
	}
	return strictjson.Strings(raw)
}

// checkAccessAudience compares with the URL that the operator typed: what a server
// says of itself must not decide which tokens it is shown (C9).
func checkAccessAudience(_ context.Context, x *examination) Outcome {
	j, opaque := x.jwt()
	if opaque {
		return opaqueToken
	}
	list, want := audiences(j), x.o.URL
	canonical, err := oauth.CanonicalResource(want)
	same := func(a string) bool {
		c, err2 := oauth.CanonicalResource(a)
		return a == want || err == nil && err2 == nil && c == canonical
	}
	shown, _ := json.Marshal(list) // strings marshal
	if !slices.ContainsFunc(list, same) {
		return broken("aud is %s, not %q; the token was sent nowhere", shown, want)
	}
	if named := x.resource(); same(named) {
		want = named // the bytes that clients ask with (C2)
	}
	switch {
	case !slices.Contains(list, want):
		return warn("aud is %s, the resource %q: strict servers compare bytes", shown, want)
	case len(list) > 1:
		return warn("aud is %s: the token opens other servers too", shown)
	}
	return ok("%s", want)
}

func checkAccessSignature(ctx context.Context, x *examination) Outcome {
	j, opaque := x.jwt()
	if opaque {
		return opaqueToken
	}
	if err := x.verifySignature(ctx, j); err != nil {
		return broken("%s", err)
	}
	return ok("verified")
}

func checkAccessLifetime(_ context.Context, x *examination) Outcome {
	j, opaque := x.jwt()
	if opaque {
		return opaqueToken
	}
	now := x.o.Now()
	exp, found := j.Claims.Seconds("exp")
	begin, begins := j.Claims.Seconds("nbf")
	if !begins {
		begin, begins = j.Claims.Seconds("iat")
	}
	typ, _ := j.Header.Str("typ")
	switch {
	case !found:
		return broken("it has no exp")
	case !exp.After(now):
		return broken("it expired %s ago", now.Sub(exp).Round(time.Second))
	case begins && begin.After(now.Add(time.Minute)):
		return broken("it begins in %s: the issuer's clock is ahead", begin.Sub(now).Round(time.Second))
	case exp.Sub(now) > longLife:
		return warn("it is valid for %s", exp.Sub(now).Round(time.Second))
	case !strings.EqualFold(strings.TrimPrefix(typ, "application/"), "at+jwt"):
		return warn("typ is %q, not at+jwt: a receiver cannot tell it from an ID token", typ)
	}
	return ok("at+jwt")
}

// checkAccessAccepted shows the token to the server that the operator named, with
// a message that does nothing.
func checkAccessAccepted(ctx context.Context, x *examination) Outcome {
	e := x.probe.send(ctx, message(x.o.URL, impossible, "Authorization", "Bearer "+x.token().Reveal()))
	switch {
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e)
	case e.status == http.StatusUnauthorized:
		return broken("the token is refused").on(e)
	case e.status == http.StatusForbidden:
		return ok("403: the token is good, and opens no method that does not exist")
	case e.status >= 500:
		return broken("the server fails").on(e)
	}
	return ok("%d", e.status)
}

func checkRemoved(ctx context.Context, x *examination) Outcome {
	x.cleanUp(ctx)
	if len(x.left) > 0 {
		return warn("left: %s", strings.Join(x.left, ", "))
	}
	return ok("%d clients", len(x.clients))
}
