package authclient

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/ostiary-auth/ostiary/metadata"
)

// endpoint sends every request that goes to an authorization server, or for a
// document that a server named: what may be asked, how much is read and how long is
// decided here alone (rules C8 and C9).
type endpoint struct {
	now func() time.Time
}

// authorizationServer is an authorization server whose metadata has been checked.
type authorizationServer struct {
	metadata.AuthorizationServer
	// DPoPSigningAlgs is dpop_signing_alg_values_supported (RFC 9449 §5.1).
	DPoPSigningAlgs []string
	// Legacy says that there was no document, so the endpoints are the defaults of
	// MCP 2025-03-26.
	Legacy bool
}

// machineRequest is what a Machine is asked for.
type machineRequest struct {
	endpoint *endpoint
	server   *authorizationServer
	resource string   // the resource parameter; "" sends none
	scopes   []string // none sends none
	prover   prover   // nil: a bearer token
	now      func() time.Time
}

// prover makes the DPoP proofs of one key (RFC 9449 §4).
type prover interface {
	// proof returns the proof for one request; nonce and accessToken may be empty.
	proof(method string, target *url.URL, nonce, accessToken string, now time.Time) (string, error)
	// thumbprint is the key's (RFC 7638), for dpop_jkt.
	thumbprint() string
}

// clientAuth is how a client proves itself at an authorization server's endpoint.
type clientAuth interface {
	// authenticate adds to the form or to the header what proves the client.
	authenticate(as *authorizationServer, form url.Values, header http.Header, now time.Time) error
}

// tokenRequest is one request to a token endpoint.
type tokenRequest struct {
	form url.Values
	auth clientAuth
	// prover is nil for bearer tokens. Nonces are remembered and a use_dpop_nonce is
	// answered once by token itself.
	prover prover
}

// tokenResponse is a successful answer of a token endpoint, checked (RFC 6749 §5.1).
type tokenResponse struct {
	AccessToken  Secret
	TokenType    string // "Bearer" or "DPoP"
	RefreshToken Secret
	Expiry       time.Time // zero: the server did not say
	Scope        []string  // nil: the server did not say, so as asked for
	// IssuedTokenType is issued_token_type (RFC 8693 §2.2.1); "" is absent.
	IssuedTokenType string
}

// token sends r to the server's token endpoint. The error of an answer is a
// *ServerError. It is sent once: a retry is the caller's decision.
func (e *endpoint) token(context.Context, *authorizationServer, tokenRequest) (*tokenResponse, error) {
	return nil, errNotBuilt
}

// metadataOf fetches and checks the metadata of issuer (RFC 8414 §3.3) without
// asking for PKCE, as an identity provider that only exchanges tokens needs none.
func (e *endpoint) metadataOf(context.Context, string) (*authorizationServer, error) {
	return nil, errNotBuilt
}
