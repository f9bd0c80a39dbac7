package resourceserver

import (
	"context"
	"slices"
	"time"
)

// Token is a verified access token: every field was signed by the issuer.
type Token struct {
	// Issuer is iss, the authorization server.
	Issuer string
	// Subject is sub: the person, or the client itself when no person is
	// involved. It is unique within Issuer.
	Subject string
	// ClientID is client_id, the OAuth client that uses the token.
	ClientID string
	// ID is jti.
	ID string
	// Audience is aud; it contains this resource.
	Audience []string
	// Scopes are what the token may do; none means nothing beyond being known.
	Scopes []string
	// ExpiresAt is exp, IssuedAt is iat. AuthTime is when the person signed in,
	// zero when the token does not say.
	ExpiresAt, IssuedAt, AuthTime time.Time
}

// HasScopes reports whether the token carries all of scopes.
func (t *Token) HasScopes(scopes ...string) bool {
	for _, s := range scopes {
		if !slices.Contains(t.Scopes, s) {
			return false
		}
	}
	return true
}

type tokenKey struct{}

// TokenFromContext returns the token of a request that passed Protect. It
// returns false for any other context.
func TokenFromContext(ctx context.Context) (*Token, bool) {
	t, ok := ctx.Value(tokenKey{}).(*Token)
	return t, ok
}
