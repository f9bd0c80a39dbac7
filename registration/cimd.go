package registration

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/netguard"
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

// fetch asks for the document within the budgets, and keeps what it says, or that
// it failed.
func (d *Documents) fetch(ctx context.Context, k known) (*Client, error) {
	if err := d.spend(ctx, k); err != nil {
		return nil, err
	}
	began := time.Now()
	c, err := d.ask(ctx, k)
	var fail *ClientURLError
	if !errors.As(err, &fail) {
		return c, err
	}
	if err := d.fail(ctx, k, fail); err != nil {
		return nil, err
	}
	if fail.Problem == ProblemUnread {
		// CI-15: an address that we refuse, a name that nobody has and a port that
		// nobody listens on look the same
		d.o.Pause(ctx, time.Until(began.Add(unreadFloor)))
	}
	return nil, fail
}

// unreadFloor is the least time after which a document counts as unreadable.
const unreadFloor = time.Second

// spend counts the fetch against its budgets (CI-14): rows, so that processes
// share them.
func (d *Documents) spend(ctx context.Context, k known) error {
	now := d.o.Now()
	budgets := []struct {
		name  string
		limit int
	}{
		{"source " + audit.SourceFrom(ctx).Class(), d.o.Budget.PerSource},
		{"site " + site(k.doc.ClientID), d.o.Budget.PerSite},
		{"all", d.o.Budget.Total},
	}
	if k.client != nil {
		// strangers who name what is not there cannot spend it
		budgets = budgets[1:2]
		budgets[0].name = "known " + budgets[0].name
	}
	for _, b := range budgets {
		ok, err := d.o.Documents.SpendFetch(ctx, b.name, b.limit, now, now.Add(-budgetWindow))
		if err != nil {
			return err
		}
		if !ok {
			return oauth.TooManyRequests(budgetRetry)
		}
	}
	return nil
}

// ask reads the document once and keeps it. What is wrong with it is *ClientURLError.
func (d *Documents) ask(ctx context.Context, k known) (*Client, error) {
	if err := d.checkResource(ctx, k.doc.ClientID); err != nil {
		return nil, err
	}
	o := netguard.GetOptions{Accept: "application/json", MaxBytes: MaxClientDocument}
	if k.client != nil && k.doc.Hash != "" {
		o.IfNoneMatch, o.IfModifiedSince = k.doc.ETag, k.doc.LastModified
	}
	res, err := d.o.Fetch.Get(ctx, k.doc.ClientID, o)
	if err != nil {
		return nil, d.noAnswer(ctx, k.doc.ClientID, err)
	}
	validated := o.IfNoneMatch != "" || o.IfModifiedSince != ""
	if res.Status == http.StatusNotModified && validated {
		return d.confirm(ctx, d.goodCopy(k.doc, res))
	}
	m, err := readResponse(k.doc.ClientID, res)
	if err == nil && !m.AcceptsAuthMethod(AuthNone) {
		err = d.checkKeys(k.doc.ClientID, m.JWKSURI)
	}
	if err != nil {
		return nil, err
	}
	doc := d.goodCopy(k.doc, res)
	sum := sha256.Sum256(res.Body)
	doc.Hash = base64.RawURLEncoding.EncodeToString(sum[:])
	doc.ETag, doc.LastModified = validator(res.Header.Get("ETag")), validator(res.Header.Get("Last-Modified"))
	return d.keep(ctx, doc, m)
}

// confirm keeps that the document is as doc says, and returns the client. A
// process that read another one meanwhile knows better: its row stays.
func (d *Documents) confirm(ctx context.Context, doc ClientDocument) (c *Client, err error) {
	err = d.o.Tx.InTx(ctx, func(ctx context.Context) error {
		held, err := d.o.Clients.HoldClient(ctx, doc.ClientID)
		if err != nil {
			return err
		}
		c = &held
		kept, err := d.o.Documents.GetClientDocument(ctx, doc.ClientID)
		if err != nil || kept.Hash != doc.Hash {
			return err
		}
		return d.o.Documents.PutClientDocument(ctx, doc)
	})
	if err != nil {
		return nil, fmt.Errorf("confirm client metadata document: %w", err)
	}
	return c, nil
}

// checkResource refuses the address of an MCP server: an access token's audience
// must not be mistaken for a client (D7).
func (d *Documents) checkResource(ctx context.Context, clientID string) error {
	canonical, err := oauth.CanonicalResource(clientID)
	if d.o.Resources == nil || err != nil {
		return nil
	}
	_, err = d.o.Resources.GetResource(ctx, canonical)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return &ClientURLError{Problem: ProblemInvalid, Host: ClientHost(clientID), Detail: "client_id must not be the address of an MCP server"}
}

// checkKeys refuses a document whose keys will never be asked for: its client
// could get a code and nothing for it.
func (d *Documents) checkKeys(clientID, uri string) error {
	var oe *oauth.Error
	if !errors.As(checkKeysURL(d.o.CheckURL, uri), &oe) {
		return nil
	}
	e := problem(clientID, ProblemInvalid)
	e.Detail, e.Err = oe.Description, oe.Err
	return e
}

// noAnswer is the error of a Fetcher as a problem, unless it is our own.
func (d *Documents) noAnswer(ctx context.Context, clientID string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read client metadata document: %w", err)
	}
	e := problem(clientID, ProblemUnread)
	if e.Err = err; errors.Is(err, netguard.ErrTooLarge) {
		e.Problem, e.Detail = ProblemInvalid, fmt.Sprintf("the document is larger than %d bytes", MaxClientDocument)
	}
	return e
}

