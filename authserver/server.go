// Package authserver is the OAuth 2.1 authorization server: the authorization,
// token, revocation and introspection endpoints, the dispatcher that leads a person through
// sign-in and consent, and the page that sends them back. It alone imports
// fosite, which parses and validates requests and drives our handlers (D21).
// Clients come from registration, approvals from consent, people from
// internal/login; grants are rows of internal/grant, and every state change is
// one statement or one transaction there.
//
// It implements OAuth 2.1 (draft-ietf-oauth-v2-1-13), RFC 6750, 7009, 7521,
// 7523, 7636, 7662, 8252, 8707, 9068 and 9207.
package authserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/ory/fosite"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// Options configures New.
type Options struct {
	// Issuer is the issuer identifier (RFC 8414 §2). Required.
	Issuer string
	// Edge turns handlers into http.Handlers, Pages writes pages. Required.
	Edge  *endpoint.Edge
	Pages *web.Renderer
	// Log receives security events. Required.
	Log *slog.Logger
	// Now is the clock. Required.
	Now func() time.Time
	// Secrets derive the keys of token strings; Keys signs access tokens. Required.
	Secrets *keys.Secrets
	Keys    *keys.Set

	// The stores. Required.
	Tx          store.Transactor
	Grants      grant.Store
	Redemptions Redemptions
	Requests    flow.Store
	Consents    consent.Store
	Audit       audit.Store
	Clients     registration.Store
	SessionRows SessionHolder

	// Resolver finds the client of an authorization request. Required.
	Resolver Resolver
	// ClientDocuments says that Resolver reads Client ID Metadata Documents.
	ClientDocuments bool
	// ClientKeys find the keys of private_key_jwt, Assertions remembers what was
	// signed with them. Required.
	ClientKeys *registration.ClientKeys
	Assertions registration.AssertionStore
	// Guesses, when set, bounds wrong client secrets (CA-12).
	Guesses Guesses
	// Credentials are those of MCP servers that ask about tokens. Required.
	Credentials ResourceCredentials
	// Introspections, when set, bounds how often one may ask about tokens (IR-10).
	Introspections AskLimit
	// Resources matches resource indicators. Required.
	Resources Resources
	// Sessions are the browser sessions. Required.
	Sessions flow.Sessions

	// AccessTokenLifetime is how long access tokens live. Default 10 minutes (D7).
	AccessTokenLifetime time.Duration
	// CodeLifetime is how long codes live. Default and most 60 s (D17).
	CodeLifetime time.Duration
	// RefreshIdle and RefreshAbsolute bound refresh tokens. Defaults 30 days, 1 year (D8).
	RefreshIdle, RefreshAbsolute time.Duration
	// LoopbackRefreshAbsolute is RefreshAbsolute for unverified loopback clients.
	// Default 90 days (D8).
	LoopbackRefreshAbsolute time.Duration
	// RefreshRetryWindow is how long a rotated refresh token is answered with its
	// successor, 0 to 120 s (D8). It has no default here: 0 means none.
	RefreshRetryWindow time.Duration
	// MaxOpenRequests caps unfinished authorization requests a source. Default 500 (DO-02).
	MaxOpenRequests int
}

// Resolver finds clients by client_id. registration.Resolver implements it.
type Resolver interface {
	// Resolve returns the client, store.ErrNotFound, or
	// *registration.ClientURLError for a client_id that is a URL and names none.
	Resolve(ctx context.Context, clientID string) (*registration.Client, error)
}

// Guesses count what came from a client and network source.
// internal/ratelimit implements it.
type Guesses interface {
	// Full returns how long the next one must wait, 0 for not at all.
	Full(ctx context.Context, key string) (time.Duration, error)
	// Wait counts one and returns 0, or how long it must wait.
	Wait(ctx context.Context, key string) (time.Duration, error)
}

// SessionHolder makes a browser session's row stay for a transaction.
// internal/sqlstore implements it.
type SessionHolder interface {
	// HoldSession reports whether the session still belongs to the signed-in
	// subject; then nobody ends it before the transaction of ctx ends.
	HoldSession(ctx context.Context, id, subject string, now time.Time) (bool, error)
}

