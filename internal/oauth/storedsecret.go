package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

// NewSecret returns a secret of 256 random bits in [A-Za-z0-9_-] (D16, A16).
func NewSecret() Secret {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return Secret(base64.RawURLEncoding.EncodeToString(b[:]))
}

// HashSecret is what is stored of a secret: a hash under a label of its kind and
// its owner's ID, "" for none. A fast one is right for 256 random bits (D16). The
// IDs of one kind are of one length, so nothing needs a separator.
func HashSecret(label, owner string, secret Secret) []byte {
	sum := sha256.Sum256([]byte(label + owner + secret.Reveal()))
	return sum[:]
}

// SameHash compares a stored hash with another in constant time; a stored one that
// is missing matches nothing.
func SameHash(stored, hash []byte) bool {
	return len(stored) == sha256.Size && subtle.ConstantTimeCompare(stored, hash) == 1
}
