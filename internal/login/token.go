package login

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// newRandom returns 256 random bits as 43 characters: the value of a session
// or device cookie, or the token of a set-up link.
func newRandom() oauth.Secret {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return oauth.Secret(base64.RawURLEncoding.EncodeToString(b[:]))
}

// hashOf is what is stored of such a value: a fast hash is right for 256
// random bits (D16), so a copy of the database opens no session (ST-02). The
// purpose keeps one kind of row from standing in for another.
func hashOf(purpose, value string) string {
	h := sha256.Sum256([]byte("ostiary " + purpose + " v1\x00" + value))
	return hex.EncodeToString(h[:])
}

// isRandom reports whether s has the form that newRandom makes. Anything else
// is not looked up.
func isRandom(s string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(raw) == 32
}

// newAccountID returns the opaque id of a new account: the sub of its tokens
// (D7), 128 random bits.
func newAccountID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return "u_" + hex.EncodeToString(b[:])
}
