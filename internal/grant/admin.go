package grant

import (
	"context"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// AdminStore is what an operator's changes need of the database.
type AdminStore interface {
	store.Transactor
	audit.Store
	Store
	ConsentStore
}

// Admin ends grants for an operator, by the command line and later the console
// (D18).
type Admin struct {
	// Store keeps the grants. Required.
	Store AdminStore
	// Now is the clock. Required.
	Now func() time.Time
}

// End ends one grant as Ender does, and returns it as it is then. An unknown one
// is store.ErrNotFound.
func (a *Admin) End(ctx context.Context, id string) (Grant, error) {
	g, err := a.Store.GetGrant(ctx, id)
	if err != nil {
		return Grant{}, err
	}
	ender := Ender{Tx: a.Store, Grants: a.Store, Consents: a.Store, Audit: a.Store}
	if _, err := ender.End(ctx, g, ReasonOperator, a.Now(), audit.Event{Name: "grant.ended", Actor: "operator"}); err != nil {
		return Grant{}, err
	}
	return a.Store.GetGrant(ctx, id)
}
