package authclient

import (
	"context"
	"fmt"
	"net/url"
	"time"
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
