// Package grant owns the grant: one approval by one person for one installation
// of a client at one resource (decision D10). Its authorization code is
// generation 0 and its refresh token n is generation n, so rotation is one
// UPDATE and no token is ever stored. authserver issues from grants; the account
// pages and the command line list and end them.
package grant

import (
	"context"
	"time"
)

// Grant is one approval by one person for one installation of a client.
type Grant struct {
	// ID is 16 random bytes, as 32 lower-case hexadecimal digits.
	ID string
	// ClientID is the client the grant belongs to.
	ClientID string
	// Subject is the account that approved.
	Subject string
	// Resource is the one resource identifier, byte-exact as registered; the
	// audience of its access tokens.
	Resource string
	// Scopes are what was granted, in the order requested; never a protocol
	// scope such as offline_access.
	Scopes []string
	// OfflineAccess says whether the person allowed refresh tokens ("Stay
	// connected") and the client may use them (D9).
	OfflineAccess bool
	// OfflineNamed says whether offline_access was asked for by name, and so is
	// named in the token response (D9).
	OfflineNamed bool
	// RedirectURI is where the code was sent.
	RedirectURI string
	// CodeChallenge is the S256 challenge (RFC 7636).
	CodeChallenge string
	// AuthMethod is the client authentication method that redeemed the code; ""
	// before. Refresh may not be weaker (D8).
	AuthMethod string
	// AuthTime is when the person signed in.
	AuthTime time.Time
	// Salt is 32 random bytes under the tags of the grant's token strings; nil
	// once the grant has ended (D29).
	Salt []byte
	// Generation counts redemptions: 0 before the code is used.
	Generation int
	// AdvancedAt is when Generation was reached; zero at generation 0.
	AdvancedAt time.Time
	// CodeExpiresAt ends the code's life (D17).
	CodeExpiresAt time.Time
	// RefreshExpiresAt is the idle limit of the newest refresh token; zero when
	// there is none.
	RefreshExpiresAt time.Time
	// ExpiresAt is the absolute limit; never extended.
	ExpiresAt time.Time
	// EndedAt is when the grant was ended; zero while it lives.
	EndedAt time.Time
	// EndReason says why, one of the Reason constants.
	EndReason string
	// CreatedAt is when the person approved.
	CreatedAt time.Time
}

// Reasons for which a grant ends.
const (
	ReasonCodeReuse    = "code_reuse"
	ReasonRefreshReuse = "refresh_reuse"
	ReasonRevoked      = "revoked"
	ReasonDisconnected = "disconnected"
	ReasonOperator     = "operator"
	ReasonUserDisabled = "user_disabled"
	ReasonPassword     = "password_changed"
	ReasonClient       = "client_removed"
	ReasonBlocked      = "client_blocked"
	ReasonResource     = "resource_removed"
)

// Live reports whether the grant has not ended or expired at now. A grant whose
// code was never redeemed lives only as long as the code.
func (g *Grant) Live(now time.Time) bool {
	switch {
	case !g.EndedAt.IsZero(), !now.Before(g.ExpiresAt):
		return false
	case g.Generation == 0:
		return now.Before(g.CodeExpiresAt)
	}
	return g.RefreshExpiresAt.IsZero() || now.Before(g.RefreshExpiresAt)
}

// Advance says which step Store.Advance is to take.
type Advance struct {
	// ID names the grant.
	ID string
	// From is the generation the row must have.
	From int
	// To is the generation it gets, From+1 but for a healed lost commit (D30).
	To int
	// AuthMethod is written when the grant leaves generation 0.
	AuthMethod string
	// RefreshExpiresAt is the new idle limit; zero when no refresh token is issued.
	RefreshExpiresAt time.Time
	// ExpiresAt, when not zero, replaces the absolute limit; only the redemption
	// of a code without refresh sets it (to the access token's expiry).
	ExpiresAt time.Time
	// Unregistered says that the resource has no row (development mode, D4).
	Unregistered bool
	// Now is the time of the step.
	Now time.Time
}

// Filter selects grants; empty fields match all.
type Filter struct {
	Subject  string
	ClientID string
	Resource string
	// LiveAt, when set, selects grants that were redeemed and live at that time.
	LiveAt time.Time
}

// Store keeps grants. Every method is one statement.
type Store interface {
	// CreateGrant inserts g.
	CreateGrant(ctx context.Context, g Grant) error
	// GetGrant returns the grant, or store.ErrNotFound.
	GetGrant(ctx context.Context, id string) (Grant, error)
	// AdvanceGrant moves a live grant from one generation to the next and reports
	// whether it did. It repeats every condition that can have changed since the
	// grant was read: generation, end, expiries, account, client and resource (D30).
	AdvanceGrant(ctx context.Context, a Advance) (bool, error)
	// EndGrant ends the grant, erases its salt and reports whether it was live.
	EndGrant(ctx context.Context, id, reason string, now time.Time) (bool, error)
	// EndGrants ends every grant that f selects that has not ended, and returns how many.
	EndGrants(ctx context.Context, f Filter, reason string, now time.Time) (int, error)
	// ListGrants returns the grants that f selects, newest first.
	ListGrants(ctx context.Context, f Filter) ([]Grant, error)
}
