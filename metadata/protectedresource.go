package metadata

import (
	"encoding/json"
	"fmt"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// ProtectedResource is protected resource metadata (RFC 9728 §2).
type ProtectedResource struct {
	// Resource is resource, the resource identifier. REQUIRED.
	Resource string `json:"resource"`
	// AuthorizationServers is authorization_servers, issuers. OPTIONAL in RFC
	// 9728, required by MCP.
	AuthorizationServers []string `json:"authorization_servers,omitempty"`
	// JWKSURI is jwks_uri, the resource's own keys. OPTIONAL.
	JWKSURI string `json:"jwks_uri,omitempty"`
	// ScopesSupported is scopes_supported. RECOMMENDED.
	ScopesSupported []string `json:"scopes_supported,omitempty"`
	// BearerMethodsSupported is bearer_methods_supported. OPTIONAL; [] means none.
	BearerMethodsSupported []string `json:"bearer_methods_supported,omitempty"`
	// ResourceName is resource_name, for people. RECOMMENDED.
	ResourceName string `json:"resource_name,omitempty"`
	// ResourceDocumentation is resource_documentation. OPTIONAL.
	ResourceDocumentation string `json:"resource_documentation,omitempty"`
	// ResourcePolicyURI is resource_policy_uri. OPTIONAL.
	ResourcePolicyURI string `json:"resource_policy_uri,omitempty"`
	// ResourceTosURI is resource_tos_uri. OPTIONAL.
	ResourceTosURI string `json:"resource_tos_uri,omitempty"`
}

// ParseProtectedResource reads a document fetched for the resource. RFC 9728
// §3.3: when it names another resource, nothing of it may be used (MM-10).
// Compared are canonical forms, since clients and servers disagree about the
// trailing slash (A23).
func ParseProtectedResource(body []byte, resource string) (ProtectedResource, error) {
	var doc ProtectedResource
	if err := json.Unmarshal(body, &doc); err != nil {
		return ProtectedResource{}, fmt.Errorf("protected resource metadata: %w", wrongType(err))
	}
	want, err := oauth.CanonicalResource(resource)
	if err != nil {
		return ProtectedResource{}, fmt.Errorf("protected resource metadata: %w", err)
	}
	got, err := oauth.CanonicalResource(doc.Resource)
	if err != nil {
		return ProtectedResource{}, fmt.Errorf("protected resource metadata: %w", err)
	}
	if got != want {
		return ProtectedResource{}, fmt.Errorf("protected resource metadata is of resource %q, want %q", doc.Resource, resource)
	}
	return doc, nil
}