// Resources matches what clients ask for with registered resources.
// resource.Registry implements it.
type Resources interface {
	// Find matches the resource parameters of a request (D5, D6).
	Find(ctx context.Context, values []string) (resource.Resource, error)
	// ByIdentifier returns the resource that a stored request or grant names.
	ByIdentifier(ctx context.Context, identifier string) (resource.Resource, error)
	// AllowsUnregistered reports whether the identifier may go without a row (D4).
	AllowsUnregistered(identifier string) bool
	// SupportedScopes are the scopes to advertise (D26).
	SupportedScopes(ctx context.Context) ([]string, error)
}

// Server serves the OAuth endpoints. It is safe for concurrent use.
type Server struct {
	o        Options
	base     string
	tokens   tokenStrings
	grants   []grantType
	provider *fosite.Fosite
	// assertions check private_key_jwt.
	assertions *registration.Assertions
	// verifyVerifier compares a code_verifier with its challenge in constant time;
	// a field so that a test can show that nothing else compares it (PK-10).
	verifyVerifier func(challenge, verifier string) bool
}

// New checks the options and returns a server.
func New(o Options) (*Server, error) {
	issuer, err := url.Parse(o.Issuer)
	if err != nil || issuer.Host == "" {
		return nil, fmt.Errorf("authserver: issuer %q is not a URL", o.Issuer)
	}
	if o.Edge == nil || o.Pages == nil || o.Log == nil || o.Now == nil || o.Secrets == nil || o.Keys == nil ||
		o.Tx == nil || o.Grants == nil || o.Redemptions == nil || o.Requests == nil || o.Consents == nil ||
		o.Audit == nil || o.Clients == nil || o.SessionRows == nil || o.Resolver == nil || o.Resources == nil || o.Sessions == nil ||
		o.ClientKeys == nil || o.Assertions == nil || o.Credentials == nil {
		return nil, errors.New("authserver: a required option is missing")
	}
	defaultTo(&o.AccessTokenLifetime, 10*time.Minute)
	defaultTo(&o.CodeLifetime, time.Minute)
	defaultTo(&o.RefreshIdle, 30*24*time.Hour)
	defaultTo(&o.RefreshAbsolute, 365*24*time.Hour)
	defaultTo(&o.LoopbackRefreshAbsolute, 90*24*time.Hour)
	if o.MaxOpenRequests == 0 {
		o.MaxOpenRequests = 500
	}
	s := &Server{o: o, base: issuer.EscapedPath(), tokens: tokenStrings{secrets: o.Secrets, issuer: o.Issuer},
		assertions: &registration.Assertions{Issuer: o.Issuer, TokenEndpoint: o.Issuer + pathToken,
			Keys: o.ClientKeys, Used: o.Assertions},
		verifyVerifier: oauth.VerifyCodeVerifier}
	s.grants = s.newGrantTypes()
	s.provider = s.newProvider()
	return s, nil
}

func defaultTo(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}

// CrossSitePatterns are the page routes that other sites may post to: POST
// /authorize only turns into a GET (OpenID Connect Core §3.1.2.1).
func CrossSitePatterns() []string { return []string{"POST " + pathAuthorize} }

// SameOriginPatterns are the endpoints that pages of other origins may not call: who
// asks about tokens is a server, and no browser (A7).
func SameOriginPatterns() []string { return []string{"POST " + pathIntrospect} }

// Routes mounts the endpoints: pages for the browser's part of the flow,
// endpoints for clients.
func (s *Server) Routes(pages, endpoints *http.ServeMux) {
	page, json := s.o.Edge.Page, s.o.Edge.JSON
	pages.Handle("GET "+pathAuthorize, page(s.handleAuthorize))
	pages.Handle("POST "+pathAuthorize, page(s.handleAuthorizePost))
	pages.Handle("GET "+flow.ContinuePath, page(s.handleContinue))
	pages.Handle("GET "+pathReturn+"/{once}", page(s.handleReturn))
	endpoints.Handle("POST "+pathToken, json(s.handleToken))
	endpoints.Handle("POST "+pathRevoke, json(s.handleRevoke))
	endpoints.Handle("POST "+pathIntrospect, json(s.handleIntrospect))
}

// Paths below the issuer's (D25).
const (
	pathAuthorize  = "/authorize"
	pathReturn     = "/return"
	pathToken      = "/token"
	pathRevoke     = "/revoke"
	pathIntrospect = "/introspect"
	pathSignIn     = "/sign-in"
	pathConsent    = "/consent"
)
