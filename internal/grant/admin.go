package grant

import (
	"context"
	"errors"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// AdminStore is what an operator's changes need of the database.
type AdminStore interface {
	store.Transactor
	audit.Store
	Store
	// DeleteConsents is consent.Store's.
	DeleteConsents(ctx context.Context, subject, clientID, resource string) error
}

// errEnded undoes a transaction that found the grant ended by somebody else: the
// consent may be a newer grant's.
var errEnded = errors.New("the grant has ended")

// Admin ends grants for an operator, by the command line and later the console
// (D18).
type Admin struct {
	// Store keeps the grants. Required.
	Store AdminStore
	// Now is the clock. Required.
	Now func() time.Time
}

// End ends one grant and forgets the consent that would renew it unasked, with
// an audit event in the same transaction. A grant that had ended stays as it
// was; an unknown one is store.ErrNotFound.
func (a *Admin) End(ctx context.Context, id string) (g Grant, err error) {
	now := a.Now()
	err = a.Store.InTx(ctx, func(ctx context.Context) error {
		if g, err = a.Store.GetGrant(ctx, id); err != nil || !g.EndedAt.IsZero() {
			return err
		}
		if err := a.Store.DeleteConsents(ctx, g.Subject, g.ClientID, g.Resource); err != nil {
			return err
		}
		ended, err := a.Store.EndGrant(ctx, id, ReasonOperator, now)
		if err != nil {
			return err
		}
		if !ended {
			return errEnded
		}
		if err := a.Store.Append(ctx, audit.New(ctx, now, audit.Event{Name: "grant.ended", Actor: "operator",
			Subject: g.Subject, ClientID: g.ClientID, Resource: g.Resource, GrantID: id,
			Detail: map[string]string{"reason": ReasonOperator}})); err != nil {
			return err
		}
		g, err = a.Store.GetGrant(ctx, id)
		return err
	})
	if errors.Is(err, errEnded) {
		return a.Store.GetGrant(ctx, id)
	}
	return g, err
}
