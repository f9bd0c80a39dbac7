package authserver

import (
	"context"
	"slices"

	"github.com/ostiary-auth/ostiary/metadata"
	"github.com/ostiary-auth/ostiary/registration"
)

// pathJWKS is where the public keys are (D25); cmd mounts internal/keys there.
const pathJWKS = "/jwks.json"

// tokenAuthMethods are the client authentication methods of the token and
// revocation endpoints, "none" among them (A5).
var tokenAuthMethods = []string{registration.AuthNone, registration.AuthClientSecretBasic,
	registration.AuthClientSecretPost, registration.AuthPrivateKeyJWT}

// Metadata returns the authorization server's metadata (RFC 8414 §2), filled
// from what is mounted: registrationOpen says whether POST /register is.
func (s *Server) Metadata(ctx context.Context, registrationOpen bool) (metadata.AuthorizationServer, error) {
	scopes, err := s.o.Resources.SupportedScopes(ctx)
	if err != nil {
		return metadata.AuthorizationServer{}, err
	}
	doc := metadata.AuthorizationServer{
		Issuer:                                    s.o.Issuer,
		AuthorizationEndpoint:                     s.o.Issuer + pathAuthorize,
		TokenEndpoint:                             s.o.Issuer + pathToken,
		RevocationEndpoint:                        s.o.Issuer + pathRevoke,
		IntrospectionEndpoint:                     s.o.Issuer + pathIntrospect,
		JWKSURI:                                   s.o.Issuer + pathJWKS,
		ScopesSupported:                           scopes,
		ResponseTypesSupported:                    []string{"code"},
		ResponseModesSupported:                    []string{"query"},
		GrantTypesSupported:                       s.grantTypesSupported(),
		TokenEndpointAuthMethodsSupported:         slices.Clone(tokenAuthMethods),
		RevocationEndpointAuthMethodsSupported:    slices.Clone(tokenAuthMethods),
		IntrospectionEndpointAuthMethodsSupported: slices.Clone(introspectionAuthMethods),
		// REQUIRED with private_key_jwt
		TokenEndpointAuthSigningAlgValuesSupported:         registration.AssertionAlgorithms(),
		RevocationEndpointAuthSigningAlgValuesSupported:    registration.AssertionAlgorithms(),
		IntrospectionEndpointAuthSigningAlgValuesSupported: registration.AssertionAlgorithms(),
		CodeChallengeMethodsSupported:                      []string{"S256"},
		AuthorizationResponseISSParameterSupported:         true, // RFC 9207 §3, A6
		PromptValuesSupported:                              []string{"none", "login", "consent"},
	}
	doc.ClientIDMetadataDocumentSupported = s.o.ClientDocuments
	if registrationOpen {
		doc.RegistrationEndpoint = s.o.Issuer + registration.Path
	}
	return doc, nil
}
