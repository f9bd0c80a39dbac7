package authserver

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ory/fosite"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
)

// newProvider composes fosite by hand: it parses and validates authorization
// and token requests and drives the handlers of ours that stand beside it
// (D21). Nothing of fosite's storage, hashing, tokens or error writing is used;
// docs/adr/0002 says why.
func (s *Server) newProvider() *fosite.Fosite {
	cfg := &fosite.Config{
		ScopeStrategy: fosite.ExactScopeStrategy,
		// resource.go decides; fosite's own strategy matches by path prefix
		AudienceMatchingStrategy:     func(haystack, needle []string) error { return nil },
		EnforcePKCE:                  true,
		RefreshTokenScopes:           []string{},
		ClientAuthenticationStrategy: s.fositeClientAuth,
		AuthorizeEndpointHandlers:    fosite.AuthorizeEndpointHandlers{&codeIssuer{s}},
		// fosite refuses an empty state below 1 (engine.md A1); authorize.go puts a
		// sentinel in its place, and the response is written by us
		MinParameterEntropy:        1,
		SendDebugMessagesToClients: false,
	}
	return fosite.NewOAuth2Provider(clientManager{}, &configurator{Config: cfg, s: s})
}

// configurator gives fosite only the handlers of the request's grant type, so
// that no other handler runs (engine.md, profile).
type configurator struct {
	*fosite.Config
	s *Server
}

// GetTokenEndpointHandlers returns the one handler for the grant_type in ctx.
func (c *configurator) GetTokenEndpointHandlers(ctx context.Context) fosite.TokenEndpointHandlers {
	if u := unitFrom(ctx); u != nil {
		if g, ok := c.s.grantType(u.params.Get("grant_type")); ok {
			return fosite.TokenEndpointHandlers{&grantHandler{g}}
		}
	}
	return nil
}

// fositeClientAuth adapts authenticateClient to fosite.
func (s *Server) fositeClientAuth(ctx context.Context, _ *http.Request, _ url.Values) (fosite.Client, error) {
	u := unitFrom(ctx)
	if err := s.authenticateClient(ctx, u); err != nil {
		return nil, err
	}
	return &fositeClient{c: u.client}, nil
}

// fositeClient is a registered client as fosite sees it. It is deliberately not
// an OpenIDConnectClient: that would switch on fetching of request_uri.
type fositeClient struct {
	c *registration.Client
	// redirectURI is the one URI our matcher allowed for this request.
	redirectURI string
	scopes      []string
}

func (f *fositeClient) GetID() string                      { return f.c.ID }
func (f *fositeClient) GetHashedSecret() []byte            { return f.c.SecretHash }
func (f *fositeClient) GetRedirectURIs() []string          { return []string{f.redirectURI} }
func (f *fositeClient) GetGrantTypes() fosite.Arguments    { return f.c.Metadata.GrantTypes }
func (f *fositeClient) GetResponseTypes() fosite.Arguments { return fosite.Arguments{"code"} }
func (f *fositeClient) GetScopes() fosite.Arguments        { return f.scopes }
func (f *fositeClient) IsPublic() bool                     { return f.c.IsPublic() }
func (f *fositeClient) GetAudience() fosite.Arguments      { return nil }

// clientManager gives fosite the client that authorize.go already resolved.
type clientManager struct{}

type fositeClientKey struct{}

// GetClient implements fosite.ClientManager.
func (clientManager) GetClient(ctx context.Context, id string) (fosite.Client, error) {
	if c, ok := ctx.Value(fositeClientKey{}).(*fositeClient); ok && c.c.ID == id {
		return c, nil
	}
	return nil, fosite.ErrNotFound
}

// ClientAssertionJWTValid implements fosite.ClientManager; clientassertion.go has assertions.
func (clientManager) ClientAssertionJWTValid(context.Context, string) error {
	return fosite.ErrJTIKnown
}

// SetClientAssertionJWT implements fosite.ClientManager; clientassertion.go has assertions.
func (clientManager) SetClientAssertionJWT(context.Context, string, time.Time) error {
	return fosite.ErrJTIKnown
}

// noState stands for an absent state inside fosite, which refuses an empty one.
const noState = "absent"

// newAuthorizeRequest lets fosite validate an authorization request whose
// client and redirect URI are proven and whose scopes and resource are settled.
// It sees only the parameters it is to judge.
func (s *Server) newAuthorizeRequest(ctx context.Context, p oauth.Params, c *fositeClient, resource string) (fosite.AuthorizeRequester, error) {
	form := url.Values{
		"client_id": {c.c.ID}, "redirect_uri": {c.redirectURI}, "state": {noState},
		"response_type": {p.Get("response_type")}, "scope": {strings.Join(c.scopes, " ")}, "audience": {resource},
		"code_challenge": {p.Get("code_challenge")}, "code_challenge_method": {p.Get("code_challenge_method")},
	}
	r := (&http.Request{Method: http.MethodGet, Form: form, PostForm: url.Values{}, Header: http.Header{}}).WithContext(ctx)
	ar, err := s.provider.NewAuthorizeRequest(context.WithValue(ctx, fositeClientKey{}, c), r)
	if err != nil {
		return nil, fromFosite(err)
	}
	return ar, nil
}

// session is fosite.Session; the grant's row is the session, so it holds nothing.
type session struct{}

func (*session) SetExpiresAt(fosite.TokenType, time.Time)       {}
func (*session) GetExpiresAt(fosite.TokenType) (none time.Time) { return none }
func (*session) GetUsername() string                            { return "" }
func (*session) GetSubject() string                             { return "" }
func (s *session) Clone() fosite.Session                        { return s }

var (
	_ fosite.Client                        = (*fositeClient)(nil)
	_ fosite.Storage                       = clientManager{}
	_ fosite.Session                       = (*session)(nil)
	_ fosite.TokenEndpointHandlersProvider = (*configurator)(nil)
)
