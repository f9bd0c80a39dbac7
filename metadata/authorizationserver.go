package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
)

// AuthorizationServer is authorization server metadata (RFC 8414 §2). Empty
// values are left out, since clients tell absent from false and from null.
type AuthorizationServer struct {
	// Issuer is issuer. REQUIRED; byte-identical wherever it appears (A1).
	Issuer string `json:"issuer"`
	// AuthorizationEndpoint is authorization_endpoint. REQUIRED with the code flow.
	AuthorizationEndpoint string `json:"authorization_endpoint,omitempty"`
	// TokenEndpoint is token_endpoint. REQUIRED.
	TokenEndpoint string `json:"token_endpoint,omitempty"`
	// JWKSURI is jwks_uri. OPTIONAL; RFC 9068 §4 wants it.
	JWKSURI string `json:"jwks_uri,omitempty"`
	// RegistrationEndpoint is registration_endpoint (RFC 7591). OPTIONAL.
	RegistrationEndpoint string `json:"registration_endpoint,omitempty"`
	// ScopesSupported is scopes_supported. RECOMMENDED; some clients ask for all of them.
	ScopesSupported []string `json:"scopes_supported,omitempty"`
	// ResponseTypesSupported is response_types_supported. REQUIRED.
	ResponseTypesSupported []string `json:"response_types_supported"`
	// ResponseModesSupported is response_modes_supported. OPTIONAL; default query and fragment.
	ResponseModesSupported []string `json:"response_modes_supported,omitempty"`
	// GrantTypesSupported is grant_types_supported. OPTIONAL; the default names
	// implicit, so it is always sent (A5).
	GrantTypesSupported []string `json:"grant_types_supported,omitempty"`
	// TokenEndpointAuthMethodsSupported is token_endpoint_auth_methods_supported.
	// OPTIONAL; default client_secret_basic. Clients look for none (A5).
	TokenEndpointAuthMethodsSupported []string `json:"token_endpoint_auth_methods_supported,omitempty"`
	// TokenEndpointAuthSigningAlgValuesSupported is
	// token_endpoint_auth_signing_alg_values_supported. REQUIRED with private_key_jwt.
	TokenEndpointAuthSigningAlgValuesSupported []string `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"`
	// RevocationEndpoint is revocation_endpoint (RFC 7009). OPTIONAL.
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`
	// RevocationEndpointAuthMethodsSupported is
	// revocation_endpoint_auth_methods_supported. OPTIONAL; default client_secret_basic.
	RevocationEndpointAuthMethodsSupported []string `json:"revocation_endpoint_auth_methods_supported,omitempty"`
	// RevocationEndpointAuthSigningAlgValuesSupported is
	// revocation_endpoint_auth_signing_alg_values_supported. REQUIRED with
	// private_key_jwt.
	RevocationEndpointAuthSigningAlgValuesSupported []string `json:"revocation_endpoint_auth_signing_alg_values_supported,omitempty"`
	// IntrospectionEndpoint is introspection_endpoint (RFC 7662). OPTIONAL.
	IntrospectionEndpoint string `json:"introspection_endpoint,omitempty"`
	// IntrospectionEndpointAuthMethodsSupported is
	// introspection_endpoint_auth_methods_supported. OPTIONAL.
	IntrospectionEndpointAuthMethodsSupported []string `json:"introspection_endpoint_auth_methods_supported,omitempty"`
	// IntrospectionEndpointAuthSigningAlgValuesSupported is
	// introspection_endpoint_auth_signing_alg_values_supported. REQUIRED with
	// private_key_jwt.
	IntrospectionEndpointAuthSigningAlgValuesSupported []string `json:"introspection_endpoint_auth_signing_alg_values_supported,omitempty"`
	// DeviceAuthorizationEndpoint is device_authorization_endpoint (RFC 8628 §4). OPTIONAL.
	DeviceAuthorizationEndpoint string `json:"device_authorization_endpoint,omitempty"`
	// CodeChallengeMethodsSupported is code_challenge_methods_supported. MCP
	// clients refuse a server that leaves it out (A5).
	CodeChallengeMethodsSupported []string `json:"code_challenge_methods_supported,omitempty"`
	// AuthorizationResponseISSParameterSupported is
	// authorization_response_iss_parameter_supported (RFC 9207 §3). Default false.
	AuthorizationResponseISSParameterSupported bool `json:"authorization_response_iss_parameter_supported,omitempty"`
	// ClientIDMetadataDocumentSupported is client_id_metadata_document_supported
	// (draft-ietf-oauth-client-id-metadata-document §5). Default false.
	ClientIDMetadataDocumentSupported bool `json:"client_id_metadata_document_supported,omitempty"`
	// ProtectedResources is protected_resources (RFC 9728 §4). OPTIONAL.
	ProtectedResources []string `json:"protected_resources,omitempty"`
	// PromptValuesSupported is prompt_values_supported (OpenID Connect Prompt
	// Create 1.0 §4.2). OPTIONAL.
	PromptValuesSupported []string `json:"prompt_values_supported,omitempty"`
	// ServiceDocumentation is service_documentation. OPTIONAL.
	ServiceDocumentation string `json:"service_documentation,omitempty"`
	// UILocalesSupported is ui_locales_supported (BCP 47 tags). OPTIONAL.
	UILocalesSupported []string `json:"ui_locales_supported,omitempty"`
	// OPPolicyURI is op_policy_uri. OPTIONAL.
	OPPolicyURI string `json:"op_policy_uri,omitempty"`
	// OPTosURI is op_tos_uri. OPTIONAL.
	OPTosURI string `json:"op_tos_uri,omitempty"`
}

// ParseAuthorizationServer reads a document fetched for issuer. RFC 8414 §3.3:
// when its issuer is not identical, nothing of it may be used (MM-07).
func ParseAuthorizationServer(body []byte, issuer string) (AuthorizationServer, error) {
	var doc AuthorizationServer
	if err := json.Unmarshal(body, &doc); err != nil {
		return AuthorizationServer{}, fmt.Errorf("authorization server metadata: %w", wrongType(err))
	}
	if doc.Issuer == "" {
		return AuthorizationServer{}, errors.New("authorization server metadata has no issuer")
	}
	if doc.Issuer != issuer {
		return AuthorizationServer{}, fmt.Errorf("authorization server metadata is of issuer %q, want %q", doc.Issuer, issuer)
	}
	return doc, nil
}

// wrongType says of a member that has the wrong type what it is, in JSON's words.
func wrongType(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.Field == "":
		return fmt.Errorf("it is a JSON %s, not an object", wrong.Value)
	}
	return fmt.Errorf("its member %q must not be a %s", wrong.Field, wrong.Value)
}
