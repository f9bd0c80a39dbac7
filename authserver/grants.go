package authserver

import (
	"context"

	"github.com/ory/fosite"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
)

// grantType is one value of grant_type. Adding a grant type is one file and one
// line in newGrantTypes; metadata and tests read that list.
type grantType struct {
	name string
	// advertised says whether grant_types_supported lists it.
	advertised bool
	// kind and param say which token string it redeems; "" for none.
	kind, param string
	// check applies every rule that can be applied before anything is written.
	check func(ctx context.Context, u *unit) error
	// issue writes and fills u.result.
	issue func(ctx context.Context, u *unit) error
}

// newGrantTypes is the list of grants.
func (s *Server) newGrantTypes() []grantType {
	return []grantType{
		{name: registration.GrantAuthorizationCode, advertised: true, kind: kindCode, param: "code",
			check: s.checkCode, issue: s.redeemCode},
		{name: registration.GrantRefreshToken, advertised: true, kind: kindRefresh, param: "refresh_token",
			check: s.checkRefresh, issue: s.refresh},
		{name: registration.GrantClientCredentials, advertised: true,
			check: s.checkClientCredentials, issue: s.issueClientCredentials},
	}
}

func (s *Server) grantType(name string) (grantType, bool) {
	for _, g := range s.grants {
		if g.name == name {
			return g, true
		}
	}
	return grantType{}, false
}

// grantTypesSupported is what the metadata advertises.
func (s *Server) grantTypesSupported() []string {
	var names []string
	for _, g := range s.grants {
		if g.advertised {
			names = append(names, g.name)
		}
	}
	return names
}

// grantHandler is a grantType as fosite drives it: client authentication, then
// check, then issue.
type grantHandler struct{ g grantType }

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (h *grantHandler) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	return r.GetGrantTypes().ExactOne(h.g.name)
}

// CanSkipClientAuth implements fosite.TokenEndpointHandler: never.
func (h *grantHandler) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// HandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (h *grantHandler) HandleTokenEndpointRequest(ctx context.Context, _ fosite.AccessRequester) error {
	u := unitFrom(ctx)
	if !u.client.MayUseGrant(h.g.name) {
		return oauth.UnauthorizedClient("the client is not registered for this grant_type")
	}
	return h.g.check(ctx, u)
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (h *grantHandler) PopulateTokenEndpointResponse(ctx context.Context, _ fosite.AccessRequester, resp fosite.AccessResponder) error {
	u := unitFrom(ctx)
	if err := h.g.issue(ctx, u); err != nil {
		return err
	}
	resp.SetAccessToken(u.result.accessToken.Reveal())
	resp.SetTokenType(u.result.tokenType())
	return nil
}

var _ fosite.TokenEndpointHandler = (*grantHandler)(nil)
