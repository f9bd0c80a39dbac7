// Package registration owns OAuth clients: how they become known (by an
// operator, by dynamic registration, RFC 7591 and 7592, or by a Client ID
// Metadata Document), how they prove who they are, and what they may ask for.
// It knows nothing of tokens: authserver asks it for a client and gets one whose
// metadata is already valid.
package registration

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Kind says how a client became known.
type Kind string

// Kinds of client.
const (
	KindOperator Kind = "operator" // added by the operator
	KindDynamic  Kind = "dynamic"  // registered itself, RFC 7591
	KindCIMD     Kind = "cimd"     // Client ID Metadata Document
)

// Client authentication methods at the token endpoint (RFC 7591 §2).
const (
	AuthNone              = "none"
	AuthClientSecretBasic = "client_secret_basic"
	AuthClientSecretPost  = "client_secret_post"
	AuthPrivateKeyJWT     = "private_key_jwt" // RFC 7523
)

// Grant types (RFC 7591 §2).
const (
	GrantAuthorizationCode = "authorization_code"
	GrantRefreshToken      = "refresh_token"
	GrantClientCredentials = "client_credentials"
)

// Client is a registered OAuth client whose metadata is valid.
type Client struct {
	// ID is the client_id.
	ID string
	// Kind says how it became known.
	Kind Kind
	// Metadata is what it registered, normalised.
	Metadata ClientMetadata
	// StoredSecret is of its secret (D16); none for public clients.
	oauth.StoredSecret
	// RegistrationTokenHash is the hash of the registration access token (RFC 7592
	// §3); nil for a client that cannot manage itself.
	RegistrationTokenHash []byte
	// Resources, when not empty, are the only resource identifiers (canonical) it may ask for (D13).
	Resources []string
	// Source is the network source that registered it, for budgets.
	Source string
	// VerifiedAt is when the operator verified it; zero: not verified.
	VerifiedAt time.Time
	// VerifiedUntil is when the document of a verified client (CIMD) became another
	// than the operator saw; zero: it is what they verified.
	VerifiedUntil time.Time
	// DisabledAt is when the operator switched it off; zero: enabled.
	DisabledAt time.Time
	// BlockedAt is when the operator blocked it: like disabled, its grants ended,
	// and a document that is fetched again does not bring it back; zero: not blocked.
	BlockedAt time.Time
	// DocumentHash is the hash of its metadata document (CIMD), or of the
	// registered metadata; a remembered consent is bound to it.
	DocumentHash string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	// LastUsedAt is when a code was last issued to it, or, to the hour, a token
	// without a person; zero: never.
	LastUsedAt time.Time
}

// ClientMetadata is a client's registered metadata (RFC 7591 §2) as stored and
// echoed. The json names are RFC 7591's; empty values are left out, so the
// response has no nulls and no empty URLs (rule A12).
type ClientMetadata struct {
	// RedirectURIs is REQUIRED for authorization_code.
	RedirectURIs []string `json:"redirect_uris,omitempty"`
	// TokenEndpointAuthMethod is always explicit (A12, A13).
	TokenEndpointAuthMethod string `json:"token_endpoint_auth_method"`
	// GrantTypes is always explicit, narrowed to what is allowed (D23).
	GrantTypes []string `json:"grant_types"`
	// ResponseTypes is always explicit.
	ResponseTypes []string `json:"response_types"`
	// ClientName is a claim: normalised, at most 60 characters when shown.
	ClientName string `json:"client_name,omitempty"`
	ClientURI  string `json:"client_uri,omitempty"`
	LogoURI    string `json:"logo_uri,omitempty"`
	TosURI     string `json:"tos_uri,omitempty"`
	PolicyURI  string `json:"policy_uri,omitempty"`
	// Scope is what it was registered for; see Client.ScopeLimit (A14).
	Scope    string   `json:"scope,omitempty"`
	Contacts []string `json:"contacts,omitempty"`
	// ApplicationType is stored and echoed, never judged (A11).
	ApplicationType string `json:"application_type,omitempty"`
	SoftwareID      string `json:"software_id,omitempty"`
	SoftwareVersion string `json:"software_version,omitempty"`
	// SoftwareStatement is the statement that was accepted, unchanged (RFC 7591
	// §3.2.1); "" for one that did not count.
	SoftwareStatement string `json:"software_statement,omitempty"`
	// JWKS are the client's public keys, or JWKSURI says where they are; never both
	// (RFC 7591 §2). Only for private_key_jwt.
	JWKS    json.RawMessage `json:"jwks,omitempty"`
	JWKSURI string          `json:"jwks_uri,omitempty"`
	// TokenEndpointAuthSigningAlg is the one alg its assertions have, "" for any
	// that the server supports.
	TokenEndpointAuthSigningAlg string `json:"token_endpoint_auth_signing_alg,omitempty"`
	// OtherAuthMethods are methods that a metadata document offers beside
	// TokenEndpointAuthMethod; only "none" beside private_key_jwt.
	OtherAuthMethods []string `json:"token_endpoint_auth_methods_supported,omitempty"`
}

