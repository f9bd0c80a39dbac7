package authclient

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// redeem asks the person by the means of the attempt and gets the tokens. began is
// when they were asked for.
func (c *Client) redeem(ctx context.Context, a Attempt, w *wanted) (r *tokenResponse, began time.Time, err error) {
	if a.RedirectURI() == "" {
		return c.redeemDevice(ctx, a, w)
	}
	q := codeRequest{redirectURI: a.RedirectURI(), state: randomSecret(), verifier: randomSecret()}
	show, err := w.authorizationURL(q)
	if err != nil {
		return nil, began, fmt.Errorf("build the authorization request: %w", err)
	}
	answer, err := a.Authorize(ctx, show)
	if err != nil {
		return nil, began, err
	}
	code, err := c.readCallback(answer, q.state, w.place.server)
	if err != nil {
		return nil, began, err
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code.Reveal()},
		"redirect_uri": {q.redirectURI}, "code_verifier": {q.verifier}}
	if w.place.resource != "" {
		form.Set("resource", w.place.resource) // rule C2
	}
	// the code is good for one try, which the end of the caller's request must not spoil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	began = c.o.Now()
	r, err = c.endpoint.token(ctx, w.place.server, tokenRequest{form: form, auth: w.client.auth, prover: proving(w.key)})
	return r, began, err
}

// codeRequest is what an authorization request and its answer have in common.
type codeRequest struct {
	redirectURI, state, verifier string
}

// authorizationURL builds the request (OAuth 2.1 §4.1.1).
func (w *wanted) authorizationURL(q codeRequest) (string, error) {
	as := w.place.server
	u, err := url.Parse(as.AuthorizationEndpoint)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(q.verifier))
	v := u.Query() // RFC 6749 §3.1: a query of the endpoint is kept
	v.Set("response_type", "code")
	v.Set("client_id", w.client.id)
	v.Set("redirect_uri", q.redirectURI)
	v.Set("state", q.state)
	v.Set("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
	v.Set("code_challenge_method", "S256")
	if w.place.resource != "" {
		v.Set("resource", w.place.resource) // rule C2
	}
	if len(w.scopes) > 0 {
		v.Set("scope", strings.Join(w.scopes, " "))
	}
	if slices.Contains(w.scopes, oauth.OfflineAccess) &&
		(as.PromptValuesSupported == nil || slices.Contains(as.PromptValuesSupported, "consent")) {
		v.Set("prompt", "consent") // OpenID Connect Core 1.0 §11: without it the scope is ignored
	}
	if w.key != nil {
		v.Set("dpop_jkt", w.key.thumbprint()) // RFC 9449 §10
	}
	u.RawQuery = v.Encode()
	return u.String(), nil
}

// readCallback checks what the browser brought back and returns the code. Who it is
// from is settled before anything that it says is believed or shown (rule C3).
func (c *Client) readCallback(v url.Values, state string, as *authorizationServer) (Secret, error) {
	for _, name := range []string{"code", "state", "iss", "error", "error_description"} {
		if len(v[name]) > 1 {
			return "", refused("the answer of the login repeats %s", name)
		}
	}
	if !Secret(state).Equal(Secret(v.Get("state"))) {
		return "", refused("the answer belongs to another login")
	}
	switch iss := v.Get("iss"); {
	case iss != "" && !c.sameIssuer(iss, as.Issuer): // MM-09
		return "", refused("the answer of the login is from %s, and was asked of %s", quoted(iss), quoted(as.Issuer))
	case iss == "" && as.AuthorizationResponseISSParameterSupported:
		return "", refused("the answer of the login does not say that it is from %s, which promises to say so", quoted(as.Issuer))
	}
	if code := v.Get("error"); code != "" {
		err := &ServerError{Endpoint: "authorization", Code: code, Description: v.Get("error_description")}
		if code == "access_denied" {
			return "", fmt.Errorf("%w: %w", ErrDenied, err)
		}
		return "", err
	}
	code := v.Get("code")
	if code == "" || len(code) > maxToken {
		return "", errors.New("the answer of the login has no code")
	}
	return Secret(code), nil
}

// randomSecret is 256 random bits in base64url, 43 characters: a state, a verifier
// (RFC 7636 §4.1).
func randomSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