// readResponse reads the document of a response: 200 and application/json, or
// another type that ends in +json (§4 of the draft; CI-07).
func readResponse(clientID string, res *netguard.Response) (ClientMetadata, error) {
	e := problem(clientID, ProblemInvalid)
	if res.Status != http.StatusOK {
		e.Problem, e.Err = ProblemUnread, errors.New("status "+strconv.Itoa(res.Status))
		return ClientMetadata{}, e
	}
	mediaType, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	suffixed := strings.HasPrefix(mediaType, "application/") && strings.HasSuffix(mediaType, "+json")
	if err != nil || mediaType != "application/json" && !suffixed {
		e.Detail = "the document must be served as application/json"
		return ClientMetadata{}, e
	}
	m, err := ParseClientDocument(clientID, res.Body)
	var oe *oauth.Error
	if errors.As(err, &oe) {
		e.Detail, e.Err = describeInvalid(oe), oe.Err
		return ClientMetadata{}, e
	}
	return m, err
}

// goodCopy is the row after a success.
func (d *Documents) goodCopy(doc ClientDocument, res *netguard.Response) ClientDocument {
	now := d.o.Now()
	if doc.FirstSeenAt.IsZero() {
		doc.FirstSeenAt = now
	}
	doc.FetchedAt, doc.TriedAt, doc.FreshUntil = now, now, now.Add(freshFor(res.Header))
	doc.RetryAt, doc.Failures, doc.Problem, doc.Failure = time.Time{}, 0, "", ""
	return doc
}

// keep writes the document and the client it describes. A process that made the
// client meanwhile was faster; then this is a change of it.
func (d *Documents) keep(ctx context.Context, doc ClientDocument, m ClientMetadata) (*Client, error) {
	c, err := d.tryKeep(ctx, doc, m)
	if errors.Is(err, store.ErrExists) {
		c, err = d.tryKeep(ctx, doc, m)
	}
	if err != nil {
		return nil, fmt.Errorf("keep client metadata document: %w", err)
	}
	return c, nil
}

func (d *Documents) tryKeep(ctx context.Context, doc ClientDocument, m ClientMetadata) (c *Client, err error) {
	err = d.o.Tx.InTx(ctx, func(ctx context.Context) error {
		held, err := d.o.Clients.HoldClient(ctx, doc.ClientID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			held = Client{ID: doc.ClientID, Kind: KindCIMD, Metadata: m, DocumentHash: m.Hash(), CreatedAt: doc.FetchedAt, UpdatedAt: doc.FetchedAt}
			err = d.record(ctx, "client.discovered", held, nil, func() error { return d.o.Clients.CreateClient(ctx, held) })
		case err == nil && held.DocumentHash != m.Hash():
			detail := held.adopt(m, doc.FetchedAt)
			err = d.record(ctx, "client.changed", held, detail, func() error { return d.o.Clients.UpdateClient(ctx, held) })
		}
		if err != nil {
			return err
		}
		c = &held
		return d.o.Documents.PutClientDocument(ctx, doc)
	})
	return c, err
}

// adopt makes the client what its document now says, and returns what the audit
// event says beside. What the operator decided stays: a verified client may still
// be used where they must verify it first, but it is shown as verified only for
// as long as it is who they saw.
func (c *Client) adopt(m ClientMetadata, at time.Time) (detail map[string]string) {
	if because := unvouched(&c.Metadata, &m); because != "" && c.Trusted() {
		c.VerifiedUntil, detail = at, map[string]string{"verified": "ended", "because": because}
	}
	c.Metadata, c.DocumentHash, c.UpdatedAt = m, m.Hash(), at
	return detail
}

// record writes a client with its audit event.
func (d *Documents) record(ctx context.Context, event string, c Client, detail map[string]string, write func() error) error {
	if err := write(); err != nil {
		return err
	}
	all := registeredDetail(c.Metadata)
	maps.Copy(all, detail)
	return d.o.Audit.Append(ctx, audit.New(ctx, c.UpdatedAt, audit.Event{Name: event, Actor: c.ID, ClientID: c.ID, Detail: all}))
}

// fail records that the document could not be used, so that nobody asks again for
// a while. A document that breaks a rule is an event, the first time.
func (d *Documents) fail(ctx context.Context, k known, fail *ClientURLError) error {
	now := d.o.Now()
	fail.Wait = k.doc.retryPause()
	doc := ClientDocument{ClientID: k.doc.ClientID, TriedAt: now, RetryAt: now.Add(fail.Wait), Problem: fail.Problem, Failure: fail.Detail}
	if doc.Failure == "" && fail.Err != nil {
		doc.Failure = cleanText(fail.Err.Error(), maxWord)
	}
	return d.o.Tx.InTx(ctx, func(ctx context.Context) error {
		if err := d.o.Documents.FailClientDocument(ctx, doc); err != nil {
			return err
		}
		if fail.Problem != ProblemInvalid || k.doc.Problem == ProblemInvalid {
			return nil
		}
		return d.o.Audit.Append(ctx, audit.New(ctx, now, audit.Event{Name: "client.refused", Actor: doc.ClientID, ClientID: doc.ClientID,
			Outcome: "denied", Detail: map[string]string{"reason": doc.Failure}}))
	})
}
