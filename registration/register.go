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
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Path is where clients register, below the issuer's path (D25).
const Path = "/register"

// DynamicStore is what registration asks of the store beyond Store. Every method
// is one statement.
type DynamicStore interface {
	Store
	// HoldRegistrations makes other registrations wait until the transaction ends,
	// in every process, so that budgets are exact and one repeated registration is
	// one client.
	HoldRegistrations(ctx context.Context) error
	// ReuseClient returns the newest client of KindDynamic that source registered
	// with the metadata that documentHash identifies, if it was never used, cannot
	// manage itself and has no secret, and the operator did not touch it. It counts
	// as registered at now for the idle rule. store.ErrNotFound for none.
	ReuseClient(ctx context.Context, source, documentHash string, now time.Time) (Client, error)
}

// Options configures New.
type Options struct {
	// Issuer is the issuer identifier, below which the endpoints are. Required
	// where the policy lets clients manage themselves.
	Issuer string
	// Edge writes answers and errors. Required.
	Edge *endpoint.Edge
	// Policy says who may register; the zero Policy is closed.
	Policy Policy
	// Clients keeps what is registered. Required.
	Clients DynamicStore
	// InitialTokens keeps initial access tokens. Required by ModeToken.
	InitialTokens InitialAccessTokenStore
	// Statements checks software statements. Required by ModeStatement.
	Statements *Statements
	// Grants and Consents end what a client held that removes itself. Required
	// where the policy lets clients manage themselves.
	Grants   grant.Store
	Consents grant.ConsentStore
	// Resources, when set, tells which scopes exist, to narrow what a client
	// lists (A14).
	Resources interface {
		ListResources(ctx context.Context) ([]resource.Resource, error)
	}
	// Audit and Tx record the event with the row (D35). Required.
	Audit audit.Store
	Tx    store.Transactor
	// CheckURL, when set, reports with an error that a URL will never be asked for
	// how it is written, as *netguard.Client does, so that a client whose jwks_uri
	// could not be read is told at once (DR-08).
	CheckURL func(rawURL string) error
	// Limit, when set, is asked before the body is read, by network source; it
	// returns how long to wait, 0 for not at all.
	Limit func(ctx context.Context, source string) (time.Duration, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Handler serves dynamic client registration (RFC 7591) and its management (RFC 7592).
type Handler struct {
	o Options
}

// New returns the handler of /register and below.
func New(o Options) (*Handler, error) {
	var errs []error
	if o.Edge == nil || o.Clients == nil || o.Audit == nil || o.Tx == nil {
		errs = append(errs, errors.New("registration: Edge, Clients, Audit and Tx are required"))
	}
	o.Policy = o.Policy.withDefaults()
	errs = append(errs, o.Policy.check())
	if o.Policy.Management != ManageNone && (o.Issuer == "" || o.Grants == nil || o.Consents == nil) {
		errs = append(errs, errors.New("registration: Issuer, Grants and Consents are required for management"))
	}
	if o.Policy.Mode == ModeToken && o.InitialTokens == nil || o.Policy.Mode == ModeStatement && !o.Statements.accepts() {
		errs = append(errs, fmt.Errorf("registration: mode %s has nothing to check with", o.Policy.Mode))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Handler{o: o}, errors.Join(errs...)
}

// Open reports whether a client can register at all, with a token or statement
// if the policy wants one; metadata names the endpoint only then.
func (h *Handler) Open() bool { return h.o.Policy.Mode != ModeClosed }

// Routes adds POST /register and the endpoint at which clients manage
// themselves, which stays when registration closes.
func (h *Handler) Routes(_, endpoints *http.ServeMux) {
	endpoints.Handle("POST "+Path, h.o.Edge.JSON(h.register))
	if h.o.Policy.Management == ManageNone {
		return
	}
	endpoints.Handle("GET "+managedPath, h.o.Edge.JSON(h.read))
	endpoints.Handle("PUT "+managedPath, h.o.Edge.JSON(h.update))
	endpoints.Handle("DELETE "+managedPath, h.o.Edge.JSON(h.remove))
}

// response is the client information response (RFC 7591 §3.2.1, RFC 7592 §3). It
// has no nulls, and client_secret_expires_at only beside a secret (A12).
type response struct {
	ClientID                string `json:"client_id"`
	ClientIDIssuedAt        int64  `json:"client_id_issued_at"`
	ClientSecret            string `json:"client_secret,omitempty"`
	ClientSecretExpiresAt   *int64 `json:"client_secret_expires_at,omitempty"`
	RegistrationClientURI   string `json:"registration_client_uri,omitempty"`
	RegistrationAccessToken string `json:"registration_access_token,omitempty"`
	ClientMetadata
}

// newResponse tells the client what is registered; the secret and the token are
// "" where there is none to tell.
func (h *Handler) newResponse(c Client, secret, token oauth.Secret) response {
	resp := response{ClientID: c.ID, ClientIDIssuedAt: c.CreatedAt.Unix(), ClientMetadata: c.Metadata}
	if secret != "" {
		never := int64(0) // RFC 7591 §3.2.1: 0 is "does not expire"
		resp.ClientSecret, resp.ClientSecretExpiresAt = secret.Reveal(), &never
	}
	if token != "" {
		resp.RegistrationClientURI, resp.RegistrationAccessToken = h.configurationURI(c.ID), token.Reveal()
	}
	return resp
}

// register serves POST /register (RFC 7591 §3.1).
func (h *Handler) register(w http.ResponseWriter, r *http.Request) error {
	if !h.Open() {
		return registrationClosed(r)
	}
	source := audit.SourceFrom(r.Context()).Class()
	if err := h.limit(r.Context(), source); err != nil {
		return err
	}
	initial, err := h.initialToken(r)
	if err != nil {
		return err
	}
	body, err := readDocument(w, r)
	if err != nil {
		return err
	}
	doc, err := readObject(body)
	if err != nil {
		return err
	}
	m, err := h.readMetadata(r.Context(), doc)
	if err != nil {
		return err
	}
	n := newRegistration(m, source, h.o.Policy, h.o.Now())
	if err := h.create(r.Context(), &n, initial); err != nil {
		return err
	}
	return endpoint.WriteJSON(w, http.StatusCreated, h.newResponse(n.client, n.secret, n.token))
}

// registrationClosed answers who would register where nobody may. No token is
// good here, so the answer is that of a missing or wrong one (DR-01). A browser's
// person is told that being signed in is no privilege (DR-02): no cookie is read.
func registrationClosed(r *http.Request) *oauth.Error {
	if r.Header.Get("Cookie") != "" {
		return closed()
	}
	return unauthorized(closedHint, r.Header.Get("Authorization") != "")
}

const closedHint = "registration is closed here; ask the operator to add the client"

// closed answers who is known and may not change anything here.
func closed() *oauth.Error {
	return &oauth.Error{Code: "access_denied", Status: http.StatusForbidden,
		Description: closedHint}
}

// registering is a client about to be stored, with what only its maker is told.
type registering struct {
	client        Client
	secret, token oauth.Secret
}

func newRegistration(m ClientMetadata, source string, policy Policy, now time.Time) registering {
	var n registering
	n.client, n.secret = newClient(KindDynamic, m, now)
	n.client.Source = source
	if policy.manages(&n.client) {
		n.token = newRegistrationToken()
		n.client.RegistrationTokenHash = HashRegistrationToken(n.client.ID, n.token)
	}
	return n
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

// create inserts the client and its audit event, within the budgets, unless this
// registration repeats one that came to nothing: clients that lose what they
// stored, or that register at each start, would otherwise leave a row each time.
func (h *Handler) create(ctx context.Context, n *registering, initial oauth.Secret) error {
	return h.o.Tx.InTx(ctx, func(ctx context.Context) error {
		if err := h.o.Clients.HoldRegistrations(ctx); err != nil {
			return err
		}
		detail := registeredDetail(n.client.Metadata)
		if h.o.Policy.Mode == ModeToken {
			id, err := h.spendInitialToken(ctx, initial)
			if err != nil {
				return err
			}
			detail["initial_access_token"] = id
		} else if found, err := h.reuse(ctx, n); found || err != nil {
			return err
		}
		if err := h.checkBudgets(ctx, &n.client); err != nil {
			return err
		}
		if err := h.o.Clients.CreateClient(ctx, n.client); err != nil {
			return fmt.Errorf("register client: %w", err)
		}
		return h.o.Audit.Append(ctx, audit.New(ctx, n.client.CreatedAt, audit.Event{
			Name: "client.registered", Actor: n.client.ID, ClientID: n.client.ID, Detail: detail}))
	})
}

// reuse puts the client of an earlier, equal registration in n's place. It is
// for public clients without a registration access token only: there is nothing
// in the answer that is for one asker alone, as with a metadata document.
func (h *Handler) reuse(ctx context.Context, n *registering) (bool, error) {
	if !n.client.IsPublic() || n.token != "" {
		return false, nil
	}
	c, err := h.o.Clients.ReuseClient(ctx, n.client.Source, n.client.DocumentHash, n.client.CreatedAt)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the same registration: %w", err)
	}
	n.client = c
	return true, nil
}

// checkBudgets counts rows, so that a restart or a second process does not reset
// a budget; it refuses the new and never evicts the old (DR-13).
func (h *Handler) checkBudgets(ctx context.Context, c *Client) error {
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
	return nil
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
	secret := oauth.NewSecret()
	c.SecretHash = HashSecret(c.ID, secret)
	return c, secret
}

// newClientID returns 130 random bits as letters and digits: no "-" in front,
// so that it is never taken for a flag on the command line (A16).
func newClientID() string { return strings.ToLower(rand.Text()) }
