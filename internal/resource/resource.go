// Package resource owns the MCP servers that tokens can be issued for: their
// identifiers (RFC 8707), their scopes in words that people understand, and the
// rule by which the identifier a client sends is matched to one of them
// (decisions D5, D6, D13; rules A23 to A25).
package resource

import (
	"context"
	"time"
)

// Resource is one registered MCP server.
type Resource struct {
	// Identifier is the resource identifier, byte-exact as the operator gave it.
	// It is the aud of access tokens (A23).
	Identifier string
	// Canonical is oauth.CanonicalResource(Identifier), unique.
	Canonical string
	// Name is shown to people; never empty.
	Name string
	// Default marks the resource used when a request names none (D6). At most one row.
	Default bool
	// Scopes are the declared scopes, in the operator's order. None: the resource
	// accepts what is asked and shows it as code (D13).
	Scopes []Scope
	// ClaimedName is what the server's RFC 9728 document calls it; a claim until
	// the operator edits it.
	ClaimedName string
	// Unregistered marks a loopback resource of development mode that has no row (D4).
	Unregistered bool
	// Credential is what the MCP server asks about tokens with; the zero value is
	// none.
	Credential Credential
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// Risk says how much harm a scope can do.
type Risk string

// Risks of a scope.
const (
	RiskLow       Risk = "low"
	RiskChanges   Risk = "changes"
	RiskPermanent Risk = "permanent"
)

// Scope is one permission of a resource. The json names are the column's.
type Scope struct {
	// Name is the scope-token (RFC 6749 §3.3).
	Name string `json:"name"`
	// Title is the verb-first sentence people read; "" shows the name as code.
	Title string `json:"title,omitempty"`
	// Detail is an optional second line.
	Detail string `json:"detail,omitempty"`
	// Risk defaults to RiskLow.
	Risk Risk `json:"risk,omitempty"`
	// Required scopes cannot be unticked.
	Required bool `json:"required,omitempty"`
	// Default scopes are used when a request asks for none.
	Default bool `json:"default,omitempty"`
	// Group is a heading for many optional scopes.
	Group string `json:"group,omitempty"`
	// Implies lists narrower scopes that this one covers.
	Implies []string `json:"implies,omitempty"`
	// Restricted scopes are only for clients the operator added or verified.
	Restricted bool `json:"restricted,omitempty"`
}

// Store keeps resources.
type Store interface {
	// CreateResource inserts r, or returns store.ErrExists for the same canonical identifier.
	CreateResource(ctx context.Context, r Resource) error
	// GetResource returns the resource with that canonical identifier, or store.ErrNotFound.
	GetResource(ctx context.Context, canonical string) (Resource, error)
	// ListResources returns all resources by identifier.
	ListResources(ctx context.Context) ([]Resource, error)
	// UpdateResource replaces every field but Canonical, CreatedAt and Credential,
	// which is SetCredential's, or returns store.ErrNotFound.
	UpdateResource(ctx context.Context, r Resource) error
	// DeleteResource removes the row, or returns store.ErrNotFound.
	DeleteResource(ctx context.Context, canonical string) error
}
