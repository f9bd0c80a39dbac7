package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// ErrOff reports a client that is disabled or blocked, and so cannot be verified.
var ErrOff = errors.New("the client is disabled or blocked")

// ErrBlocked reports a client that is blocked, and so cannot be enabled.
var ErrBlocked = errors.New("the client is blocked")

// ErrChanged reports a client that is other than the operator saw.
var ErrChanged = errors.New("the client changed since it was looked at")

// Verify says that the operator vouches for the client as for one it added: its
// name is shown as verified and approvals are remembered (D11), until its metadata
// document says something else of who it is (CI-17).
//
// seen is the DocumentHash of the client that the operator looked at: its document
// may be read again, or it may update itself, at any moment. It returns ErrChanged,
// ErrOff, or store.ErrNotFound.
func (a *Admin) Verify(ctx context.Context, id, seen string) (Client, error) {
	return a.edit(ctx, id, "client.verified", func(c *Client) error {
		switch {
		case c.DocumentHash != seen:
			return ErrChanged
		case !c.Enabled():
			return ErrOff
		}
		if !c.Trusted() || c.VerifiedAt.IsZero() {
			c.VerifiedAt, c.VerifiedUntil = a.Now(), time.Time{}
		}
		return nil
	})
}

// Block keeps the client out: no request, no token, its grants ended, consents to
// it forgotten and its verification taken back. A metadata document that is read
// again, or registration management, does not bring it back; Unblock does. It
// returns how many grants it ended, or store.ErrNotFound.
func (a *Admin) Block(ctx context.Context, id string) (ended int, err error) {
	if !IsClientID(id) {
		return 0, fmt.Errorf("block client: %w", store.ErrNotFound)
	}
	detail := map[string]string{}
	err = a.change(ctx, "client.blocked", id, detail, func(ctx context.Context) error {
		c, err := a.Clients.HoldClient(ctx, id)
		if err != nil {
			return err
		}
		if c.BlockedAt.IsZero() {
			c.BlockedAt = a.Now()
		}
		c.VerifiedAt, c.VerifiedUntil, c.UpdatedAt = time.Time{}, time.Time{}, a.Now()
		if err := a.Clients.UpdateClient(ctx, c); err != nil {
			return err
		}
		ended, err = grant.EndAll(ctx, a.Consents, a.Grants, grant.Filter{ClientID: id}, grant.ReasonBlocked, a.Now())
		detail["grants_ended"] = fmt.Sprint(ended)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("block client: %w", err)
	}
	return ended, nil
}

// Unblock lets a blocked client in again, as one that is not verified. Nothing of
// what it held comes back. A client that was disabled as well stays so.
func (a *Admin) Unblock(ctx context.Context, id string) (Client, error) {
	return a.edit(ctx, id, "client.unblocked", func(c *Client) error {
		c.BlockedAt = time.Time{}
		return nil
	})
}

// LooksLike returns what about the client can be mistaken for something else, at
// any of its redirect URIs, for an operator who is about to vouch for it.
func (a *Admin) LooksLike(ctx context.Context, c Client) (Likeness, error) {
	all, err := a.Clients.ListClients(ctx)
	if err != nil {
		return Likeness{}, err
	}
	others := make([]Identity, len(all))
	for i := range all {
		others[i] = all[i].Identity()
	}
	c.VerifiedAt = time.Time{}
	for _, uri := range c.Metadata.RedirectURIs {
		if l := c.LooksLike(uri, others); l != (Likeness{}) {
			return l, nil
		}
	}
	return Likeness{}, nil
}
