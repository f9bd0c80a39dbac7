package authclient

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

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
	// Key signs the client's assertions; nil for a client that is not registered
	// with a key.
	Key *SigningKey
	// AuthMethod is token_endpoint_auth_method: none, client_secret_basic,
	// client_secret_post or private_key_jwt. Default: private_key_jwt with a Key, none
	// without a secret; with one, Basic unless the server lists post alone.
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

// check returns the server's URL, or all that is wrong with o.
func (o *Options) check() (*url.URL, error) {
	u, err := parseURL("Server", o.Server)
	if err == nil {
		_, err = oauth.ParseResource(o.Server)
	}
	errs := []error{err}
	for _, r := range o.Registered {
		errs = append(errs, r.check())
	}
	if o.ClientMetadataURL != "" {
		errs = append(errs, checkClientMetadataURL(o.ClientMetadataURL))
	}
	if o.Metadata.InitialAccessToken != "" && o.Metadata.InitialAccessTokenIssuer == "" {
		errs = append(errs, errors.New("Metadata.InitialAccessToken has no InitialAccessTokenIssuer: it would be sent to any server"))
	}
	if o.Machine != nil {
		errs = append(errs, o.Machine.check())
	}
	if o.Authorizer != nil && o.Machine != nil {
		errs = append(errs, errors.New("both an Authorizer and a Machine are given"))
	}
	for _, s := range o.Scopes {
		if !oauth.IsScopeToken(s) {
			errs = append(errs, fmt.Errorf("%q is not a scope", s))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("authclient: %w", err)
	}
	return u, nil
}

// checkClientMetadataURL applies draft-ietf-oauth-client-id-metadata-document §3: https
// with a path.
func checkClientMetadataURL(raw string) error {
	u, err := parseURL("ClientMetadataURL", raw)
	if err != nil {
		return err
	}
	if u.Scheme != "https" || strings.Trim(u.Path, "/") == "" {
		return fmt.Errorf("ClientMetadataURL %q is not https with a path", raw)
	}
	return nil
}
