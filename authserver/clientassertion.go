package authserver

import (
	"context"
	"errors"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// isAssertion reports whether a request authenticates its client by
// private_key_jwt (RFC 7521 §4.2).
func isAssertion(p oauth.Params) bool {
	return p.Get("client_assertion") != "" || p.Get("client_assertion_type") != ""
}

// authenticateByAssertion checks a client assertion. It is used up as the last
// step, so that no refusal costs the client anything (A18).
func (s *Server) authenticateByAssertion(ctx context.Context, u *unit) error {
	if u.header != "" || u.params.Get("client_secret") != "" {
		// RFC 6749 §2.3: not more than one method in a request
		return oauth.InvalidRequest("a client assertion and a client secret are in one request")
	}
	if u.params.Get("client_assertion_type") != registration.AssertionType {
		return oauth.InvalidClient("client_assertion_type must be %s", registration.AssertionType)
	}
	a, err := s.assertions.Read(oauth.Secret(u.params.Get("client_assertion")), u.now)
	if err != nil {
		return err
	}
	// RFC 7521 §4.2: client_id is not needed, and names the same client
	if id := u.params.Get("client_id"); id != "" && id != a.ClientID {
		return oauth.InvalidClient("client_id is not the sub of the client assertion")
	}
	c, err := s.clientFor(ctx, u, a.ClientID)
	if errors.Is(err, store.ErrNotFound) {
		return errClient(false).With(err)
	}
	if err != nil {
		return err
	}
	if !c.Enabled() || c.Metadata.TokenEndpointAuthMethod != registration.AuthPrivateKeyJWT {
		return errClient(false)
	}
	if err := s.assertions.Check(ctx, c, a, u.now); errors.Is(err, registration.ErrAssertion) {
		return errClient(false).With(err)
	} else if err != nil {
		return err
	}
	u.client, u.method = c, registration.AuthPrivateKeyJWT
	return nil
}
