package authclient

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/metadata"
)

// authorizationServer is an authorization server whose metadata has been checked:
// every endpoint in it is a URL that may be asked.
type authorizationServer struct {
	metadata.AuthorizationServer
	// DPoPSigningAlgs is dpop_signing_alg_values_supported (RFC 9449 §5.1).
	DPoPSigningAlgs []string
	// Legacy says that there was no document, so the endpoints are the defaults of
	// MCP 2025-03-26.
	Legacy bool
}

// metadataOf fetches and checks the metadata of issuer (RFC 8414 §3.3) without
// asking for PKCE, as an identity provider that only exchanges tokens needs none.
func (e *endpoint) metadataOf(ctx context.Context, issuer string) (*authorizationServer, error) {
	as, err := e.findMetadata(ctx, issuer)
	if err == nil && as == nil {
		err = fmt.Errorf("the authorization server %s serves no metadata", quoted(issuer))
	}
	return as, err
}

// findMetadata returns nil when there is no document at any of the places.
func (e *endpoint) findMetadata(ctx context.Context, issuer string) (*authorizationServer, error) {
	const what = "authorization server metadata"
	u, err := e.checkURL("issuer", issuer)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.ForceQuery { // RFC 8414 §2
		return nil, refused("the issuer %s has a query", quoted(issuer))
	}
	urls, err := metadata.AuthorizationServerURLs(issuer)
	if err != nil {
		return nil, err
	}
	for _, at := range urls {
		a, err := e.get(ctx, what, at, false)
		if err != nil {
			return nil, err
		}
		if isAbsent(a.status) {
			continue
		}
		if a.status != http.StatusOK {
			return nil, fmt.Errorf("the %s at %s answered %d", what, quoted(at), a.status)
		}
		return e.readMetadata(a.body, issuer)
	}
	return nil, nil
}

// readMetadata checks that the document is of this issuer (MM-07) and that each of
// its endpoints may be asked (MM-11, MM-12).
func (e *endpoint) readMetadata(body []byte, issuer string) (*authorizationServer, error) {
	o, err := readObject(body)
	if err != nil {
		return nil, fmt.Errorf("authorization server metadata: %w", err)
	}
	doc, err := metadata.ParseAuthorizationServer(body, issuer)
	var lift error
	if err != nil {
		if slash, slashErr := metadata.ParseAuthorizationServer(body, toggleSlash(issuer)); slashErr == nil {
			doc, lift = slash, ErrIssuerSlash
		}
	}
	if err != nil && (lift == nil || !e.tolerateSlash) {
		return nil, refusedUnless(lift, "%s", theirs(err.Error()))
	}
	for what, raw := range map[string]string{
		"authorization_endpoint": doc.AuthorizationEndpoint, "token_endpoint": doc.TokenEndpoint,
		"registration_endpoint": doc.RegistrationEndpoint, "revocation_endpoint": doc.RevocationEndpoint,
		"device_authorization_endpoint": doc.DeviceAuthorizationEndpoint,
	} {
		if raw == "" {
			continue
		}
		if _, err := e.checkURL(what, raw); err != nil {
			return nil, err
		}
	}
	return &authorizationServer{AuthorizationServer: doc, DPoPSigningAlgs: o.Strs("dpop_signing_alg_values_supported")}, nil
}

func toggleSlash(issuer string) string {
	if without, ok := strings.CutSuffix(issuer, "/"); ok {
		return without
	}
	return issuer + "/"
}

// checkPKCE refuses a server that does not say that it has S256 (rule C1, MM-14). A
// server of MCP 2025-03-26 without a document cannot say it; it is sent S256 anyway.
func checkPKCE(as *authorizationServer) error {
	if as.Legacy || slices.Contains(as.CodeChallengeMethodsSupported, "S256") {
		return nil
	}
	return refused("the authorization server %s does not say that it supports PKCE with S256", quoted(as.Issuer))
}
