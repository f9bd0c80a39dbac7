package doctor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// issued is what a log-in gave.
type issued struct {
	callback           url.Values
	verifier, clientID string
	access, refresh    oauth.Secret
	// tried is set once revocation was, and revoked when it worked.
	tried, revoked bool
}

// fixedRedirect is the redirect URI of a client that nobody logs in with.
const fixedRedirect = "http://127.0.0.1:49320/callback"

// redirectURI is where the person will come back, when there is one.
func (x *examination) redirectURI(ctx context.Context) string {
	if x.o.Begin == nil || x.o.Token != "" || x.kind != KindServer {
		return fixedRedirect
	}
	a, err := x.o.Begin(ctx)
	if err != nil {
		return fixedRedirect
	}
	x.attempt = a
	return a.RedirectURI()
}

func (x *examination) closeAttempt() {
	if x.attempt != nil {
		_ = x.attempt.Close() // a listener that is gone is what is wanted
	}
}

func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b)
}

// scopes are those that a client asks for: the challenge's, else the document's
// (MCP, Scope Selection Strategy), and a refresh token where one is offered.
func (x *examination) scopes(ctx context.Context) string {
	list := x.resourceDoc.list("scopes_supported")
	if c, found := x.bearer(ctx); found && c.params["scope"] != "" {
		list = strings.Fields(c.params["scope"])
	}
	if slices.Contains(x.issuerDoc.list("scopes_supported"), oauth.OfflineAccess) {
		list = append(slices.Clone(list), oauth.OfflineAccess)
	}
	return strings.Join(list, " ")
}

func checkLogin(ctx context.Context, x *examination) Outcome {
	switch {
	case x.o.Token != "":
		return skipped("a token was given")
	case !x.o.Write || x.o.Begin == nil:
		return skipped("nobody logs in without --write")
	case x.attempt == nil || len(x.clients) == 0:
		return skipped("no client was registered to log in with")
	}
	state := random()
	x.issued.verifier, x.issued.clientID = random(), x.clients[0].id
	x.secrets.add(oauth.Secret(state), oauth.Secret(x.issued.verifier))
	sum := sha256.Sum256([]byte(x.issued.verifier))
	scopes, prompt := x.scopes(ctx), ""
	if slices.Contains(strings.Fields(scopes), oauth.OfflineAccess) {
		prompt = "consent" // OpenID Connect Core 1.0 §11 wants it with offline_access
	}
	u := x.authorizeURL(x.issued.clientID, x.attempt.RedirectURI(), "state", state, "scope", scopes, "prompt", prompt,
		"code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
	x.deadline.pause()
	callback, err := x.attempt.Authorize(ctx, u)
	x.deadline.resume()
	if err != nil {
		return broken("nobody came back: %s", err)
	}
	return x.judgeResponse(callback, state)
}

// judgeResponse looks at an authorization response before anything in it is used.
// One that clients must refuse, because another server sent it or may have (RFC
// 9207 §2.4), loses all but its iss: the code may be an honest server's, and this
// token endpoint an attacker's (C3).
func (x *examination) judgeResponse(response url.Values, state string) Outcome {
	for _, code := range response["code"] {
		x.secrets.add(oauth.Secret(code))
	}
	for _, name := range []string{"state", "iss", "code", "error"} {
		if n := len(response[name]); n > 1 { // RFC 6749 §3.1
			return broken("%s stands in the response %d times", name, n).fix("Send each parameter once.")
		}
	}
	if response.Get("state") != state {
		return broken("the response has another state than the request").fix("Return state unchanged, byte for byte.")
	}
	if iss := response["iss"]; x.refusesISS(iss) {
		x.issued.callback = url.Values{"iss": iss}
		return ok("a response")
	}
	x.issued.callback = response
	switch {
	case response.Get("error") != "":
		return broken("the response is the error %s", response.Get("error"))
	case response.Get("code") == "":
		return broken("the response has no code")
	}
	return ok("a code")
}

// promisesISS reports whether every response has iss, says the metadata.
func (x *examination) promisesISS() bool {
	return x.issuerDoc.is("authorization_response_iss_parameter_supported")
}

// refusesISS reports whether clients must refuse a response for its iss: a wrong
// one, or none where one is promised.
func (x *examination) refusesISS(iss []string) bool {
	if len(iss) == 0 {
		return x.promisesISS()
	}
	return iss[0] != x.issuerDoc.text("issuer")
}

func checkResponseISS(_ context.Context, x *examination) Outcome {
	got := x.issued.callback["iss"]
	switch refused := x.refusesISS(got); {
	case refused && len(got) == 0:
		return broken("promised in the metadata, but the response has no iss: clients must refuse it, and its code was not redeemed")
	case refused:
		return broken("iss is %q, the issuer %q: clients must refuse the response, and its code was not redeemed", got[0], x.issuerDoc.text("issuer"))
	case len(got) == 0:
		return warn("the response has no iss")
	case !x.promisesISS():
		return broken("the response has iss, but the metadata does not promise it: strict clients refuse what was not promised")
	}
	return ok("%s", got[0])
}

// redeem asks the token endpoint as a public client.
func (x *examination) redeem(ctx context.Context, v url.Values) *exchange {
	v.Set("client_id", x.issued.clientID)
	e := x.probe.send(ctx, post(x.issuerDoc.text("token_endpoint"), formType, v.Encode(), "Accept", "application/json"))
	d := parseDocument(e.body)
	x.secrets.add(oauth.Secret(d.text("access_token")), oauth.Secret(d.text("refresh_token")))
	return e
}

func checkTokenResponse(ctx context.Context, x *examination) Outcome {
	if x.issued.callback.Get("code") == "" {
		return skipped("login-iss refused the response")
	}
	e := x.redeem(ctx, url.Values{"grant_type": {"authorization_code"}, "code": {x.issued.callback.Get("code")},
		"redirect_uri": {x.attempt.RedirectURI()}, "code_verifier": {x.issued.verifier}, "resource": {x.resource()}})
	d := parseDocument(e.body)
	x.issued.access, x.issued.refresh = oauth.Secret(d.text("access_token")), oauth.Secret(d.text("refresh_token"))
	switch {
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e)
	case e.status != http.StatusOK:
		return broken("the code is refused: %s", oauthError(e)).on(e)
	case x.issued.access == "":
		return broken("no access_token").on(e)
	case !strings.EqualFold(d.text("token_type"), "Bearer"):
		return broken("%s", d.member("token_type")).on(e)
	case d.has("expires_in") && !fits[float64](d["expires_in"]):
		return broken("%s, not a number", d.member("expires_in")).on(e)
	case !d.has("expires_in"):
		return warn("no expires_in: clients cannot refresh in time").on(e)
	case !strings.Contains(e.header.Get("Cache-Control"), "no-store"):
		return warn("a response with tokens has Cache-Control %q", e.header.Get("Cache-Control")).on(e)
	}
	return ok("a token for %s seconds", d["expires_in"])
}

