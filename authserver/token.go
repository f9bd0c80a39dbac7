package authserver

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// tokenResponse is the body of a successful token request (RFC 6749 §5.1).
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token,omitempty"`
	// Scope is always stated (A22).
	Scope string `json:"scope"`
}

// tokenResult is what a grant issued.
type tokenResult struct {
	accessToken  oauth.Secret
	refreshToken oauth.Secret
	scopes       []string
	offlineNamed bool
	lifetime     time.Duration
}

func (*tokenResult) tokenType() string { return "Bearer" }

func (t *tokenResult) response() tokenResponse {
	scopes := t.scopes
	if t.offlineNamed && t.refreshToken != "" {
		scopes = append(scopes[:len(scopes):len(scopes)], oauth.OfflineAccess)
	}
	return tokenResponse{AccessToken: t.accessToken.Reveal(), TokenType: t.tokenType(),
		ExpiresIn: int64(t.lifetime / time.Second), RefreshToken: t.refreshToken.Reveal(),
		Scope: strings.Join(scopes, " ")}
}

// handleToken serves POST /token (RFC 6749 §3.2, OAuth 2.1 §3.2).
func (s *Server) handleToken(w http.ResponseWriter, r *http.Request) error {
	u, err := s.newUnit(r)
	if err != nil {
		return err
	}
	name := u.params.Get("grant_type")
	if name == "" {
		return oauth.InvalidRequest("grant_type is missing")
	}
	// fosite answers invalid_request to an unknown grant_type (engine.md A1)
	g, ok := s.grantType(name)
	if !ok {
		return oauth.UnsupportedGrantType("this grant_type is not supported")
	}
	ctx := withUnit(r.Context(), u)
	if g.param != "" {
		if err := s.present(ctx, u, g.kind, oauth.Secret(u.params.Get(g.param))); err != nil {
			return err
		}
	}
	if err := s.runGrant(ctx, r, u); err != nil {
		return err
	}
	s.logIssued(ctx, u, name)
	return endpoint.WriteJSON(w, http.StatusOK, u.result.response())
}

// runGrant lets fosite authenticate the client and drive the grant's handler.
func (s *Server) runGrant(ctx context.Context, r *http.Request, u *unit) error {
	fr := (&http.Request{Method: r.Method, Header: r.Header, URL: r.URL,
		Form: map[string][]string(u.params), PostForm: map[string][]string(u.params), Body: http.NoBody}).WithContext(ctx)
	ar, err := s.provider.NewAccessRequest(ctx, fr, &session{})
	if err != nil {
		return fromFosite(err)
	}
	if _, err := s.provider.NewAccessResponse(ctx, ar); err != nil {
		return fromFosite(err)
	}
	return nil
}

// newUnit parses a form request to an OAuth endpoint: everything from the body,
// nothing from the query (TK-02), nothing twice but resource (TK-04).
func (s *Server) newUnit(r *http.Request) (*unit, error) {
	if r.URL.RawQuery != "" {
		return nil, oauth.InvalidRequest("parameters belong in the body, not in the query string")
	}
	params, err := oauth.FormParams(r)
	if err != nil {
		return nil, err
	}
	if len(params.Repeated()) > 0 {
		return nil, oauth.InvalidRequest("a parameter is sent more than once")
	}
	if len(r.Header.Values("Authorization")) > 1 {
		return nil, oauth.InvalidRequest("more than one Authorization header")
	}
	header := r.Header.Get("Authorization")
	if scheme, _, _ := strings.Cut(header, " "); !strings.EqualFold(scheme, "Basic") {
		header = "" // other schemes say nothing here (AR-20)
	}
	return &unit{params: params, header: header, now: s.o.Now()}, nil
}

// issueFor fills u.result with an access token for scopes and, when the grant
// has one, the refresh token of a generation.
func (s *Server) issueFor(u *unit, g *grant.Grant, scopes []string, generation int) error {
	result := &tokenResult{scopes: scopes, offlineNamed: g.OfflineNamed, lifetime: s.o.AccessTokenLifetime}
	var err error
	if g.OfflineAccess {
		if result.refreshToken, err = s.tokens.mint(g.ID, generation, g.Salt); err != nil {
			return err
		}
	}
	if result.accessToken, err = s.signAccessToken(g, scopes, u.now); err != nil {
		return err
	}
	u.result = result
	return nil
}

// logIssued writes the log line of every issuance (D35).
func (s *Server) logIssued(ctx context.Context, u *unit, grantType string) {
	attrs := []slog.Attr{slog.String("event", "token.issued"), slog.String("grant_type", grantType),
		slog.String("client_id", u.client.ID), slog.String("scope", strings.Join(u.result.scopes, " "))}
	if u.loaded != nil {
		g := &u.loaded.Grant
		attrs = append(attrs, slog.String("sub", g.Subject), slog.String("resource", g.Resource), slog.String("grant_id", g.ID))
	} else if g := u.rowless; g != nil {
		attrs = append(attrs, slog.String("sub", g.Subject), slog.String("resource", g.Resource))
	}
	s.o.Log.LogAttrs(ctx, slog.LevelInfo, "token issued", attrs...)
}
