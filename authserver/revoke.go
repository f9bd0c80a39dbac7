package authserver

import (
	"context"
	"net/http"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// handleRevoke serves POST /revoke (RFC 7009). A refresh token, an access token
// and an unused code all revoke their whole grant.
func (s *Server) handleRevoke(w http.ResponseWriter, r *http.Request) error {
	u, err := s.newUnit(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	token := oauth.Secret(u.params.Get("token"))
	// token_type_hint is a hint: the string itself says what it is (IR-08)
	for _, kind := range []string{kindRefresh, kindCode} {
		if err := s.present(ctx, u, kind, token); err != nil {
			return err
		}
	}
	if err := s.authenticateClient(ctx, u); err != nil {
		return err
	}
	if token == "" {
		return oauth.InvalidRequest("token is missing")
	}
	g, found := s.revocable(u, token)
	switch {
	case found && g.ID == "":
		// RFC 7009 §2.2.1: 200 would say that it no longer works
		return oauth.UnsupportedTokenType("a token of client_credentials cannot be revoked: it expires by itself")
	case found:
		if err := s.revoke(ctx, u, g); err != nil {
			return err
		}
	}
	// RFC 7009 §2.2: an unknown token is a success, so nobody can probe for tokens
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return nil
}

// revocable returns what the token says of its grant: id, subject and resource.
// The id is "" for a token without a grant (client_credentials).
// There is none to revoke when the token is unknown, forged or another client's.
func (s *Server) revocable(u *unit, token oauth.Secret) (grant.Grant, bool) {
	if u.hasRef {
		if u.loaded == nil || !u.genuine || u.loaded.Grant.ClientID != u.client.ID {
			return grant.Grant{}, false
		}
		return u.loaded.Grant, true
	}
	claims, ok := s.readAccessToken(token)
	if !ok || claims.ClientID != u.client.ID {
		return grant.Grant{}, false
	}
	return grant.Grant{ID: claims.GrantID, Subject: claims.Subject, Resource: claims.Audience}, true
}

func (s *Server) revoke(ctx context.Context, u *unit, g grant.Grant) error {
	return s.o.Tx.InTx(ctx, func(ctx context.Context) error {
		ended, err := s.o.Grants.EndGrant(ctx, g.ID, grant.ReasonRevoked, u.now)
		if err != nil || !ended {
			return err
		}
		return s.o.Audit.Append(ctx, audit.New(ctx, u.now, audit.Event{Name: "grant.revoked", Actor: u.client.ID,
			ClientID: u.client.ID, Subject: g.Subject, Resource: g.Resource, GrantID: g.ID}))
	})
}
