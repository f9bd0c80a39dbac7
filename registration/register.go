package registration

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Path is where clients register, below the issuer's path (D25).
const Path = "/register"

// Options configures New.
type Options struct {
	// Edge writes answers and errors. Required.
	Edge *endpoint.Edge
	// Policy says who may register; the zero Policy is closed.
	Policy Policy
	// Clients keeps what is registered. Required.
	Clients Store
	// Resources, when set, tells which scopes exist, to narrow what a client
	// lists (A14).
	Resources interface {
		ListResources(ctx context.Context) ([]resource.Resource, error)
	}
	// Audit and Tx record the event with the row (D35). Required.
	Audit audit.Store
	Tx    store.Transactor
	// Limit, when set, is asked before the body is read, by network source; it
	// returns how long to wait, 0 for not at all.
	Limit func(ctx context.Context, source string) (time.Duration, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Handler serves dynamic client registration (RFC 7591).
type Handler struct {
	o Options
}

// New returns the handler of POST /register.
func New(o Options) (*Handler, error) {
	var errs []error
	if o.Edge == nil || o.Clients == nil || o.Audit == nil || o.Tx == nil {
		errs = append(errs, errors.New("registration: Edge, Clients, Audit and Tx are required"))
	}
	if o.Policy.Mode == "" {
		o.Policy.Mode = ModeClosed
	}
	if o.Policy.Mode != ModeOpen && o.Policy.Mode != ModeClosed {
		errs = append(errs, fmt.Errorf("registration: mode %q is neither open nor closed", o.Policy.Mode))
	}
	if o.Policy.PerSource < 0 || o.Policy.Total < 0 {
		errs = append(errs, errors.New("registration: budgets must not be negative"))
	}
	o.Policy = o.Policy.withDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Handler{o: o}, errors.Join(errs...)
}

// Open reports whether clients may register; metadata names the endpoint only then.
func (h *Handler) Open() bool { return h.o.Policy.Mode == ModeOpen }

// Routes adds POST /register to the endpoints.
func (h *Handler) Routes(_, endpoints *http.ServeMux) {
	endpoints.Handle("POST "+Path, h.o.Edge.JSON(h.register))
}

// response is the client information response (RFC 7591 §3.2.1). It has no
// nulls, and client_secret_expires_at only beside a secret (A12).
type response struct {
	ClientID              string `json:"client_id"`
	ClientIDIssuedAt      int64  `json:"client_id_issued_at"`
	ClientSecret          string `json:"client_secret,omitempty"`
	ClientSecretExpiresAt *int64 `json:"client_secret_expires_at,omitempty"`
	ClientMetadata
}

// register serves POST /register (RFC 7591 §3.1).
func (h *Handler) register(w http.ResponseWriter, r *http.Request) error {
	if !h.Open() {
		return &oauth.Error{Code: "access_denied", Status: http.StatusForbidden,
			Description: "registration is closed here; ask the operator to add the client"}
	}
	source := audit.SourceFrom(r.Context()).Class()
	if err := h.limit(r.Context(), source); err != nil {
		return err
	}
	doc, err := readDocument(w, r)
	if err != nil {
		return err
	}
	metadata, err := ParseClientMetadata(doc)
	if err != nil {
		return err
	}
	if metadata.Scope, err = h.knownScope(r.Context(), metadata.Scope); err != nil {
		return err
	}
	c, secret := newClient(KindDynamic, metadata, h.o.Now())
	c.Source = source
	if err := h.create(r.Context(), c); err != nil {
		return err
	}
	return endpoint.WriteJSON(w, http.StatusCreated, newResponse(c, secret))
}

// limit asks the limiter, which bounds attempts; create bounds rows.
func (h *Handler) limit(ctx context.Context, source string) error {
	if h.o.Limit == nil {
		return nil
	}
	wait, err := h.o.Limit(ctx, source)
	if err != nil {
		return fmt.Errorf("limit registrations: %w", err)
	}
	if wait > 0 {
		return oauth.TooManyRequests(wait)
	}
	return nil
}

// readDocument reads a body of application/json. A page of another origin can
// send any other type without asking first (DR-03).
func readDocument(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return nil, oauth.InvalidClientMetadata("Content-Type must be application/json")
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, oauth.InvalidClientMetadata("Content-Encoding is not supported; send the body as it is")
	}
	doc, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMetadata))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge): // not 413: some clients decode only 400 (A15)
		return nil, oauth.InvalidClientMetadata("the document is larger than %d bytes", tooLarge.Limit).With(err)
	case err != nil:
		return nil, oauth.InvalidClientMetadata("the body could not be read").With(err)
	}
	return doc, nil
}

