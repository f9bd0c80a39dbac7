package resource

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// credentialPrefix begins the ID of every credential. No client_id may have a "~",
// neither a registered one nor a URL's beginning, so that the two are never taken
// for one another.
const credentialPrefix = "rs~"

// ErrNoCredential reports that the resource cannot ask about tokens.
var ErrNoCredential = errors.New("the resource has no credential for introspection")

// Credential is what an MCP server proves itself with when it asks about tokens
// (RFC 7662 §2.1). The zero value is none and matches nothing.
type Credential struct {
	// ID stands where a client_id does, and is none.
	ID string
	// StoredSecret is of its secret (D16), which does not expire.
	oauth.StoredSecret
}

// IsCredentialID reports the form of a Credential's ID, which no client_id has.
func IsCredentialID(id string) bool { return strings.HasPrefix(id, credentialPrefix) }

// newCredential returns a credential of 130 random bits of ID, and its secret.
func newCredential() (Credential, oauth.Secret) {
	c, secret := Credential{ID: credentialPrefix + strings.ToLower(rand.Text())}, oauth.NewSecret()
	c.SecretHash = c.hash(secret)
	return c, secret
}

// Exists reports whether there is a credential.
func (c *Credential) Exists() bool { return c.ID != "" }

// CheckSecret reports whether secret is the credential's at now: the current one,
// or the one before the last rotation while it is still good.
func (c *Credential) CheckSecret(secret oauth.Secret, now time.Time) bool {
	return c.Matches(c.hash(secret), now)
}

func (c *Credential) hash(secret oauth.Secret) []byte {
	return oauth.HashSecret("ostiary resource secret v1", c.ID, secret)
}

// AddWithCredential is Add for a resource that may ask about tokens. The secret is
// not shown again.
func (a *Admin) AddWithCredential(ctx context.Context, r Resource) (added Resource, secret oauth.Secret, err error) {
	err = a.inTx(ctx, func(ctx context.Context) error {
		if added, err = a.Add(ctx, r); err != nil {
			return err
		}
		added, secret, err = a.AddCredential(ctx, added.Identifier)
		return err
	})
	if err != nil {
		return Resource{}, "", err
	}
	return added, secret, nil
}

// AddCredential lets the resource that identifier names ask about tokens, and
// returns the secret, which is not shown again. One that has a credential is
// store.ErrExists, an unknown resource store.ErrNotFound.
func (a *Admin) AddCredential(ctx context.Context, identifier string) (Resource, oauth.Secret, error) {
	var secret oauth.Secret
	r, err := a.editCredential(ctx, identifier, "resource.secret_added", nil, func(c *Credential) error {
		if c.Exists() {
			return fmt.Errorf("the resource has a credential: %w", store.ErrExists)
		}
		*c, secret = newCredential()
		return nil
	})
	if err != nil {
		return Resource{}, "", err
	}
	return r, secret, nil
}

// RotateSecret gives the credential a new secret and keeps the present one good
// for a while, so that the machines of an MCP server can be changed one after the
// other. The secret is returned once. A resource without credential is
// ErrNoCredential, an unknown one store.ErrNotFound.
func (a *Admin) RotateSecret(ctx context.Context, identifier string, o oauth.Rotation) (Resource, oauth.Secret, error) {
	secret, detail := oauth.NewSecret(), map[string]string{}
	r, err := a.editCredential(ctx, identifier, "resource.secret_rotated", detail, func(c *Credential) error {
		if !c.Exists() {
			return ErrNoCredential
		}
		now := a.now()
		if err := c.Rotate(c.hash(secret), o, now); err != nil {
			return err
		}
		if c.HasOldSecret(now) {
			detail["old_until"] = c.OldSecretExpiresAt.UTC().Format(time.RFC3339)
		}
		return nil
	})
	if err != nil {
		return Resource{}, "", err
	}
	return r, secret, nil
}

// EndOldSecret ends the secret before the last rotation now. A resource that has
// none is oauth.ErrNoOldSecret, an unknown one store.ErrNotFound.
func (a *Admin) EndOldSecret(ctx context.Context, identifier string) (Resource, error) {
	return a.editCredential(ctx, identifier, "resource.old_secret_ended", nil, func(c *Credential) error {
		return c.StoredSecret.EndOldSecret(a.now())
	})
}

// RemoveCredential ends the credential: the MCP server can no longer ask. A
// resource that has none is ErrNoCredential, an unknown one store.ErrNotFound.
func (a *Admin) RemoveCredential(ctx context.Context, identifier string) (Resource, error) {
	return a.editCredential(ctx, identifier, "resource.secret_removed", nil, func(c *Credential) error {
		if !c.Exists() {
			return ErrNoCredential
		}
		*c = Credential{}
		return nil
	})
}

// editCredential changes a resource's credential and appends the event, whose
// detail fn may fill, in one transaction.
func (a *Admin) editCredential(ctx context.Context, identifier, event string, detail map[string]string, fn func(*Credential) error) (r Resource, err error) {
	err = a.inTx(ctx, func(ctx context.Context) error {
		if r, err = a.Get(ctx, identifier); err != nil {
			return err
		}
		if err := fn(&r.Credential); err != nil {
			return err
		}
		r.UpdatedAt = a.now()
		if err := a.Store.SetCredential(ctx, r.Canonical, r.Credential, r.UpdatedAt); err != nil {
			return err
		}
		return a.Store.Append(ctx, audit.New(ctx, a.now(), audit.Event{
			Name: event, Actor: "operator", Resource: r.Identifier, Detail: detail}))
	})
	if err != nil {
		return Resource{}, fmt.Errorf("%s: %w", event, err)
	}
	return r, nil
}