// checkRefresh refreshes as the laxest client does, without resource and scope:
// both stay what they were (RFC 6749 §6).
func checkRefresh(ctx context.Context, x *examination) Outcome {
	if x.issued.refresh == "" {
		return warn("no refresh token: people log in again whenever a token expires")
	}
	e := x.redeem(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {x.issued.refresh.Reveal()}})
	before := x.issued.refresh
	if !x.refreshed(e) {
		return broken("the refresh token is refused: %s", oauthError(e)).on(e)
	}
	if x.issued.refresh.Equal(before) {
		return warn("the refresh token of a public client was not rotated: a stolen copy is never noticed").
			fix("Rotate refresh tokens of public clients.")
	}
	return ok("a new access token, the refresh token rotated")
}

// refreshed keeps the tokens of a successful answer, so that they are taken back,
// and reports whether it has an access token.
func (x *examination) refreshed(e *exchange) bool {
	if e.err != nil || e.status != http.StatusOK {
		return false
	}
	d := parseDocument(e.body)
	if next := d.text("refresh_token"); next != "" {
		x.issued.refresh = oauth.Secret(next)
	}
	access := d.text("access_token")
	if access != "" {
		x.issued.access = oauth.Secret(access)
	}
	return access != ""
}

// checkRevoked revokes what was issued and looks whether that is so.
func checkRevoked(ctx context.Context, x *examination) Outcome {
	token := x.issued.refresh
	if _, opaque := x.jwt(); token == "" && !opaque {
		return skipped("there is only a JWT, which ends by itself (RFC 7009 §3)")
	}
	if x.issuerDoc.text("revocation_endpoint") == "" {
		return skipped("no revocation_endpoint")
	}
	x.revokeIssued(ctx)
	if !x.issued.revoked {
		return broken("the revocation is refused")
	}
	if token == "" {
		return ok("the access token")
	}
	e := x.redeem(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Reveal()}})
	if e.err == nil && e.status == http.StatusOK {
		x.refreshed(e)
		x.revokeAgain(ctx)
		return broken("the refresh token works after it was revoked").on(e)
	}
	return ok("the refresh token is dead")
}

// revokeIssued revokes the tokens of the log-in at their issuer (RFC 7009 §2.1),
// once. An access token that is a JWT and alone ends by itself.
func (x *examination) revokeIssued(ctx context.Context) {
	token, alone := x.issued.refresh, false
	if token == "" {
		_, opaque := x.jwt()
		token, alone = x.issued.access, !opaque
	}
	if token == "" || x.issued.tried {
		return
	}
	x.issued.tried = true
	if u := x.issuerDoc.text("revocation_endpoint"); u != "" {
		e := x.probe.send(ctx, post(u, formType, url.Values{"token": {token.Reveal()}, "client_id": {x.issued.clientID}}.Encode()))
		x.issued.revoked = e.err == nil && e.status == http.StatusOK
	}
	if !x.issued.revoked && !alone {
		x.leaveGrant()
	}
}

func (x *examination) leaveGrant() {
	x.left = append(x.left, "a grant of client "+x.issued.clientID)
}

// revokeAgain revokes what a refresh after the revocation has brought. The grant is
// listed whatever the server says to that: its word has been wrong once.
func (x *examination) revokeAgain(ctx context.Context) {
	x.issued.tried, x.issued.revoked = false, false
	if x.revokeIssued(ctx); x.issued.revoked {
		x.leaveGrant()
	}
}
