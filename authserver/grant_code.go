package authserver

import (
	"context"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
)

// checkCode applies every rule of an authorization code request (OAuth 2.1
// §4.1.3) in the order of D30. Only the last one, a used code that is otherwise
// valid, ends the grant.
func (s *Server) checkCode(ctx context.Context, u *unit) error {
	if u.params.Get("code") == "" {
		return oauth.InvalidRequest("code is missing")
	}
	verifier := u.params.Get("code_verifier")
	if verifier == "" {
		return oauth.InvalidRequest("code_verifier is required (PKCE, RFC 7636)") // PK-05
	}
	if err := s.usable(u); err != nil {
		return err
	}
	g := &u.loaded.Grant
	// OAuth 2.1 §4.1.3 dropped redirect_uri here: absent is fine, different is not (D17)
	if sent := u.params.Get("redirect_uri"); sent != "" && sent != g.RedirectURI {
		return oauth.InvalidGrant("redirect_uri differs from the authorization request")
	}
	if err := oauth.CheckCodeVerifier(verifier); err != nil {
		return err
	}
	if !s.verifyVerifier(g.CodeChallenge, verifier) {
		return oauth.InvalidGrant("code_verifier does not match code_challenge")
	}
	if err := s.requestedResource(ctx, u); err != nil {
		return err
	}
	if !u.now.Before(g.CodeExpiresAt) {
		return oauth.InvalidGrant("the code has expired")
	}
	if g.Generation > 0 {
		return s.codeReused(ctx, u)
	}
	return nil
}

// codeReused answers a second valid request with a used code: whoever sends it
// holds code and verifier, so the grant ends (OAuth 2.1 §4.1.3, CO-01).
func (s *Server) codeReused(ctx context.Context, u *unit) error {
	if err := s.endReused(ctx, &u.loaded.Grant, grant.ReasonCodeReuse, u.now); err != nil {
		return err
	}
	return oauth.InvalidGrant("the code was already used")
}

// redeemCode advances the grant to generation 1 and issues its first tokens.
func (s *Server) redeemCode(ctx context.Context, u *unit) error {
	g := &u.loaded.Grant
	if !u.client.MayUseGrant(registration.GrantRefreshToken) {
		g.OfflineAccess = false
	}
	a := grant.Advance{ID: g.ID, From: 0, To: 1, AuthMethod: u.method, Now: u.now, Unregistered: !u.loaded.ResourceRegistered}
	if g.OfflineAccess {
		a.RefreshExpiresAt = earlier(u.now.Add(s.o.RefreshIdle), g.ExpiresAt)
	} else {
		// nothing outlives the access token, and connected apps shows it until then (D10)
		a.ExpiresAt = u.now.Add(s.o.AccessTokenLifetime)
	}
	// the token is signed first: a signature that fails must not spend the code
	if err := s.issueFor(u, g, g.Scopes, 1); err != nil {
		return err
	}
	ok, err := s.o.Grants.AdvanceGrant(ctx, a)
	if err != nil || ok {
		return err
	}
	u.result = nil
	return s.codeLost(ctx, u)
}

// codeLost answers a valid request that lost the race for its code: another one
// redeemed it first, which is reuse (CO-02), or the grant ended meanwhile.
func (s *Server) codeLost(ctx context.Context, u *unit) error {
	if err := s.load(ctx, u); err != nil {
		return err
	}
	if err := s.usable(u); err != nil {
		return err
	}
	if u.loaded.Grant.Generation > 0 {
		return s.codeReused(ctx, u)
	}
	return oauth.InvalidGrant("the code cannot be used")
}
