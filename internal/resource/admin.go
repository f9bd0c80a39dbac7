package resource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// AdminStore is what changes of resources need of the database: a resource that
// is removed takes the grants and the remembered consents for it along.
type AdminStore interface {
	store.Transactor
	audit.Store
	Store
	// LockResources makes other transactions that call it wait until this one
	// ends. It must be called inside InTx.
	LockResources(ctx context.Context) error
	// UnmarkDefault takes the default mark from every resource but the one with
	// this canonical identifier, and returns the identifiers that had it.
	UnmarkDefault(ctx context.Context, canonical string, now time.Time) ([]string, error)
	// SetCredential replaces the credential of the resource with this canonical
	// identifier, or returns store.ErrNotFound. The zero value removes it.
	SetCredential(ctx context.Context, canonical string, c Credential, now time.Time) error
	grant.GroupStore
	grant.ConsentStore
}

// Admin changes resources for an operator. Each change and its audit event are
// one transaction, and one change waits for another: what it read is still true
// when it writes, and the default mark has one owner.
type Admin struct {
	// Store keeps the resources. Required.
	Store AdminStore
	// Issuer is the authorization server's issuer: never a resource. Required.
	Issuer string
	// IsClientID reports whether a canonical URL is the client_id of a client,
	// which a resource may not equal (D7). Optional.
	IsClientID func(ctx context.Context, canonical string) (bool, error)
	// AllowHTTP admits http identifiers of other hosts than this one, whose
	// tokens then travel unencrypted.
	AllowHTTP bool
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Removal is what Remove did.
type Removal struct {
	Resource    Resource
	GrantsEnded int
}

// Add registers r: its Identifier, Name, Default, Scopes and ClaimedName. A
// missing name becomes host and path. A resource with the same canonical
// identifier is store.ErrExists. The new default takes the mark from the old one.
func (a *Admin) Add(ctx context.Context, r Resource) (Resource, error) {
	r, err := a.prepare(ctx, r)
	if err != nil {
		return Resource{}, err
	}
	r.CreatedAt = a.now()
	r.UpdatedAt = r.CreatedAt
	err = a.inTx(ctx, func(ctx context.Context) error {
		if err := a.unmarkDefault(ctx, r); err != nil {
			return err
		}
		if err := a.Store.CreateResource(ctx, r); err != nil {
			return err
		}
		return a.record(ctx, "resource.added", r, nil)
	})
	if err != nil {
		return Resource{}, fmt.Errorf("add resource: %w", err)
	}
	return r, nil
}

// CheckNew returns the error that Add would return for r now, and adds nothing.
func (a *Admin) CheckNew(ctx context.Context, r Resource) error {
	r, err := a.prepare(ctx, r)
	if err != nil {
		return err
	}
	_, err = a.Store.GetResource(ctx, r.Canonical)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the resource: %w", err)
	}
	return fmt.Errorf("add resource: %w", store.ErrExists)
}

// prepare checks a new resource and fills in its canonical form and its name.
func (a *Admin) prepare(ctx context.Context, r Resource) (Resource, error) {
	canonical, err := a.checkIdentifier(ctx, r.Identifier)
	if err != nil {
		return Resource{}, err
	}
	r.Canonical, r.Unregistered, r.Credential = canonical, false, Credential{}
	if r.Name == "" {
		r.Name = DefaultName(canonical)
	}
	return r, r.Check()
}

// Update applies change to the resource that identifier names and stores the
// result. Identifier cannot change: tokens and grants name it. An unknown
// resource is store.ErrNotFound.
func (a *Admin) Update(ctx context.Context, identifier string, change func(*Resource) error) (Resource, error) {
	var r Resource
	err := a.inTx(ctx, func(ctx context.Context) error {
		before, err := a.Get(ctx, identifier)
		if err != nil {
			return err
		}
		r = before
		if err := change(&r); err != nil {
			return err
		}
		r.Identifier, r.Canonical, r.Credential, r.CreatedAt = before.Identifier, before.Canonical, before.Credential, before.CreatedAt
		if err := r.Check(); err != nil {
			return err
		}
		r.UpdatedAt = a.now()
		if err := a.unmarkDefault(ctx, r); err != nil {
			return err
		}
		if err := a.Store.UpdateResource(ctx, r); err != nil {
			return err
		}
		return a.record(ctx, "resource.updated", r, nil)
	})
	if err != nil {
		return Resource{}, fmt.Errorf("update resource: %w", err)
	}
	return r, nil
}

