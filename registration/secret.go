package registration

import (
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// HashSecret returns what is stored of a client's secret. A fast hash is right for
// 256 random bits; bcrypt would let anybody spend our CPU at /token (D16).
func HashSecret(clientID string, secret oauth.Secret) []byte {
	return oauth.HashSecret("ostiary client secret v1", clientID, secret)
}

// CheckSecret reports whether secret is the client's at now: the current one, or
// the one before the last rotation while it is still good (CA-07).
func (c *Client) CheckSecret(secret oauth.Secret, now time.Time) bool {
	return c.Matches(HashSecret(c.ID, secret), now)
}

// UsesSecret reports whether the client authenticates with a secret.
func (c *Client) UsesSecret() bool {
	m := c.Metadata.TokenEndpointAuthMethod
	return m == AuthClientSecretBasic || m == AuthClientSecretPost
}
