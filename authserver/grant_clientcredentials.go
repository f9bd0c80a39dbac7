package authserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// touchInterval is how exact the last use of a machine client is: a write for
// each token would cost more than the token.
const touchInterval = time.Hour

// checkClientCredentials applies every rule of a client credentials request
// (OAuth 2.1 §4.2). No person is there to choose or to refuse, so only what the
// operator wrote on the client's row counts (D23).
func (s *Server) checkClientCredentials(ctx context.Context, u *unit) error {
	c := u.client
	// the row of a self-registered client never lists the grant; asked again here,
	// because a token without a person must not rest on one check (TK-07, DR-19)
	if c.Kind != registration.KindOperator || c.IsPublic() {
		return oauth.UnauthorizedClient("client_credentials is for clients with a credential that the operator added")
	}
	res, err := s.machineResource(ctx, c, u.params.All("resource"))
	if err != nil {
		return err
	}
	scopes, err := machineScopes(c, res, u.params.Get("scope"))
	if err != nil {
		return err
	}
	// D7, D10: sub is the client itself; a grant is a person's approval, so there
	// is no row, no grant_id, no auth_time and nothing to refresh
	u.rowless = &grant.Grant{ClientID: c.ID, Subject: c.ID, Resource: res.Identifier, Scopes: scopes}
	return nil
}

// machineResource is the resource that a machine client means: one of its row's,
// which may be left out when the row lists only one.
func (s *Server) machineResource(ctx context.Context, c *registration.Client, values []string) (resource.Resource, error) {
	if len(values) == 0 {
		if len(c.Resources) != 1 {
			return resource.Resource{}, oauth.InvalidTarget("resource is required: this client may use more than one MCP server (RFC 8707)")
		}
		values = c.Resources
	}
	res, err := s.o.Resources.Find(ctx, values)
	if err != nil {
		return resource.Resource{}, err
	}
	if !slices.Contains(c.Resources, res.Canonical) {
		return resource.Resource{}, oauth.InvalidTarget("this client may not use that resource")
	}
	return res, nil
}

// machineScopes returns the scopes of a machine client's token: those asked for
// that its row covers, or all of its row that the resource has. A row without
// scope stands for the resource's defaults, never for everything.
func machineScopes(c *registration.Client, res resource.Resource, scope string) ([]string, error) {
	asked, err := oauth.ParseScope(scope)
	if err != nil {
		return nil, err
	}
	limit := strings.Fields(c.Metadata.Scope)
	if len(limit) == 0 {
		limit = res.DefaultScopes()
	}
	// offline_access and openid are accepted and mean nothing here (D26)
	asked = slices.DeleteFunc(asked, oauth.IsProtocolScope)
	if len(limit) == 0 {
		if len(asked) > 0 || len(res.Scopes) > 0 {
			return nil, oauth.InvalidScope("the operator gave this client no scope at this resource")
		}
		return nil, nil
	}
	if len(asked) == 0 {
		asked = limit
	}
	return res.Narrow(asked, true, strings.Join(limit, " "))
}

// issueClientCredentials signs an access token and never a refresh token (RFC
// 6749 §4.4.3): the client can ask again at any time.
func (s *Server) issueClientCredentials(ctx context.Context, u *unit) error {
	if err := s.issueFor(u, u.rowless, u.rowless.Scopes, 0); err != nil {
		return err
	}
	if u.now.Sub(u.client.LastUsedAt) < touchInterval {
		return nil
	}
	err := s.o.Clients.TouchClient(ctx, u.client.ID, u.now)
	if errors.Is(err, store.ErrNotFound) { // removed or blocked since it authenticated
		u.result = nil
		return errClient(u.header != "").With(err)
	}
	return err
}
