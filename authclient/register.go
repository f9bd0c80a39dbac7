package authclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// identity is the client that an authorization is made as.
type identity struct {
	id   string
	auth clientAuth
	// kept says that dynamic registration made it before: the server may have
	// forgotten it since.
	kept bool
}

// clientFor returns a client of this authorization server, in the order of MCP's
// specification: one that it knows, the program's metadata document, dynamic
// registration. Each is bound to its issuer (rule C5).
func (c *Client) clientFor(ctx context.Context, as *authorizationServer, redirectURI string) (*identity, error) {
	for _, r := range c.o.Registered {
		if c.sameIssuer(r.Issuer, as.Issuer) {
			auth, err := c.registeredAuth(r, as)
			return &identity{id: r.ClientID, auth: auth}, err
		}
	}
	if c.o.ClientMetadataURL != "" && as.ClientIDMetadataDocumentSupported {
		return c.documentIdentity(), nil
	}
	r, err := c.loadRegistration(ctx, as.Issuer)
	if err != nil {
		return nil, err
	}
	if r != nil && r.RedirectURI == redirectURI && c.remembers(ctx, as, r) {
		return &identity{id: r.ClientID, auth: r.auth(), kept: true}, nil
	}
	if as.RegistrationEndpoint == "" || c.o.NoDynamicRegistration {
		return nil, fmt.Errorf("%w: %s", ErrCannotRegister, quoted(as.Issuer))
	}
	if r, err = c.register(ctx, as, redirectURI); err != nil {
		return nil, err
	}
	return &identity{id: r.ClientID, auth: r.auth()}, nil
}

// remembers reports whether the server still knows a client that was registered earlier. A
// server can only show a page of errors for one that it has removed (OAuth 2.1
// §4.1.2.1), and nobody comes back from that: so it is asked, before the person is,
// for a token that nobody has. Only a plain no counts.
func (c *Client) remembers(ctx context.Context, as *authorizationServer, r *registration) bool {
	if g := c.session.current(); g != nil && g.ClientID == r.ClientID {
		return true
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {randomSecret()}}
	_, err := c.endpoint.token(ctx, as, tokenRequest{form: form, auth: r.auth()})
	var refused *ServerError
	if !errors.As(err, &refused) || refused.Code != "invalid_client" {
		return true
	}
	c.o.Log.InfoContext(ctx, "the server has forgotten the client", slog.String("issuer", as.Issuer), slog.String("client_id", theirs(r.ClientID)))
	return false
}

// registeredAuth is what proves r to as, whose issuer is r's but for a slash that the
// caller tolerates.
func (c *Client) registeredAuth(r RegisteredClient, as *authorizationServer) (clientAuth, error) {
	if c.sameIssuer(r.Issuer, as.Issuer) {
		r.Issuer = as.Issuer
	}
	return r.authTo(as)
}

// documentIdentity is the client whose client_id is its metadata document. It sends
// no secret and no Basic (rule C4).
func (c *Client) documentIdentity() *identity {
	return &identity{id: c.o.ClientMetadataURL, auth: secretAuth{clientID: c.o.ClientMetadataURL, method: authNone}}
}

// authOf returns what proves the client that stored tokens belong to.
func (c *Client) authOf(ctx context.Context, as *authorizationServer, clientID string) (clientAuth, error) {
	for _, r := range c.o.Registered {
		if r.ClientID == clientID && c.sameIssuer(r.Issuer, as.Issuer) {
			return c.registeredAuth(r, as)
		}
	}
	if clientID == c.o.ClientMetadataURL && clientID != "" {
		return c.documentIdentity().auth, nil
	}
	r, err := c.loadRegistration(ctx, as.Issuer)
	if err != nil {
		return nil, err
	}
	if r == nil || r.ClientID != clientID {
		return nil, errUnknownClient
	}
	return r.auth(), nil
}

// forgetRegistration forgets what dynamic registration made, and reports whether
// clientID was it: a client of the caller's stays what it is.
func (c *Client) forgetRegistration(ctx context.Context, issuer, clientID string) (bool, error) {
	r, err := c.loadRegistration(ctx, issuer)
	if err != nil || r == nil || r.ClientID != clientID {
		return false, err
	}
	c.o.Log.InfoContext(ctx, "the registration is no longer valid", slog.String("issuer", issuer), slog.String("client_id", theirs(clientID)))
	return true, c.o.Store.Delete(ctx, c.clientKey(issuer))
}

// registrationRequest is the body of a registration (RFC 7591 §2; rule C10).
type registrationRequest struct {
	RedirectURIs            []string `json:"redirect_uris,omitempty"`
	TokenEndpointAuthMethod string   `json:"token_endpoint_auth_method"`
	GrantTypes              []string `json:"grant_types"`
	ResponseTypes           []string `json:"response_types"`
	ApplicationType         string   `json:"application_type"`
	ClientName              string   `json:"client_name"`
	ClientURI               string   `json:"client_uri,omitempty"`
	LogoURI                 string   `json:"logo_uri,omitempty"`
	TosURI                  string   `json:"tos_uri,omitempty"`
	PolicyURI               string   `json:"policy_uri,omitempty"`
	Contacts                []string `json:"contacts,omitempty"`
	SoftwareID              string   `json:"software_id,omitempty"`
	SoftwareVersion         string   `json:"software_version,omitempty"`
	SoftwareStatement       string   `json:"software_statement,omitempty"`
}

