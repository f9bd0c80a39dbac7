package registration

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// NewSecret returns a client secret of 256 random bits in [A-Za-z0-9_-] (D16, A16).
func NewSecret() oauth.Secret {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return oauth.Secret(base64.RawURLEncoding.EncodeToString(b[:]))
}

// HashSecret returns what is stored of a secret. A fast hash is right for 256
// random bits; bcrypt would let anybody spend our CPU at /token (D16).
func HashSecret(clientID string, secret oauth.Secret) []byte {
	h := sha256.New()
	h.Write([]byte("ostiary client secret v1"))
	h.Write([]byte(clientID))
	h.Write([]byte(secret.Reveal()))
	return h.Sum(nil)
}

// CheckSecret compares in constant time; a client without a stored hash never matches.
func (c *Client) CheckSecret(secret oauth.Secret) bool {
	return len(c.SecretHash) == sha256.Size &&
		subtle.ConstantTimeCompare(c.SecretHash, HashSecret(c.ID, secret)) == 1
}
