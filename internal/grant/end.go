package grant

import (
	"context"
	"errors"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// ConsentStore is consent.Store's part in the end of grants.
type ConsentStore interface {
	// DeleteConsents forgets the consents that the fields name; "" is any.
	DeleteConsents(ctx context.Context, subject, clientID, resource string) error
}

// GroupStore is Store's part in the end of many grants.
type GroupStore interface {
	EndGrants(ctx context.Context, f Filter, reason string, now time.Time) (int, error)
}

// EndAll forgets the consents to whom and what f names, and ends its grants, in
// the caller's transaction; it returns how many it ended. The consents go first: a
// request that relies on one at this moment then finds it gone or has made its
// grant, which ends with the others (RT-11).
func EndAll(ctx context.Context, consents ConsentStore, grants GroupStore, f Filter, reason string, now time.Time) (int, error) {
	if err := consents.DeleteConsents(ctx, f.Subject, f.ClientID, f.Resource); err != nil {
		return 0, err
	}
	return grants.EndGrants(ctx, f, reason, now)
}

// Ender ends one grant for good: an operator does, and the alarm of a token that
// came twice. Every field is required.
type Ender struct {
	Tx store.Transactor
	// Grants is a Store's one method.
	Grants interface {
		EndGrant(ctx context.Context, id, reason string, now time.Time) (bool, error)
	}
	Consents ConsentStore
	Audit    audit.Store
}

// errEnded undoes a transaction that found the grant ended by somebody else.
var errEnded = errors.New("the grant has ended")

// End ends g, forgets the consent that would renew it unasked and appends the
// event, in one transaction, and reports whether it did. A grant that had ended
// stays as it was, and the consent too, which may be a newer grant's. The consent
// goes first, so that a request which relies on it finds it gone or has made its
// grant (RT-11).
func (e Ender) End(ctx context.Context, g Grant, reason string, now time.Time, event audit.Event) (bool, error) {
	event.Subject, event.ClientID, event.Resource, event.GrantID = g.Subject, g.ClientID, g.Resource, g.ID
	event.Detail = map[string]string{"reason": reason}
	err := e.Tx.InTx(ctx, func(ctx context.Context) error {
		if err := e.Consents.DeleteConsents(ctx, g.Subject, g.ClientID, g.Resource); err != nil {
			return err
		}
		ended, err := e.Grants.EndGrant(ctx, g.ID, reason, now)
		if err != nil {
			return err
		}
		if !ended {
			return errEnded
		}
		return e.Audit.Append(ctx, audit.New(ctx, now, event))
	})
	if errors.Is(err, errEnded) {
		return false, nil
	}
	return err == nil, err
}