const defaultClientName = "MCP client"

func (c *Client) registrationRequest(as *authorizationServer, redirectURI string) registrationRequest {
	m := c.o.Metadata
	r := registrationRequest{
		TokenEndpointAuthMethod: registrationMethod(as.TokenEndpointAuthMethodsSupported),
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		ApplicationType:         applicationType(redirectURI),
		ClientName:              m.ClientName, ClientURI: m.ClientURI, LogoURI: m.LogoURI, TosURI: m.TosURI, PolicyURI: m.PolicyURI,
		Contacts: m.Contacts, SoftwareID: m.SoftwareID, SoftwareVersion: m.SoftwareVersion, SoftwareStatement: m.SoftwareStatement,
	}
	if r.ClientName == "" {
		r.ClientName = defaultClientName
	}
	if redirectURI == "" {
		// RFC 7591 §2: left out, response_types would mean code, which wants a redirect URI
		r.GrantTypes, r.ResponseTypes = []string{grantDeviceCode, "refresh_token"}, []string{}
	} else {
		r.RedirectURIs = []string{redirectURI}
	}
	return r
}

// registrationMethod asks for no secret where the server lets it be: there is nowhere
// to keep one from the person at this machine.
func registrationMethod(supported []string) string {
	if len(supported) == 0 || slices.Contains(supported, authNone) {
		return authNone
	}
	return secretMethod(supported)
}

// applicationType infers application_type (OpenID Connect Registration 1.0 §2): a
// program on this machine is native.
func applicationType(redirectURI string) string {
	u, err := url.Parse(redirectURI)
	if err == nil && (u.Scheme == "https" || u.Scheme == "http") && !netguard.IsLoopback(u.Hostname()) {
		return "web"
	}
	return "native"
}

// register makes a client and stores it.
func (c *Client) register(ctx context.Context, as *authorizationServer, redirectURI string) (*registration, error) {
	asked := c.registrationRequest(as, redirectURI)
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	if token := c.o.Metadata.InitialAccessToken; token != "" && c.o.Metadata.InitialAccessTokenIssuer == as.Issuer {
		header.Set("Authorization", typeBearer+" "+token.Reveal())
	}
	a, err := c.endpoint.post(ctx, "registration", as.RegistrationEndpoint, header, body)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusCreated && a.status != http.StatusOK {
		return nil, fmt.Errorf("%w: %w", ErrCannotRegister, readServerError("registration", a, c.o.Now()))
	}
	r, err := readRegistration(a.body, asked)
	if err != nil {
		return nil, fmt.Errorf("the registration endpoint's answer: %w", err)
	}
	r.Issuer, r.RedirectURI = as.Issuer, redirectURI
	c.o.Log.InfoContext(ctx, "client registered", slog.String("issuer", r.Issuer), slog.String("client_id", theirs(r.ClientID)))
	return r, save(ctx, c.o.Store, c.clientKey(as.Issuer), r)
}

// readRegistration reads what was registered, which may differ from what was asked
// for (RFC 7591 §3.2.1).
func readRegistration(body []byte, asked registrationRequest) (*registration, error) {
	o, err := readObject(body)
	if err != nil {
		return nil, err
	}
	r := &registration{}
	var ok bool
	if r.ClientID, ok = o.Str("client_id"); !ok || r.ClientID == "" || len(r.ClientID) > 2048 {
		return nil, errors.New("it has no client_id")
	}
	r.ClientSecret, _ = o.Str("client_secret")
	if r.AuthMethod, err = readMethod(o, r.ClientSecret, asked.TokenEndpointAuthMethod); err != nil {
		return nil, err
	}
	if r.AuthMethod == authNone {
		r.ClientSecret = "" // one that is not used need not be kept
	}
	if seconds, err := strconv.ParseInt(string(o.Get("client_secret_expires_at")), 10, 64); err == nil && seconds > 0 && r.ClientSecret != "" {
		r.Expires = time.Unix(seconds, 0)
	}
	uris := o.Strs("redirect_uris")
	if len(uris) > 0 && len(asked.RedirectURIs) > 0 && !slices.Contains(uris, asked.RedirectURIs[0]) {
		return nil, errors.New("the server registered another redirect URI than the one that was asked for")
	}
	return r, nil
}

// readMethod returns how the client is to prove itself: as the server says, or as was
// asked when it says nothing and that fits what it gave.
func readMethod(o strictjson.Object, secret, asked string) (string, error) {
	method, said := o.Str("token_endpoint_auth_method")
	switch {
	case !said && secret == "":
		return authNone, nil
	case !said && asked != authNone:
		return asked, nil
	case !said:
		return authBasic, nil // RFC 7591 §2: the default
	case method == authNone:
		return authNone, nil
	case (method == authBasic || method == authPost) && secret != "":
		return method, nil
	case method == authBasic || method == authPost:
		return "", fmt.Errorf("the client is to authenticate with %s and has got no secret", method)
	}
	return "", fmt.Errorf("the client is to authenticate with %s, which it cannot", quoted(method))
}
