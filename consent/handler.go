package consent

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// Path is the consent page, below the issuer's path (D25).
const Path = "/consent"

// minReading is how long a page must have been shown before an answer counts: a
// faster one is a stray or a tricked click (D22).
const minReading = 600 * time.Millisecond

// formPurpose binds the form's txn to this page.
const formPurpose = "consent"

// Options configures New. Every field but Base and Now is required.
type Options struct {
	// Edge writes error pages, Pages the page itself.
	Edge  *endpoint.Edge
	Pages *web.Renderer
	// Base is the issuer's path, "" for none.
	Base string
	// Issuer is the issuer identifier; https redirects to its site need no
	// warning (D32).
	Issuer   string
	Sessions flow.Sessions
	Forms    flow.Forms
	Requests flow.Store
	// Clients finds the client of a request, and those it could be mistaken for.
	Clients interface {
		GetClient(ctx context.Context, id string) (registration.Client, error)
		// ListIdentities returns who the clients are that the operator added or
		// verified, then those known by a metadata document, oldest first, at most
		// limit.
		ListIdentities(ctx context.Context, limit int) ([]registration.Identity, error)
	}
	// Resources finds the resource of a request; resource.Registry implements it.
	Resources interface {
		ByIdentifier(ctx context.Context, identifier string) (resource.Resource, error)
	}
	Consents Store
	Tx       store.Transactor
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Handler serves the consent page. It records the answer on the authorization
// request and returns to flow.ContinueURL; it issues nothing.
type Handler struct {
	o Options
}

// New checks the options.
func New(o Options) (*Handler, error) {
	for name, missing := range map[string]bool{
		"Edge": o.Edge == nil, "Pages": o.Pages == nil, "Issuer": o.Issuer == "", "Sessions": o.Sessions == nil,
		"Forms": o.Forms == nil, "Requests": o.Requests == nil, "Clients": o.Clients == nil,
		"Resources": o.Resources == nil, "Consents": o.Consents == nil, "Tx": o.Tx == nil,
	} {
		if missing {
			return nil, errors.New("consent: option " + name + " is required")
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Handler{o: o}, nil
}

// Routes adds the consent page. A GET never answers (CS-03).
func (h *Handler) Routes(pages, _ *http.ServeMux) {
	pages.Handle("GET "+Path, h.o.Edge.Page(h.show))
	pages.Handle("POST "+Path, h.o.Edge.Page(h.answer))
}

// question is everything one page is about, read anew for each request.
type question struct {
	sess   *flow.Session
	req    flow.AuthorizationRequest
	client registration.Client
	res    resource.Resource
	offer  offer
	// earlier is what this person allowed this client before, at this redirect URI
	// and resource, nil for nothing.
	earlier *Consent
	// more makes it a step-up page, which asks for that alone (D11); nil is the full page.
	more *More
	// stay says that a refresh token would be issued, and so "Stay connected" is
	// offered (D9).
	stay bool
}

// choices are what a form says.
type choices struct {
	ticked   []string
	stay     bool
	tooQuick bool
	// anew says that another question was answered than is asked now.
	anew bool
	// changed says that the client changed after the page was shown (CI-17).
	changed bool
}

// show serves GET /consent?request=ID.
func (h *Handler) show(w http.ResponseWriter, r *http.Request) error {
	params, err := oauth.QueryParams(r)
	if err != nil {
		return err
	}
	if len(params.All("request")) > 1 {
		return oauth.InvalidRequest("request is repeated")
	}
	sess, req, err := h.find(r, params.Get("request"))
	if err != nil {
		return err
	}
	if req.NeedsSignIn(sess) || req.Decision != "" && req.FinishedAt.IsZero() {
		return h.goOn(w, r, req.ID)
	}
	q, err := h.question(r.Context(), sess, req)
	if err != nil {
		return err
	}
	return h.page(w, r, q, q.initial())
}

// answer serves POST /consent.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) error {
	form, err := endpoint.Form(r, "scope") // a box each
	if err != nil {
		return err
	}
	sess, req, err := h.find(r, form.Get("request"))
	if err != nil {
		return err
	}
	if req.NeedsSignIn(sess) {
		return h.goOn(w, r, req.ID)
	}
	txn, about, _ := strings.Cut(form.Get("txn"), ".")
	shownAt, err := h.o.Forms.Check(r.Context(), sess, formPurpose, formRef(req.ID, about), txn)
	if err != nil {
		return err
	}
	if req.Decision != "" {
		return stop(http.StatusBadRequest, web.CaseAnswered, req, errors.New("answered before"))
	}
	q, err := h.question(r.Context(), sess, req)
	if err != nil {
		return err
	}
	c := choices{ticked: form.All("scope"), stay: form.Get("stay_connected") == "yes"}
	decision := form.Get("decision")
	if !q.asksAs(about) {
		return h.otherQuestion(w, r, q, isStepUp(about), flow.Decision(decision))
	}
	if !q.offer.offers(c.ticked) || c.stay && !q.choosesStay() {
		// AR-13, SC-08: the form says what its page did not
		return stop(http.StatusBadRequest, web.CaseRequest, req, errors.New("a choice that the page did not offer"))
	}
	c.tooQuick = h.o.Now().Sub(shownAt) < minReading
	// to allow is to allow what the page said (CI-17); a refusal needs no second look
	c.changed = flow.Decision(decision) == flow.DecisionAllow && about != q.about()
	if c.changed || c.tooQuick || decision == "review" {
		c.tooQuick = c.tooQuick && decision != "review"
		return h.page(w, r, q, c)
	}
	return h.record(w, r, q, flow.Decision(decision), c)
}

// txn ties a form to its request, and tells what its page said.
func (h *Handler) txn(q question) string {
	about := q.about()
	return h.o.Forms.Token(q.sess, formPurpose, formRef(q.req.ID, about)) + "." + about
}

// record writes the answer on the request, once, and goes on.
func (h *Handler) record(w http.ResponseWriter, r *http.Request, q question, d flow.Decision, c choices) error {
	a := flow.Answer{Decision: d, By: q.sess.Subject, Now: h.o.Now()}
	switch {
	case d == flow.DecisionAllow && q.more != nil && !q.choosesAny(c):
		a.Decision = flow.DecisionDeny // everything new unticked: what it has stays as it is
	case d == flow.DecisionAllow:
		a.ApprovedScopes, a.StayConnected, a.ExtendsConsent = q.offer.granted(c.ticked), q.stays(c), q.more != nil
	case d == flow.DecisionDeny:
	default:
		return oauth.InvalidRequest("decision must be allow or deny")
	}
	err := h.o.Tx.InTx(r.Context(), func(ctx context.Context) error {
		if a.Decision == flow.DecisionDeny && q.more != nil {
			if err := h.countRefusal(ctx, q, a.Now); err != nil {
				return err
			}
		}
		recorded, err := h.o.Requests.AnswerRequest(ctx, q.req.ID, q.sess.ID, a)
		if err == nil && !recorded { // another tab was faster (AR-15)
			return stop(http.StatusBadRequest, web.CaseAnswered, q.req, errors.New("answered meanwhile"))
		}
		return err
	})
	if err != nil {
		return err
	}
	return h.goOn(w, r, q.req.ID)
}

// find returns the browser's session and the open request that belongs to it. A
// request of another session is nobody's business here (AR-14, CS-05).
func (h *Handler) find(r *http.Request, id string) (*flow.Session, flow.AuthorizationRequest, error) {
	none := flow.AuthorizationRequest{}
	sess, err := h.o.Sessions.Current(r)
	if err != nil {
		return nil, none, err
	}
	req, err := h.o.Requests.GetRequest(r.Context(), id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, none, stop(http.StatusBadRequest, web.CaseExpired, none, err)
	case err != nil:
		return nil, none, err
	case sess == nil:
		return nil, none, stop(http.StatusForbidden, web.CaseNoCookie, none, errors.New("no session"))
	case req.SessionID != sess.ID:
		return nil, none, stop(http.StatusForbidden, web.CaseForbidden, none, errors.New("request of another session"))
	case !req.FinishedAt.IsZero():
		return nil, none, stop(http.StatusBadRequest, web.CaseAnswered, req, errors.New("finished before"))
	case !h.o.Now().Before(req.ExpiresAt):
		return nil, none, stop(http.StatusBadRequest, web.CaseExpired, req, errors.New("expired"))
	}
	return sess, req, nil
}

// question looks again at client and resource, which may have changed since the
// request was made.
func (h *Handler) question(ctx context.Context, sess *flow.Session, req flow.AuthorizationRequest) (question, error) {
	q := question{sess: sess, req: req}
	var err error
	if q.client, err = h.o.Clients.GetClient(ctx, req.ClientID); errors.Is(err, store.ErrNotFound) {
		return q, stop(http.StatusBadRequest, web.CaseClientUnknown, req, err)
	} else if err != nil {
		return q, err
	}
	if !q.client.Enabled() {
		return q, stop(http.StatusBadRequest, web.CaseClientDisabled, req, errors.New("client is disabled"))
	}
	if _, err := registration.MatchRedirectURI(q.client.Metadata.RedirectURIs, req.RedirectURI); err != nil {
		return q, redirectGone(q.client, req, err)
	}
	q.res, err = h.o.Resources.ByIdentifier(ctx, req.Resource)
	if errors.Is(err, store.ErrNotFound) || err == nil && !q.client.MayUseResource(q.res.Canonical) {
		// AU-06: a resource that the client may not use is never on the page
		stopped := stop(http.StatusBadRequest, web.CaseResource, req, errors.New("resource is gone or not for this client"))
		stopped.Page.Host = web.NewHost(req.Resource).String()
		return q, stopped
	}
	if err != nil {
		return q, err
	}
	scopes, err := AllowedNow(q.res, &q.client, req.Scopes)
	if err != nil {
		stopped := stop(http.StatusBadRequest, web.CaseScope, req, err)
		stopped.Page.Server = q.res.Name
		return q, stopped
	}
	q.offer = newOffer(q.res, scopes)
	q.stay = q.client.MayUseGrant(registration.GrantRefreshToken)
	if q.earlier, err = h.earlier(ctx, q); err != nil {
		return q, err
	}
	if q.more = q.beyond(); q.more != nil {
		q.offer = q.offer.beyond(q.more)
	}
	return q, nil
}

// redirectGone stops a request whose redirect URI the client gave up since.
func redirectGone(c registration.Client, req flow.AuthorizationRequest, cause error) *endpoint.PageError {
	stopped := stop(http.StatusBadRequest, web.CaseRedirectURI, req, cause)
	described := registration.Describe(&c)
	stopped.Page.Client, stopped.Page.Received = &described, req.RedirectURI
	return stopped
}

// AllowedNow returns the scopes of a request without those that its client may
// no longer have (SC-04); nothing left is invalid_scope.
func AllowedNow(r resource.Resource, c *registration.Client, scopes []string) ([]string, error) {
	if len(scopes) == 0 {
		return nil, nil // basic access: Narrow would put the defaults in its place
	}
	return r.Narrow(scopes, c.Trusted(), c.ScopeLimit())
}

// goOn returns to the dispatcher, which decides what comes next.
func (h *Handler) goOn(w http.ResponseWriter, r *http.Request, requestID string) error {
	http.Redirect(w, r, flow.ContinueURL(h.o.Base, requestID), http.StatusSeeOther)
	return nil
}

// switchURL is "Use another account".
func (h *Handler) switchURL(requestID string) string {
	return h.o.Base + "/sign-in?" + url.Values{"request": {requestID}, "switch": {"1"}}.Encode()
}

// stop is an error page about req, which may be the zero request.
func stop(status int, c web.ErrorCase, req flow.AuthorizationRequest, cause error) *endpoint.PageError {
	return &endpoint.PageError{Status: status, Err: cause, Page: web.Error{Case: c, ClientID: req.ClientID}}
}
