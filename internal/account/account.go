// Package account owns the page on which people see what they allowed and
// where they are signed in, and take it back: /account. It stands above
// consent, login, grant, registration and resource because disconnecting an app
// touches all of them, in one transaction (decision D10).
package account

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// Purposes of the forms here (flow.Forms).
const (
	purposeAccount    = "account"
	purposeDisconnect = "account disconnect"
	purposeEndOthers  = "account end-others"
	purposeLetAsk     = "account let-ask"
)

// GrantStore is what the page needs of grant.Store.
type GrantStore interface {
	ListGrants(ctx context.Context, f grant.Filter) ([]grant.Grant, error)
	grant.GroupStore
}

// ClientStore is what the page needs of registration.Store.
type ClientStore interface {
	GetClient(ctx context.Context, id string) (registration.Client, error)
}

// ResourceStore is what the page needs of resource.Store.
type ResourceStore interface {
	GetResource(ctx context.Context, canonical string) (resource.Resource, error)
}

// SessionStore is what the page needs of login.SessionStore.
type SessionStore interface {
	ListSessions(ctx context.Context, subject string, now time.Time) ([]login.Session, error)
	DeleteSession(ctx context.Context, id string) (bool, error)
	DeleteSessions(ctx context.Context, subject, exceptID string) (int, error)
}

// ConsentStore is what the page needs of consent.Store.
type ConsentStore interface {
	grant.ConsentStore
	ListQuiet(ctx context.Context, subject string, since time.Time) ([]consent.Refusal, error)
	DeleteRefusals(ctx context.Context, subject, clientID, resource string) (int, error)
}

// Options configures New. Every field without a default is required.
type Options struct {
	Edge  *endpoint.Edge
	Pages *web.Renderer
	// Base is the issuer's path, "" for none.
	Base string

	Sessions     flow.Sessions
	Forms        flow.Forms
	SessionStore SessionStore
	Grants       GrantStore
	Clients      ClientStore
	Resources    ResourceStore
	Consents     ConsentStore
	Audit        audit.Store
	Tx           store.Transactor

	// AccessTokenLife is how long access that an app already holds lasts after a
	// disconnect; the page says so. Default 10 minutes (D7).
	AccessTokenLife time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Handler serves /account.
type Handler struct{ o Options }

// New checks the options.
func New(o Options) (*Handler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.AccessTokenLife == 0 {
		o.AccessTokenLife = 10 * time.Minute
	}
	for name, missing := range map[string]bool{
		"Edge": o.Edge == nil, "Pages": o.Pages == nil, "Sessions": o.Sessions == nil, "Forms": o.Forms == nil,
		"SessionStore": o.SessionStore == nil, "Grants": o.Grants == nil, "Clients": o.Clients == nil,
		"Resources": o.Resources == nil, "Consents": o.Consents == nil, "Audit": o.Audit == nil, "Tx": o.Tx == nil,
	} {
		if missing {
			return nil, errors.New("account: option " + name + " is required")
		}
	}
	return &Handler{o: o}, nil
}

// Routes adds the pages of this package.
func (h *Handler) Routes(pages, _ *http.ServeMux) {
	pages.Handle("GET /{$}", h.o.Edge.Page(h.home))
	pages.Handle("GET /account", h.o.Edge.Page(h.person(h.show)))
	pages.Handle("GET /account/apps/{key}/disconnect", h.o.Edge.Page(h.person(h.askDisconnect)))
	pages.Handle("POST /account/apps/{key}/disconnect", h.o.Edge.Page(h.person(h.disconnect)))
	pages.Handle("POST /account/apps/{key}/let-ask", h.o.Edge.Page(h.person(h.letAsk)))
	pages.Handle("POST /account/sessions/{key}/end", h.o.Edge.Page(h.person(h.endSession)))
	pages.Handle("GET /account/sessions/end-others", h.o.Edge.Page(h.person(h.askEndOthers)))
	pages.Handle("POST /account/sessions/end-others", h.o.Edge.Page(h.person(h.endOthers)))
}

// home sends whoever opens the issuer in a browser to their account (D25).
func (h *Handler) home(w http.ResponseWriter, r *http.Request) error {
	return h.redirect(w, r, "/account")
}

// personFunc is a handler for somebody who is signed in.
type personFunc func(w http.ResponseWriter, r *http.Request, s *flow.Session) error

// person sends whoever is not signed in to sign in first.
func (h *Handler) person(fn personFunc) endpoint.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		s, err := h.o.Sessions.Current(r)
		if err != nil {
			return err
		}
		if !s.SignedIn() {
			return h.redirect(w, r, "/sign-in")
		}
		return fn(w, r, s)
	}
}

// checkForm refuses a POST that is not from our own page, shown in this session
// (CS-01).
func (h *Handler) checkForm(r *http.Request, s *flow.Session, purpose, ref string) error {
	params, err := endpoint.Form(r)
	if err != nil {
		return err
	}
	_, err = h.o.Forms.Check(r.Context(), s, purpose, ref, params.Get("txn"))
	return err
}

func (h *Handler) frame(s *flow.Session) web.Frame {
	return web.Frame{Account: s.Email, SignOut: h.o.Forms.Token(s, login.PurposeSignOut, "")}
}

func (h *Handler) redirect(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, h.o.Base+path, http.StatusSeeOther)
	return nil
}

func (h *Handler) accessMinutes() int {
	return int((h.o.AccessTokenLife + time.Minute - 1) / time.Minute)
}

// notFound answers for what does not exist and for what is somebody else's, alike.
func notFound(what string) error {
	return &endpoint.PageError{Status: http.StatusNotFound, Page: web.Error{Case: web.CaseNotFound},
		Err: errors.New("no such " + what + " of this person")}
}