// Remove deletes the resource that identifier names, ends its grants and
// forgets the consents for it. Access tokens already issued live on until they
// expire. An unknown resource is store.ErrNotFound.
func (a *Admin) Remove(ctx context.Context, identifier string) (Removal, error) {
	var done Removal
	err := a.inTx(ctx, func(ctx context.Context) error {
		r, err := a.Get(ctx, identifier)
		if err != nil {
			return err
		}
		n, err := grant.EndAll(ctx, a.Store, a.Store, grant.Filter{Resource: r.Identifier}, grant.ReasonResource, a.now())
		if err != nil {
			return err
		}
		if err := a.Store.DeleteResource(ctx, r.Canonical); err != nil {
			return err
		}
		done = Removal{Resource: r, GrantsEnded: n}
		return a.record(ctx, "resource.removed", r, map[string]string{"grants_ended": fmt.Sprint(n)})
	})
	if err != nil {
		return Removal{}, fmt.Errorf("remove resource: %w", err)
	}
	return done, nil
}

// Get returns the resource that identifier names, in any spelling of it, or
// store.ErrNotFound.
func (a *Admin) Get(ctx context.Context, identifier string) (Resource, error) {
	canonical, err := oauth.CanonicalResource(identifier)
	if err != nil {
		return Resource{}, err
	}
	return a.Store.GetResource(ctx, canonical)
}

// List returns all resources by identifier.
func (a *Admin) List(ctx context.Context) ([]Resource, error) { return a.Store.ListResources(ctx) }

// checkIdentifier returns the canonical form of an identifier that may be registered.
func (a *Admin) checkIdentifier(ctx context.Context, identifier string) (string, error) {
	canonical, err := oauth.CanonicalResource(identifier)
	if err != nil {
		return "", err
	}
	if equalsIssuer(a.Issuer, canonical) {
		return "", oauth.InvalidTarget("the issuer itself cannot be a resource: register the MCP server's own URL")
	}
	if !a.AllowHTTP && strings.HasPrefix(canonical, "http://") && !isLoopbackHTTP(canonical) {
		return "", oauth.InvalidTarget("a resource on another host must use https, since tokens travel to it")
	}
	if a.IsClientID == nil {
		return canonical, nil
	}
	used, err := a.IsClientID(ctx, canonical)
	if err != nil {
		return "", fmt.Errorf("look for a client with this identifier: %w", err)
	}
	if used {
		return "", oauth.InvalidTarget("a client has this URL as its client_id; a resource needs another one")
	}
	return canonical, nil
}

// inTx runs fn in a transaction in which nobody else changes resources.
func (a *Admin) inTx(ctx context.Context, fn func(ctx context.Context) error) error {
	return a.Store.InTx(ctx, func(ctx context.Context) error {
		if err := a.Store.LockResources(ctx); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// unmarkDefault takes the default mark from every other resource when r has it.
func (a *Admin) unmarkDefault(ctx context.Context, r Resource) error {
	if !r.Default {
		return nil
	}
	unmarked, err := a.Store.UnmarkDefault(ctx, r.Canonical, a.now())
	if err != nil {
		return err
	}
	for _, identifier := range unmarked {
		other := Resource{Identifier: identifier}
		if err := a.record(ctx, "resource.updated", other, map[string]string{"default": "false"}); err != nil {
			return err
		}
	}
	return nil
}

func (a *Admin) record(ctx context.Context, name string, r Resource, detail map[string]string) error {
	return a.Store.Append(ctx, audit.New(ctx, a.now(), audit.Event{
		Name: name, Actor: "operator", Resource: r.Identifier, Detail: detail}))
}

func (a *Admin) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}