// AcceptsAuthMethod reports whether the client may authenticate so.
func (m *ClientMetadata) AcceptsAuthMethod(method string) bool {
	return method == m.TokenEndpointAuthMethod || slices.Contains(m.OtherAuthMethods, method)
}

// IsPublic reports whether the client has no credential.
func (c *Client) IsPublic() bool { return c.Metadata.TokenEndpointAuthMethod == AuthNone }

// Enabled reports whether the client may be used at all.
func (c *Client) Enabled() bool { return c.DisabledAt.IsZero() && c.BlockedAt.IsZero() }

// Trusted reports whether the operator added the client, or verified what it now
// is (D11, D14).
func (c *Client) Trusted() bool {
	return c.Kind == KindOperator || !c.VerifiedAt.IsZero() && c.VerifiedUntil.IsZero()
}

// ScopeLimit is the most the client may ask for, "" for no limit: what the
// operator wrote. What a client registered by itself is no limit (A14): the
// TypeScript SDK registers the scope of its first challenge and asks for more
// when a tool needs it; the person's answer bounds it.
func (c *Client) ScopeLimit() string {
	if c.Kind != KindOperator {
		return ""
	}
	return c.Metadata.Scope
}

// MayUseGrant reports whether the client's grant_types list the grant type.
func (c *Client) MayUseGrant(grantType string) bool {
	return slices.Contains(c.Metadata.GrantTypes, grantType)
}

// MayUseResource reports whether the client may ask for the resource, given in
// canonical form.
func (c *Client) MayUseResource(canonical string) bool {
	return len(c.Resources) == 0 || slices.Contains(c.Resources, canonical)
}

// Store keeps clients. Every method is one statement.
type Store interface {
	// CreateClient inserts c, or returns store.ErrExists.
	CreateClient(ctx context.Context, c Client) error
	// GetClient returns the client, or store.ErrNotFound.
	GetClient(ctx context.Context, id string) (Client, error)
	// ListClients returns every client, oldest first.
	ListClients(ctx context.Context) ([]Client, error)
	// HoldClient returns the client, or store.ErrNotFound. Inside a transaction
	// it holds the row, so that what is returned stays true until its end.
	HoldClient(ctx context.Context, id string) (Client, error)
	// UpdateClient replaces every field but ID, Kind, CreatedAt and LastUsedAt,
	// which is TouchClient's, or returns store.ErrNotFound.
	UpdateClient(ctx context.Context, c Client) error
	// DeleteClient removes the row, or returns store.ErrNotFound.
	DeleteClient(ctx context.Context, id string) error
	// CountClientsFrom returns how many clients of KindDynamic that nobody has
	// used yet a source registered since a time; "" counts every source.
	CountClientsFrom(ctx context.Context, source string, since time.Time) (int, error)
	// TouchClient sets LastUsedAt, or returns store.ErrNotFound for a client that
	// is blocked or gone.
	TouchClient(ctx context.Context, id string, now time.Time) error
}
