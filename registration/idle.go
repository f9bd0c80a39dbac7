package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// neverUsed is how long a client is kept that is known by its metadata document
// and that nobody ever approved: anybody can name such URLs, and the document is
// read again when somebody uses it.
const neverUsed = 7 * 24 * time.Hour

// idleBatch is how many clients one transaction removes.
const idleBatch = 200

// LastUse is when a client was last of use, as far as rows tell.
type LastUse struct {
	// At is the last of: registration, change, code, refresh.
	At time.Time
	// Live says that it holds a live grant, or a code that may be redeemed.
	Live bool
}

// IdleStore finds and removes clients that are not used. Every method is one statement.
type IdleStore interface {
	// LastUses returns the last use of each client that the idle rule concerns:
	// those of KindDynamic that the operator neither verified nor blocked, and those
	// of KindCIMD that somebody approved and about which the operator decided nothing.
	LastUses(ctx context.Context, now time.Time) (map[string]LastUse, error)
	// DeleteIdleClients removes at most limit of those clients that hold no live
	// grant at now and were not used after before, and returns their IDs.
	DeleteIdleClients(ctx context.Context, before, now time.Time, limit int) ([]string, error)
	// DeleteUnusedDocuments removes at most limit clients of KindCIMD that nobody
	// ever approved, about which the operator decided nothing, and whose document
	// neither changed nor was asked for after before, and returns their IDs.
	DeleteUnusedDocuments(ctx context.Context, before time.Time, limit int) ([]string, error)
}

// Idle removes clients that made themselves known and are used no more (A20):
// never while a grant lives, and Life after the last use, or after registration.
// One of a metadata document is there again as soon as somebody names it, but
// what people once allowed it is not remembered any more; one that nobody ever
// approved goes a week after it was last named.
type Idle struct {
	// Clients, Consents, Tx and Audit are required.
	Clients  IdleStore
	Consents grant.ConsentStore
	Tx       store.Transactor
	Audit    audit.Store
	// Life is how long a client is kept after its last use; 0 is for ever, but not
	// for documents that nobody ever approved.
	Life time.Duration
	// Now is the clock. Required.
	Now func() time.Time
}

// Collect removes what is idle, in batches, and returns how many clients that was.
func (i *Idle) Collect(ctx context.Context) (removed int, err error) {
	removed, err = i.collect(ctx, func(ctx context.Context, now time.Time) ([]string, error) {
		return i.Clients.DeleteUnusedDocuments(ctx, now.Add(-neverUsed), idleBatch)
	})
	if err != nil || i.Life <= 0 {
		return removed, err
	}
	n, err := i.collect(ctx, func(ctx context.Context, now time.Time) ([]string, error) {
		return i.Clients.DeleteIdleClients(ctx, now.Add(-i.Life), now, idleBatch)
	})
	return removed + n, err
}

// collect calls remove, which removes a batch, until nothing is left.
func (i *Idle) collect(ctx context.Context, remove func(ctx context.Context, now time.Time) ([]string, error)) (removed int, err error) {
	for {
		n, err := i.collectBatch(ctx, remove)
		removed += n
		if err != nil || n < idleBatch {
			return removed, err
		}
	}
}

// collectBatch removes one batch with what was remembered of it and an event for
// each client (D35).
func (i *Idle) collectBatch(ctx context.Context, remove func(ctx context.Context, now time.Time) ([]string, error)) (n int, err error) {
	now := i.Now()
	err = i.Tx.InTx(ctx, func(ctx context.Context) error {
		ids, err := remove(ctx, now)
		if err != nil {
			return err
		}
		for _, id := range ids {
			event := audit.New(ctx, now, audit.Event{Name: "client.expired", Actor: "system", ClientID: id})
			if err := errors.Join(i.Consents.DeleteConsents(ctx, "", id, ""), i.Audit.Append(ctx, event)); err != nil {
				return err
			}
		}
		n = len(ids)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("remove idle clients: %w", err)
	}
	return n, nil
}

// Expiries returns when each client that the idle rule concerns will be removed
// if nobody uses it. A client that holds a live grant is not in it.
func (i *Idle) Expiries(ctx context.Context) (map[string]time.Time, error) {
	ends := map[string]time.Time{}
	if i.Life <= 0 {
		return ends, nil
	}
	uses, err := i.Clients.LastUses(ctx, i.Now())
	if err != nil {
		return nil, err
	}
	for id, use := range uses {
		if !use.Live {
			ends[id] = use.At.Add(i.Life)
		}
	}
	return ends, nil
}
