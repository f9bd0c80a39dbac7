package oauth

import (
	"errors"
	"fmt"
	"time"
)

// MaxKeepOld bounds how long a rotated secret stays good beside the new one.
const MaxKeepOld = 365 * 24 * time.Hour

// ErrSecretRotating reports that the secret before the current one is still good:
// a further rotation would end it without anybody having said so.
var ErrSecretRotating = errors.New("the secret before this one is still good")

// ErrNoOldSecret reports that no secret but the current one is good.
var ErrNoOldSecret = errors.New("no secret but the current one is good")

// StoredSecret is what is stored of a secret that can be rotated, a client's or an
// MCP server's: for a while the old one is good beside the new one, so that
// machines can be changed one after the other. The zero value matches nothing.
type StoredSecret struct {
	// SecretHash is the hash of the current secret (HashSecret); nil without one.
	SecretHash []byte
	// SecretExpiresAt ends the secret's life; zero means never (RFC 7591
	// client_secret_expires_at 0).
	SecretExpiresAt time.Time
	// OldSecretHash is the hash of the secret before the last rotation, which is
	// still good until OldSecretExpiresAt; nil without one.
	OldSecretHash      []byte
	OldSecretExpiresAt time.Time
}

// Rotation says how a secret is rotated.
type Rotation struct {
	// OldUntil is until when the present secret stays good beside the new one; a
	// time that is not in the future ends it at once.
	OldUntil time.Time
	// Drop allows a rotation while a still older secret is good; that one ends.
	Drop bool
}

// Matches reports whether hash is of a secret that is good at now (CA-07). Both
// are always compared, in constant time.
func (s *StoredSecret) Matches(hash []byte, now time.Time) bool {
	current := SameHash(s.SecretHash, hash) && (s.SecretExpiresAt.IsZero() || now.Before(s.SecretExpiresAt))
	old := SameHash(s.OldSecretHash, hash) && now.Before(s.OldSecretExpiresAt)
	return current || old
}

// HasOldSecret reports whether the secret before the last rotation is still good.
func (s *StoredSecret) HasOldSecret(now time.Time) bool {
	return len(s.OldSecretHash) > 0 && now.Before(s.OldSecretExpiresAt)
}

// Rotate replaces the secret by the one with this hash. The present one is kept as
// o says, and never longer than it would have been good. It is ErrSecretRotating,
// or invalid_request for an OldUntil beyond MaxKeepOld.
func (s *StoredSecret) Rotate(hash []byte, o Rotation, now time.Time) error {
	switch {
	case o.OldUntil.After(now.Add(MaxKeepOld)):
		return InvalidRequest("the old secret can stay good for %d days at most", int(MaxKeepOld.Hours()/24))
	case s.HasOldSecret(now) && !o.Drop:
		return fmt.Errorf("%w, until %s", ErrSecretRotating, s.OldSecretExpiresAt.UTC().Format(time.RFC3339))
	}
	until := o.OldUntil
	if !s.SecretExpiresAt.IsZero() && s.SecretExpiresAt.Before(until) {
		until = s.SecretExpiresAt
	}
	rotated := StoredSecret{SecretHash: hash}
	if until.After(now) {
		rotated.OldSecretHash, rotated.OldSecretExpiresAt = s.SecretHash, until
	}
	*s = rotated
	return nil
}

// EndOldSecret ends the secret before the last rotation; none is ErrNoOldSecret.
func (s *StoredSecret) EndOldSecret(now time.Time) error {
	if !s.HasOldSecret(now) {
		return ErrNoOldSecret
	}
	s.OldSecretHash, s.OldSecretExpiresAt = nil, time.Time{}
	return nil
}
