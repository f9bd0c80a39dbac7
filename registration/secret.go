package registration

import (
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// NewSecret returns a client secret of 256 random bits in [A-Za-z0-9_-] (D16, A16).
func NewSecret() oauth.Secret { return oauth.NewSecret() }

// HashSecret returns what is stored of a secret. A fast hash is right for 256
// random bits; bcrypt would let anybody spend our CPU at /token (D16).
func HashSecret(clientID string, secret oauth.Secret) []byte {
	return hashed("ostiary client secret v1", clientID, secret)
}

// hashed is the hash of a secret under a label of its kind and its owner's ID, ""
// for none (D16).
func hashed(label, owner string, secret oauth.Secret) []byte {
	return oauth.HashSecret(label, owner, secret)
}

// CheckSecret reports whether secret is the client's at now: the current one, or
// the one before the last rotation while it is still good (CA-07). Both are always
// compared, in constant time; a client without a stored hash never matches.
func (c *Client) CheckSecret(secret oauth.Secret, now time.Time) bool {
	hash := HashSecret(c.ID, secret)
	current := matches(c.SecretHash, hash) && (c.SecretExpiresAt.IsZero() || now.Before(c.SecretExpiresAt))
	old := matches(c.OldSecretHash, hash) && now.Before(c.OldSecretExpiresAt)
	return current || old
}

func matches(stored, hash []byte) bool { return oauth.SameHash(stored, hash) }

// UsesSecret reports whether the client authenticates with a secret.
func (c *Client) UsesSecret() bool {
	m := c.Metadata.TokenEndpointAuthMethod
	return m == AuthClientSecretBasic || m == AuthClientSecretPost
}
