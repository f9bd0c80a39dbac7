package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// introspection is the answer of POST /introspect (RFC 7662 §2.2). It says no more
// of a person than the token does, and leaves out grant_id (D35). The zero value
// is all that is said of a token that is not active, or not the asker's business.
type introspection struct {
	Active   bool   `json:"active"`
	Scope    string `json:"scope,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	// TokenType is that of an access token (RFC 6749 §5.1); a refresh token has none.
	TokenType string `json:"token_type,omitempty"`
	Subject   string `json:"sub,omitempty"`
	Audience  string `json:"aud,omitempty"`
	Issuer    string `json:"iss,omitempty"`
	Expires   int64  `json:"exp,omitempty"`
	IssuedAt  int64  `json:"iat,omitempty"`
	ID        string `json:"jti,omitempty"`
}

// handleIntrospect serves POST /introspect (RFC 7662): an MCP server asks about
// tokens for itself, a confidential client about its own. What cannot be read now
// is an error, never "not active": the asker would end what lives.
func (s *Server) handleIntrospect(w http.ResponseWriter, r *http.Request) error {
	u, err := s.newUnit(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	who, err := s.authenticateAsker(ctx, u)
	if err != nil {
		return err
	}
	if err := s.mayAsk(ctx, who); err != nil {
		return err
	}
	token := oauth.Secret(u.params.Get("token"))
	if token == "" {
		return oauth.InvalidRequest("token is missing")
	}
	answer, err := s.introspect(ctx, u, who, token)
	if err != nil {
		return fmt.Errorf("introspect: %w", err)
	}
	return endpoint.WriteJSON(w, http.StatusOK, answer)
}

// mayAsk counts the question and refuses who asks too much (IR-10). Nothing is
// remembered of the token.
func (s *Server) mayAsk(ctx context.Context, who asker) error {
	if s.o.Introspections == nil {
		return nil
	}
	wait, err := s.o.Introspections.Wait(ctx, who.id())
	if err != nil {
		return fmt.Errorf("limit introspection: %w", err)
	}
	if wait > 0 {
		return oauth.TooManyRequests(wait)
	}
	return nil
}

// introspect looks at the string itself; token_type_hint is a hint (IR-08).
func (s *Server) introspect(ctx context.Context, u *unit, who asker, token oauth.Secret) (introspection, error) {
	if _, err := s.tokens.parse(kindRefresh, token); err == nil {
		if who.client == nil { // a refresh token is nothing to an MCP server (RT-12, IR-02)
			return introspection{}, nil
		}
		return s.introspectRefreshToken(ctx, u, token)
	}
	claims, ok := s.readAccessToken(token)
	if !ok || u.now.Unix() >= claims.Expires || !who.mayKnow(&claims) {
		return introspection{}, nil
	}
	stands, err := s.accessTokenStands(ctx, who, &claims, u.now)
	if err != nil || !stands {
		return introspection{}, err
	}
	return introspection{Active: true, Scope: claims.Scope, ClientID: claims.ClientID, TokenType: "Bearer",
		Subject: claims.Subject, Audience: claims.Audience, Issuer: claims.Issuer, Expires: claims.Expires,
		IssuedAt: claims.IssuedAt, ID: claims.ID}, nil
}

// readAccessToken returns the claims of an access token that this server signed;
// it may have expired.
func (s *Server) readAccessToken(token oauth.Secret) (claims accessTokenClaims, ok bool) {
	payload, _, err := s.o.Keys.Verify(oauth.TypeAccessToken, token.Reveal())
	if err != nil {
		return claims, false
	}
	err = json.Unmarshal(payload, &claims)
	return claims, err == nil && claims.Issuer == s.o.Issuer
}

// accessTokenStands reports whether what an access token was issued on still
// stands: its grant, person, client and resource (IR-09). It reads once.
func (s *Server) accessTokenStands(ctx context.Context, who asker, claims *accessTokenClaims, now time.Time) (bool, error) {
	if claims.GrantID == "" {
		return s.machineTokenStands(ctx, who, claims)
	}
	r, err := s.o.Redemptions.LoadRedemption(ctx, claims.GrantID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	g := &r.Grant
	return g.ClientID == claims.ClientID && g.Subject == claims.Subject && g.Resource == claims.Audience &&
		r.Client != nil && r.Client.Enabled() && r.SubjectEnabled &&
		(r.ResourceRegistered || s.o.Resources.AllowsUnregistered(g.Resource)) &&
		g.EndedAt.IsZero() && now.Before(g.ExpiresAt), nil
}

// machineTokenStands is accessTokenStands for a token of client_credentials: no
// grant is behind it, but what the operator wrote on the client's row (D23).
func (s *Server) machineTokenStands(ctx context.Context, who asker, claims *accessTokenClaims) (bool, error) {
	c, res, err := s.machineParties(ctx, who, claims)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return c.Enabled() && c.MayUseGrant(registration.GrantClientCredentials) && slices.Contains(c.Resources, res), nil
}

// machineParties returns the client of a token and its resource in canonical form.
// One of the two is who asks.
func (s *Server) machineParties(ctx context.Context, who asker, claims *accessTokenClaims) (*registration.Client, string, error) {
	if who.client != nil {
		res, err := s.o.Resources.ByIdentifier(ctx, claims.Audience)
		return who.client, res.Canonical, err
	}
	c, err := s.o.Clients.GetClient(ctx, claims.ClientID)
	return &c, who.resource.Canonical, err
}

// introspectRefreshToken tells a client of its own refresh token: active when it is
// the newest of a grant that stands. Asking about an older one is no use of it and
// ends nothing. Its audience is this server, so that no MCP server that asks with a
// client's credential takes it for an access token (RT-12).
func (s *Server) introspectRefreshToken(ctx context.Context, u *unit, token oauth.Secret) (introspection, error) {
	if err := s.present(ctx, u, kindRefresh, token); err != nil {
		return introspection{}, err
	}
	if s.usable(u) != nil || !u.client.MayUseGrant(registration.GrantRefreshToken) {
		return introspection{}, nil
	}
	g := &u.loaded.Grant
	expires := g.ExpiresAt
	if !g.RefreshExpiresAt.IsZero() && g.RefreshExpiresAt.Before(expires) {
		expires = g.RefreshExpiresAt
	}
	step := stepOf(g, u.ref.generation, s.o.RefreshRetryWindow, u.now)
	if !g.OfflineAccess || !u.now.Before(expires) || step != stepRotate && step != stepHeal {
		return introspection{}, nil
	}
	return introspection{Active: true, Scope: strings.Join(g.Scopes, " "), ClientID: g.ClientID, Subject: g.Subject,
		Audience: s.o.Issuer, Issuer: s.o.Issuer, Expires: expires.Unix()}, nil
}
