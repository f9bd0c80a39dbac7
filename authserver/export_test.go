package authserver

import (
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// MintToken makes the token string of a grant's generation, for tests that need
// one the server never handed out: of another issuer, another secret, or a
// generation ahead of the row.
func MintToken(secrets *keys.Secrets, issuer, grantID string, generation int, salt []byte) (oauth.Secret, error) {
	return (&tokenStrings{secrets: secrets, issuer: issuer}).mint(grantID, generation, salt)
}
