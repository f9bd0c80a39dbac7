package registration

import (
	"context"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// RotateOptions says how a secret is rotated.
type RotateOptions struct {
	oauth.Rotation
	// Secret is the new secret, "" to have one made. See CheckImportedSecret.
	Secret oauth.Secret
}

// RotateSecret gives the client a new secret and keeps the present one good for a
// while, so that its machines can be changed one after the other. The secret is
// returned once, "" when it was given. A client without secret is
// invalid_client_metadata, one that does not exist store.ErrNotFound; see Rotate
// for the rest.
func (a *Admin) RotateSecret(ctx context.Context, id string, o RotateOptions) (Client, oauth.Secret, error) {
	made, secret := oauth.Secret(""), o.Secret
	if secret == "" {
		made = oauth.NewSecret()
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
		case c.CheckSecret(secret, now):
			return oauth.InvalidClientMetadata("the new secret is the one that the client has")
		}
		if err := c.Rotate(HashSecret(c.ID, secret), o.Rotation, now); err != nil {
			return err
		}
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

// EndOldSecret ends the secret before the last rotation now. A client that has
// none is oauth.ErrNoOldSecret, one that does not exist store.ErrNotFound.
func (a *Admin) EndOldSecret(ctx context.Context, id string) (Client, error) {
	return a.edit(ctx, id, "client.old_secret_ended", func(c *Client) error {
		return c.StoredSecret.EndOldSecret(a.Now())
	})
}
