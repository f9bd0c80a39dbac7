package registration

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"golang.org/x/sync/singleflight"
)

// DocumentOptions configures NewDocuments.
type DocumentOptions struct {
	// Clients and Documents keep what was read. Required.
	Clients   Store
	Documents DocumentStore
	// Audit and Tx record the events with the rows (D35). Required.
	Audit audit.Store
	Tx    store.Transactor
	// Fetch reads documents; *netguard.Client, so that no private host is asked. Required.
	Fetch Fetcher
	// Resources, when set, tells which URLs are MCP servers: none may be a client too (D7).
	Resources interface {
		GetResource(ctx context.Context, canonical string) (resource.Resource, error)
	}
	// CheckURL is as in Options, for a document whose client cannot do without the
	// keys at its jwks_uri.
	CheckURL func(rawURL string) error
	// Policy is what the operator decided about hosts. Default: all are allowed.
	Policy HostPolicy
	// Budget bounds how many documents are read.
	Budget FetchBudget
	// Log hears of a document that could not be read while its last copy serves.
	// Default: nothing.
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Pause waits. Default: a timer.
	Pause func(ctx context.Context, d time.Duration)
}

// FetchBudget bounds fetches in an hour (CI-14). Reading the document of a known
// client again counts for its site alone, and not with what is unknown there.
type FetchBudget struct {
	// PerSource is for one network source; 0 is DefaultPerSource.
	PerSource int
	// PerSite is for one registrable domain; 0 is DefaultPerSite.
	PerSite int
	// Total is for all together; 0 is DefaultTotal.
	Total int
}

// DefaultPerSite is FetchBudget.PerSite's default. It is more than one source
// may spend, so that one alone cannot close a site to others.
const DefaultPerSite = 600

// Documents resolves clients whose client_id is the URL of their metadata
// document (draft-ietf-oauth-client-id-metadata-document). Each becomes a row of
// clients, which is all that /token reads (A33). It is safe for concurrent use.
type Documents struct {
	o      DocumentOptions
	flight singleflight.Group
}

// NewDocuments returns a resolver of client_id URLs.
func NewDocuments(o DocumentOptions) (*Documents, error) {
	if o.Clients == nil || o.Documents == nil || o.Audit == nil || o.Tx == nil || o.Fetch == nil {
		return nil, errors.New("registration: Clients, Documents, Audit, Tx and Fetch are required")
	}
	if o.Budget.PerSource < 0 || o.Budget.PerSite < 0 || o.Budget.Total < 0 {
		return nil, errors.New("registration: budgets must not be negative")
	}
	for dest, n := range map[*int]int{&o.Budget.PerSource: DefaultPerSource, &o.Budget.PerSite: DefaultPerSite, &o.Budget.Total: DefaultTotal} {
		if *dest == 0 {
			*dest = n
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	return &Documents{o: o}, nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// known is what the database has of a client_id.
type known struct {
	client *Client // nil for none
	doc    ClientDocument
}

// Resolve returns the client, which may be disabled, reading its document where
// the last copy is no longer fresh. A URL that names none is *ClientURLError, and
// a budget that is spent a 429.
func (d *Documents) Resolve(ctx context.Context, clientID string) (*Client, error) {
	if err := checkClientURL(clientID); err != nil {
		return nil, &ClientURLError{Problem: ProblemURL, Detail: err.Error()}
	}
	trust := d.o.Policy.For(ClientHost(clientID))
	if trust == TrustDeny {
		return nil, problem(clientID, ProblemDenied)
	}
	c, err := d.current(ctx, clientID)
	if err != nil {
		return nil, err
	}
	if c.Enabled() && trust == TrustAsk && c.VerifiedAt.IsZero() {
		return nil, problem(clientID, ProblemWaiting)
	}
	return c, nil
}

func problem(clientID string, p Problem) *ClientURLError {
	return &ClientURLError{Problem: p, Host: ClientHost(clientID)}
}

// current returns the client as its document now is. Who asks while it is being
// read waits for that one answer.
func (d *Documents) current(ctx context.Context, clientID string) (*Client, error) {
	k, err := d.read(ctx, clientID)
	if err != nil {
		return nil, err
	}
	if c, done, err := d.settled(k); done {
		return c, err
	}
	c, shared, err := d.refreshOnce(ctx, clientID, clientID)
	var limit *oauth.Error
	if shared && errors.As(err, &limit) && limit.HTTPStatus() == http.StatusTooManyRequests {
		// it may be the budget of another source that is spent: that one must not
		// keep this one out
		c, _, err = d.refreshOnce(ctx, clientID+" "+audit.SourceFrom(ctx).Class(), clientID)
	}
	return c, err
}

// refreshOnce is refresh, once for all who wait with the same key. The first to
// ask may leave; what it began is for the others too.
func (d *Documents) refreshOnce(ctx context.Context, key, clientID string) (c *Client, shared bool, err error) {
	ch := fly(&d.flight, key, func() (any, error) { return d.refresh(context.WithoutCancel(ctx), clientID) })
	select {
	case r := <-ch:
		if r.Err != nil {
			return nil, r.Shared, r.Err
		}
		own := *r.Val.(*Client) // each gets its own
		return &own, r.Shared, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (d *Documents) read(ctx context.Context, clientID string) (known, error) {
	k := known{doc: ClientDocument{ClientID: clientID}}
	c, err := d.o.Clients.GetClient(ctx, clientID)
	if err == nil {
		k.client = &c
	} else if !errors.Is(err, store.ErrNotFound) {
		return k, err
	}
	doc, err := d.o.Documents.GetClientDocument(ctx, clientID)
	if err == nil {
		k.doc = doc
	} else if !errors.Is(err, store.ErrNotFound) {
		return k, err
	}
	return k, nil
}

// settled returns the answer that needs no fetch, if there is one: a client that
// is blocked or fresh, and after a failure the last good copy or the failure.
func (d *Documents) settled(k known) (c *Client, done bool, err error) {
	now := d.o.Now()
	switch {
	case k.client != nil && (!k.client.Enabled() || k.doc.fresh(now)):
		return k.client, true, nil
	case !now.Before(k.doc.RetryAt):
		return nil, false, nil
	case k.client != nil && k.doc.servable(now, k.doc.Problem):
		return k.client, true, nil
	}
	e := problem(k.doc.ClientID, k.doc.Problem)
	if e.Wait = k.doc.RetryAt.Sub(now); e.Problem == ProblemInvalid {
		e.Detail = k.doc.Failure
	}
	return nil, true, e
}

// fetchTimeout bounds a refresh, its statements included; the Fetcher has its
// own, shorter bound.
const fetchTimeout = 15 * time.Second

// refresh reads the document, and keeps what it says.
func (d *Documents) refresh(ctx context.Context, clientID string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	k, err := d.read(ctx, clientID) // another process, or the flight before, may have read it
	if err != nil {
		return nil, err
	}
	if c, done, err := d.settled(k); done {
		return c, err
	}
	c, err := d.fetch(ctx, k)
	var fail *ClientURLError
	var limit *oauth.Error
	if !errors.As(err, &fail) && !errors.As(err, &limit) {
		return c, err
	}
	p := k.doc.Problem
	if fail != nil {
		p = fail.Problem
	}
	if k.client != nil && k.doc.servable(d.o.Now(), p) {
		d.o.Log.WarnContext(ctx, "client metadata document was not read; its last copy serves", slog.String("event", "client.stale"),
			slog.String("client_id", clientID), slog.String("cause", err.Error()))
		return k.client, nil
	}
	return nil, err
}
