package authclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Secret is a string that prints as [redacted] wherever it is printed: a client
// secret, a token. Its Reveal method gives the value.
type Secret = oauth.Secret

// Options configures New. The zero value of every optional field is the safe default.
type Options struct {
	// Server is the URL of the MCP server, as a person would type it: https, or
	// http on this machine. Required.
	Server string

	// Registered are clients that authorization servers know already. One is used
	// for its own issuer and never named to another.
	Registered []RegisteredClient
	// ClientMetadataURL is the client_id of a program that publishes a Client ID
	// Metadata Document: an https URL with a path. It is used with servers that
	// advertise the support.
	ClientMetadataURL string
	// Metadata is what dynamic registration (RFC 7591) says of this program.
	Metadata ClientMetadata
	// NoDynamicRegistration refuses to register with a server that knows neither a
	// Registered client nor ClientMetadataURL.
	NoDynamicRegistration bool

	// Authorizer asks the person. Nil: nobody can be asked, and a request that
	// needs it fails with ErrLoginRequired.
	Authorizer Authorizer
	// Machine gets tokens with a credential of the program's own, instead of asking
	// a person.
	Machine Machine

	// Store keeps registrations and tokens. Default: NewMemoryStore().
	Store Store
	// Account tells apart several people, or several accounts of one, at the same
	// server. Any text; default "".
	Account string

	// Scopes are asked for besides those that the server asks for by itself. When it
	// names none in its challenge, they are asked for instead of all that it supports.
	Scopes []string
	// DPoP binds tokens to a key of this program where the authorization server can
	// (RFC 9449).
	DPoP bool
	// RequireDPoP refuses authorization servers that cannot. It implies DPoP.
	RequireDPoP bool

	// AllowPrivate permits a server to name URLs on private networks. Without it only
	// the MCP server's own host may be private, and a server on loopback may name
	// loopback URLs. Link-local addresses and clouds' metadata services stay refused.
	AllowPrivate bool
	// AllowParentResource accepts metadata for a path above Server, as some servers
	// publish it. The token is then good for whatever stands below that path.
	AllowParentResource bool
	// TolerateIssuerSlash accepts authorization server metadata whose issuer differs
	// from the one asked for by a trailing slash alone (RFC 8414 §3.3 refuses it).
	TolerateIssuerSlash bool

	// Transport sends every request. The addresses behind the names of URLs are its
	// business then, and no longer checked here. Default: a transport of this
	// package's, which obeys the proxy variables of the environment.
	Transport http.RoundTripper
	// Log hears what was decided, never a secret. Default: nothing is logged.
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// RegisteredClient is a client that an authorization server knows already.
type RegisteredClient struct {
	// Issuer is the authorization server's issuer identifier. Required: the client's
	// credential is sent nowhere else.
	Issuer string
	// ClientID is client_id. Required.
	ClientID string
	// ClientSecret is client_secret; empty for a public client.
	ClientSecret Secret
	// AuthMethod is token_endpoint_auth_method: none, client_secret_basic or
	// client_secret_post. Default: none without a secret; with one, Basic unless the
	// server lists post alone.
	AuthMethod string
}

// ClientMetadata is what dynamic registration says of a program (RFC 7591 §2).
// What is not here (redirect_uris, grant_types, application_type, the
// authentication method) follows from how it is used.
type ClientMetadata struct {
	// ClientName is client_name, which people read on the consent page. Default
	// "MCP client".
	ClientName string
	// ClientURI is client_uri. OPTIONAL.
	ClientURI string
	// LogoURI is logo_uri. OPTIONAL.
	LogoURI string
	// TosURI is tos_uri. OPTIONAL.
	TosURI string
	// PolicyURI is policy_uri. OPTIONAL.
	PolicyURI string
	// Contacts are contacts. OPTIONAL.
	Contacts []string
	// SoftwareID is software_id. OPTIONAL.
	SoftwareID string
	// SoftwareVersion is software_version. OPTIONAL.
	SoftwareVersion string
	// SoftwareStatement is software_statement. OPTIONAL.
	SoftwareStatement string
	// InitialAccessToken is sent to InitialAccessTokenIssuer's registration endpoint.
	InitialAccessToken Secret
	// InitialAccessTokenIssuer is the issuer that InitialAccessToken belongs to.
	// Required with it.
	InitialAccessTokenIssuer string
}

// What a caller can tell apart with errors.Is.
var (
	// ErrLoginRequired reports that a person must be asked and that there is no
	// Authorizer to do it.
	ErrLoginRequired = errors.New("nobody has logged in to the server yet")
	// ErrNotProtected reports that Login found a server that asks for no token.
	ErrNotProtected = errors.New("the server asks for no authorization")
	// ErrRefused reports what a server said that may not be followed: a document of
	// somebody else, no PKCE, an address that is not talked to. Nothing was sent.
	ErrRefused = errors.New("refused for safety")
	// ErrDenied reports that the person, or the server, said no.
	ErrDenied = errors.New("access was denied")
	// ErrCannotRegister reports an authorization server that knows none of the
	// configured clients and registers no new one.
	ErrCannotRegister = errors.New("no client is registered with the authorization server")
)

// Client calls one MCP server for one account. It is an http.RoundTripper, and
// safe for concurrent use.
type Client struct {
	o      Options
	server *url.URL
}

// New returns a Client, or all that is wrong with o. It asks nobody.
func New(o Options) (*Client, error) {
	u, err := oauth.ParseResource(o.Server)
	if err != nil {
		return nil, fmt.Errorf("authclient: Server: %w", err)
	}
	if o.Store == nil {
		o.Store = NewMemoryStore()
	}
	return &Client{o: o, server: u}, nil
}

var errNotBuilt = errors.New("authclient: not built yet")

// RoundTrip sends a request to the MCP server with a token. On 401 it gets one, on
// 403 insufficient_scope one with more scopes, and sends the request again. A
// request to any other place goes out as it is, without a token.
func (c *Client) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNotBuilt }

// HTTPClient returns an http.Client whose transport is c.
func (c *Client) HTTPClient() *http.Client { return &http.Client{Transport: c} }

// TokenSource returns a source of access tokens for the MCP server: the stored one,
// refreshed when it has expired, or a new one from the Authorizer or the Machine.
// The tokens carry no refresh token, since only c may use it.
func (c *Client) TokenSource(ctx context.Context) oauth2.TokenSource { return tokenSource{c, ctx} }

type tokenSource struct {
	c   *Client
	ctx context.Context
}

// Token implements oauth2.TokenSource.
func (tokenSource) Token() (*oauth2.Token, error) { return nil, errNotBuilt }

// Login gets a new token, whatever is stored, and stores it.
func (c *Client) Login(context.Context) error { return errNotBuilt }

// Logout revokes what is stored for the server and the account (RFC 7009) and
// forgets it. The registration stays, for the next Login. What could not be revoked
// is forgotten too, and reported. Nothing stored is no error.
func (c *Client) Logout(context.Context) error { return errNotBuilt }
