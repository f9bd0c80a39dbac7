package authclient

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"
)

const formType = "application/x-www-form-urlencoded"

// formHeader is the header of a form post that wants JSON back.
func formHeader() http.Header {
	return http.Header{"Content-Type": {formType}, "Accept": {"application/json"}}
}

// postForm authenticates the client, sends the form and returns the answer, whatever
// its status.
func (e *endpoint) postForm(ctx context.Context, as *authorizationServer, what, raw string, r tokenRequest) (*answer, error) {
	header, form := formHeader(), url.Values{}
	maps.Copy(form, r.form)
	if r.auth != nil {
		if err := r.auth.authenticate(as, form, header, e.now()); err != nil {
			return nil, fmt.Errorf("authenticate to the %s endpoint: %w", what, err)
		}
	}
	return e.post(ctx, what, raw, header, []byte(form.Encode()))
}

// token sends r to the server's token endpoint. The error of an answer is a
// *ServerError. It is sent once: a retry is the caller's decision, but for the nonce
// of a DPoP proof (RFC 9449 §8), without which nothing was done.
func (e *endpoint) token(ctx context.Context, as *authorizationServer, r tokenRequest) (*tokenResponse, error) {
	a, err := e.postProving(ctx, as, r)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, readServerError("token", a, e.now())
	}
	return readTokenResponse(a, r.prover != nil, e.now())
}

func (e *endpoint) postProving(ctx context.Context, as *authorizationServer, r tokenRequest) (*answer, error) {
	if r.prover == nil {
		return e.postForm(ctx, as, "token", as.TokenEndpoint, r)
	}
	u, err := e.checkURL("token endpoint", as.TokenEndpoint)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		nonce := e.nonces.get(u)
		proof, err := r.prover.proof(http.MethodPost, u, nonce, "", e.now())
		if err != nil {
			return nil, fmt.Errorf("prove possession of the key: %w", err)
		}
		proving := r
		proving.auth = withProof{r.auth, proof}
		a, err := e.postForm(ctx, as, "token", as.TokenEndpoint, proving)
		if err != nil {
			return nil, err
		}
		fresh := e.nonces.keep(u, a.header, nonce)
		if !first || !fresh || a.status == http.StatusOK || readServerError("token", a, e.now()).Code != "use_dpop_nonce" {
			return a, nil
		}
	}
}

// withProof adds a DPoP proof to what another clientAuth adds.
type withProof struct {
	clientAuth
	proof string
}

func (p withProof) authenticate(as *authorizationServer, form url.Values, header http.Header, now time.Time) error {
	header.Set("DPoP", p.proof)
	if p.clientAuth == nil {
		return nil
	}
	return p.clientAuth.authenticate(as, form, header, now)
}
