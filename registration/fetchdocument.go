package registration

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Fetcher gets a URL that a client named; *netguard.Client is one. An address
// that it does not talk to is netguard.ErrRefused, a failure that may pass
// netguard.ErrUnreachable.
type Fetcher interface {
	Get(ctx context.Context, rawURL string, o netguard.GetOptions) (*netguard.Response, error)
}

var _ Fetcher = (*netguard.Client)(nil)

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
