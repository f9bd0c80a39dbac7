package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// MaxKeepOld bounds how long a rotated secret stays good beside the new one.
const MaxKeepOld = 365 * 24 * time.Hour

// ErrSecretRotating reports that the secret before the current one is still good:
// a further rotation would end it without anybody having said so.
var ErrSecretRotating = errors.New("the secret before this one is still good")

// ErrNoOldSecret reports that no secret but the current one is good.
var ErrNoOldSecret = errors.New("no secret but the current one is good")

// RotateOptions says how a secret is rotated.
type RotateOptions struct {
	// OldUntil is until when the present secret stays good beside the new one; a
	// time that is not in the future ends it at once.
	OldUntil time.Time
	// Secret is the new secret, "" to have one made. See CheckImportedSecret.
	Secret oauth.Secret
	// Drop allows a rotation while a still older secret is good; that one ends.
	Drop bool
}

// RotateSecret gives the client a new secret and keeps the present one good for a
// while, so that its machines can be changed one after the other. The secret is
// returned once, "" when it was given. A client without secret is
// invalid_client_metadata, one that does not exist store.ErrNotFound.
func (a *Admin) RotateSecret(ctx context.Context, id string, o RotateOptions) (Client, oauth.Secret, error) {
	made, secret := oauth.Secret(""), o.Secret
	if secret == "" {
		made = NewSecret()
		secret = made
	} else if err := CheckImportedSecret(secret); err != nil {
		return Client{}, "", err
	}
	detail := map[string]string{}
	c, err := a.editWith(ctx, id, "client.secret_rotated", detail, func(c *Client) error {
		now := a.Now()
		switch {
		case !c.UsesSecret():
			return oauth.InvalidClientMetadata("the client has no secret: it authenticates with %s", c.Metadata.TokenEndpointAuthMethod).With(ErrUnfit)
		case o.OldUntil.After(now.Add(MaxKeepOld)):
			return oauth.InvalidClientMetadata("the old secret can stay good for %d days at most", int(MaxKeepOld.Hours()/24))
		case c.HasOldSecret(now) && !o.Drop:
			return fmt.Errorf("%w, until %s", ErrSecretRotating, c.OldSecretExpiresAt.UTC().Format(time.RFC3339))
		case c.CheckSecret(secret, now):
			return oauth.InvalidClientMetadata("the new secret is the one that the client has")
		}
		rotate(c, secret, o.OldUntil, now)
		if c.HasOldSecret(now) {
			detail["old_until"] = c.OldSecretExpiresAt.UTC().Format(time.RFC3339)
		}
		if made == "" {
			detail["secret"] = "imported"
		}
		return nil
	})
	if err != nil {
		return Client{}, "", err
	}
	return c, made, nil
}

// rotate replaces the secret; the present one is kept until oldUntil, and never
// longer than it would have been good.
func rotate(c *Client, secret oauth.Secret, oldUntil, now time.Time) {
	if !c.SecretExpiresAt.IsZero() && c.SecretExpiresAt.Before(oldUntil) {
		oldUntil = c.SecretExpiresAt
	}
	c.OldSecretHash, c.OldSecretExpiresAt = nil, time.Time{}
	if oldUntil.After(now) {
		c.OldSecretHash, c.OldSecretExpiresAt = c.SecretHash, oldUntil
	}
	c.SecretHash, c.SecretExpiresAt = HashSecret(c.ID, secret), time.Time{}
}

// EndOldSecret ends the secret before the last rotation now. A client that has
// none is ErrNoOldSecret, one that does not exist store.ErrNotFound.
func (a *Admin) EndOldSecret(ctx context.Context, id string) (Client, error) {
	return a.edit(ctx, id, "client.old_secret_ended", func(c *Client) error {
		if !c.HasOldSecret(a.Now()) {
			return ErrNoOldSecret
		}
		c.OldSecretHash, c.OldSecretExpiresAt = nil, time.Time{}
		return nil
	})
}

// HasOldSecret reports whether the secret before the last rotation is still good.
func (c *Client) HasOldSecret(now time.Time) bool {
	return len(c.OldSecretHash) > 0 && now.Before(c.OldSecretExpiresAt)
}
