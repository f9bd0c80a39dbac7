package authserver

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// accessTokenClaims are the claims of an access token (RFC 9068 §2.2, D7).
type accessTokenClaims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	IssuedAt int64  `json:"iat"`
	ID       string `json:"jti"`
	ClientID string `json:"client_id"`
	Scope    string `json:"scope,omitempty"`
	AuthTime int64  `json:"auth_time,omitempty"`
	GrantID  string `json:"grant_id,omitempty"`
}

// signAccessToken returns an access token for the grant that carries scopes and
// opens the grant's one resource. It is never stored. A grant without a row has no
// id, and the token then no grant_id.
func (s *Server) signAccessToken(g *grant.Grant, scopes []string, now time.Time) (oauth.Secret, error) {
	claims := accessTokenClaims{
		Issuer: s.o.Issuer, Subject: g.Subject, Audience: g.Resource, ClientID: g.ClientID, GrantID: g.ID,
		Expires: now.Add(s.o.AccessTokenLifetime).Unix(), IssuedAt: now.Unix(), ID: rand.Text(),
		Scope: strings.Join(scopes, " "),
	}
	if !g.AuthTime.IsZero() {
		claims.AuthTime = g.AuthTime.Unix()
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("access token claims: %w", err)
	}
	token, _, err := s.o.Keys.Sign(oauth.TypeAccessToken, payload)
	if err != nil {
		return "", fmt.Errorf("sign access token: %w", err)
	}
	return oauth.Secret(token), nil
}
