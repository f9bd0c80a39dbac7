package authserver

import (
	"context"
	"errors"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// refusedBefore reports whether the client asks, beyond what is remembered in row,
// for what this person has refused so often lately that they are not asked again: a
// client that asks in a loop gets its answer without them (pages.md 4.3). That
// holds for prompt=consent too, which some clients send each time; nothing is
// granted here.
func (s *Server) refusedBefore(ctx context.Context, row *consent.Consent, res resource.Resource, c *registration.Client, asked consent.Request) (bool, error) {
	var err error
	if asked.Scopes, err = consent.AllowedNow(res, c, asked.Scopes); err != nil {
		return false, nil // the page says that nothing of it can be allowed
	}
	more := row.Beyond(res, asked)
	if more == nil {
		return false, nil
	}
	return consent.WasRefused(ctx, s.o.Consents, more, s.o.Now())
}

// wantsRefresh reports whether the client asked for a refresh token and may have one.
func wantsRefresh(req *flow.AuthorizationRequest, c *registration.Client) bool {
	return req.OfflineNamed && c.MayUseGrant(registration.GrantRefreshToken)
}

// refusedAgain is the answer for what refusedBefore finds.
func (s *Server) refusedAgain() *oauth.Error {
	return oauth.AccessDenied("the person refused these scopes repeatedly and was not asked again; they can let the client ask at %s/account", s.o.Issuer)
}

// holdExtended holds the consent that a step-up answer adds to. One that is gone,
// or began after the answer, is not what the person saw: they forgot it meanwhile.
func (s *Server) holdExtended(ctx context.Context, req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session) error {
	row, err := s.o.Consents.HoldConsent(ctx, sess.Subject, c.ID, req.RedirectURI, req.Resource)
	if errors.Is(err, store.ErrNotFound) || err == nil && row.CreatedAt.After(req.DecidedAt) {
		return errApprovalGone
	}
	return err
}
