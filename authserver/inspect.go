package authserver

import (
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// TokenInfo is what the string of a code or refresh token says of itself, for
// an operator who asks (`ostiary token inspect`).
type TokenInfo struct {
	// Kind is "authorization code" or "refresh token".
	Kind string
	// KID is the state secret under which it was made.
	KID int
	// GrantID and Generation are what it belongs to.
	GrantID    string
	Generation int

	strings tokenStrings
	ref     tokenRef
}

// InspectToken parses a code or refresh token; ok is false for anything else.
// What it says is a claim until Genuine confirms it.
func InspectToken(secrets *keys.Secrets, issuer string, token oauth.Secret) (info TokenInfo, ok bool) {
	ts := tokenStrings{secrets: secrets, issuer: issuer}
	for kind, name := range map[string]string{kindCode: "authorization code", kindRefresh: "refresh token"} {
		if ref, err := ts.parse(kind, token); err == nil {
			return TokenInfo{Kind: name, KID: int(ref.kid), GrantID: ref.grantID, Generation: ref.generation, strings: ts, ref: ref}, true
		}
	}
	return TokenInfo{}, false
}

// Genuine reports whether this issuer made the token for the grant with that
// salt. The salt of an ended grant is gone, so nothing is genuine there.
func (i TokenInfo) Genuine(salt []byte) bool { return i.strings.verify(i.ref, salt) }