// knownScope leaves out scopes that no resource has or that a self-registered
// client may not have (A14, SC-04). A resource without declared scopes accepts
// any, and so does a server without resources.
func (h *Handler) knownScope(ctx context.Context, scope string) (string, error) {
	if scope == "" || h.o.Resources == nil {
		return scope, nil
	}
	resources, err := h.o.Resources.ListResources(ctx)
	if err != nil {
		return "", fmt.Errorf("list resources: %w", err)
	}
	if len(resources) == 0 {
		return scope, nil
	}
	var known []string
	for _, r := range resources {
		if len(r.Scopes) == 0 {
			return scope, nil
		}
		for _, s := range r.Scopes {
			if !s.Restricted {
				known = append(known, s.Name)
			}
		}
	}
	unknown := func(s string) bool { return !oauth.IsProtocolScope(s) && !slices.Contains(known, s) }
	return strings.Join(slices.DeleteFunc(strings.Fields(scope), unknown), " "), nil
}

// create inserts the client and its audit event, within the budgets. Budgets
// count rows, so a restart or a second process does not reset them; they
// refuse the new and never evict the old (DR-13).
func (h *Handler) create(ctx context.Context, c Client) error {
	return h.o.Tx.InTx(ctx, func(ctx context.Context) error {
		for _, budget := range []struct {
			source string
			max    int
		}{{c.Source, h.o.Policy.PerSource}, {"", h.o.Policy.Total}} {
			n, err := h.o.Clients.CountClientsFrom(ctx, budget.source, c.CreatedAt.Add(-budgetWindow))
			if err != nil {
				return fmt.Errorf("count registrations: %w", err)
			}
			if n >= budget.max {
				return oauth.TooManyRequests(budgetRetry)
			}
		}
		if err := h.o.Clients.CreateClient(ctx, c); err != nil {
			return fmt.Errorf("register client: %w", err)
		}
		return h.o.Audit.Append(ctx, audit.New(ctx, c.CreatedAt, audit.Event{
			Name: "client.registered", Actor: c.ID, ClientID: c.ID, Detail: registeredDetail(c.Metadata)}))
	})
}

// registeredDetail is what the audit event tells of a registration. The redirect
// URIs are in the client's row; here anybody could make them 40 KiB an event.
func registeredDetail(m ClientMetadata) map[string]string {
	detail := map[string]string{"client_name": m.ClientName, "redirect_uris": strconv.Itoa(len(m.RedirectURIs))}
	if len(m.RedirectURIs) > 0 {
		_, host, _ := DescribeRedirect(m.RedirectURIs[0])
		detail["redirect_host"] = host.Before + host.Bold + host.After
	}
	return detail
}

// newClient makes the row for checked metadata, and its secret, "" for a public
// client and for one with keys. The secret is nowhere else: only its hash is
// kept (D16, DR-17).
func newClient(kind Kind, m ClientMetadata, now time.Time) (Client, oauth.Secret) {
	c := Client{ID: newClientID(), Kind: kind, Metadata: m, DocumentHash: m.Hash(), CreatedAt: now, UpdatedAt: now}
	if !c.UsesSecret() {
		return c, ""
	}
	secret := NewSecret()
	c.SecretHash = HashSecret(c.ID, secret)
	return c, secret
}

// newClientID returns 130 random bits as letters and digits: no "-" in front,
// so that it is never taken for a flag on the command line (A16).
func newClientID() string { return strings.ToLower(rand.Text()) }

func newResponse(c Client, secret oauth.Secret) response {
	resp := response{ClientID: c.ID, ClientIDIssuedAt: c.CreatedAt.Unix(), ClientMetadata: c.Metadata}
	if secret != "" {
		never := int64(0) // RFC 7591 §3.2.1: 0 is "does not expire"
		resp.ClientSecret, resp.ClientSecretExpiresAt = secret.Reveal(), &never
	}
	return resp
}
