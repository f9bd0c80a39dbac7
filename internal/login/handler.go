package login

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/web"
)

// Purposes of the forms here (flow.Forms). PurposeSignOut is also that of the
// sign-out form in the header of every page.
const (
	purposeSignIn  = "sign-in"
	PurposeSignOut = "sign-out"
	purposeSetup   = "setup"
)

// RequestStore is what sign-in needs of flow.Store.
type RequestStore interface {
	GetRequest(ctx context.Context, id string) (flow.AuthorizationRequest, error)
	TouchRequest(ctx context.Context, id string, until time.Time) error
}

// Options configures New. Every field without a default is required.
type Options struct {
	Edge  *endpoint.Edge
	Pages *web.Renderer
	// Base is the issuer's path, "" for none.
	Base string
	// Issuer is shown at the end of set-up.
	Issuer string
	// Development chooses the cookies' names (D4).
	Development bool

	Sessions  *Sessions
	Forms     flow.Forms
	Passwords *Passwords
	Accounts  *Accounts

	Users    UserStore
	Devices  DeviceStore
	Guesses  GuessStore
	Setup    SetupStore
	Requests RequestStore
	Audit    audit.Store
	Tx       store.Transactor

	// Describe says what a request is about, for the line above the form: the app
	// as pages show it, and the MCP server's name; store.ErrNotFound when one of
	// them was removed.
	Describe func(ctx context.Context, a flow.AuthorizationRequest) (client web.Client, server string, err error)
	// AddResource registers the first MCP server during set-up. An *oauth.Error
	// or store.ErrExists is shown as a mistake in the form.
	AddResource func(ctx context.Context, url, name string) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Handler serves /sign-in, /sign-out and /setup.
type Handler struct {
	o     Options
	guard *guard
}

// New checks the options.
func New(o Options) (*Handler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	for name, missing := range map[string]bool{
		"Edge": o.Edge == nil, "Pages": o.Pages == nil, "Sessions": o.Sessions == nil, "Forms": o.Forms == nil,
		"Passwords": o.Passwords == nil, "Accounts": o.Accounts == nil, "Users": o.Users == nil,
		"Devices": o.Devices == nil, "Guesses": o.Guesses == nil, "Setup": o.Setup == nil,
		"Requests": o.Requests == nil, "Audit": o.Audit == nil, "Tx": o.Tx == nil,
		"Describe": o.Describe == nil, "AddResource": o.AddResource == nil,
	} {
		if missing {
			return nil, errors.New("login: option " + name + " is required")
		}
	}
	return &Handler{o: o, guard: &guard{store: o.Guesses, now: o.Now}}, nil
}

// Routes adds the pages of this package.
func (h *Handler) Routes(pages, _ *http.ServeMux) {
	pages.Handle("GET /sign-in", h.o.Edge.Page(h.showSignIn))
	pages.Handle("POST /sign-in", h.o.Edge.Page(h.signIn))
	pages.Handle("GET /sign-out", h.o.Edge.Page(h.showSignOut))
	pages.Handle("POST /sign-out", h.o.Edge.Page(h.signOut))
	pages.Handle("GET /setup", h.o.Edge.Page(h.showSetup))
	pages.Handle("POST /setup", h.o.Edge.Page(h.setup))
}

// checkForm returns the session that a form belongs to. A form without it is
// refused before anything else is looked at: signing somebody in as somebody
// else is an attack too (SL-03).
func (h *Handler) checkForm(r *http.Request, purpose, ref string, params oauth.Params) (*flow.Session, error) {
	sess, err := h.o.Sessions.Current(r)
	if err != nil {
		return nil, err
	}
	if sess == nil && !h.o.Sessions.HasCookie(r) {
		return nil, noCookie()
	}
	if _, err := h.o.Forms.Check(r.Context(), sess, purpose, ref, params.Get("txn")); err != nil {
		return nil, err
	}
	return sess, nil
}

// frame is what the header of a page shows.
func (h *Handler) frame(s *flow.Session) web.Frame {
	if !s.SignedIn() {
		return web.Frame{}
	}
	return web.Frame{Account: s.Email, SignOut: h.o.Forms.Token(s, PurposeSignOut, "")}
}

func (h *Handler) redirect(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, h.o.Base+path, http.StatusSeeOther)
	return nil
}

func stop(status int, c web.ErrorCase, cause string) error {
	return &endpoint.PageError{Status: status, Page: web.Error{Case: c}, Err: errors.New(cause)}
}

func noCookie() error {
	return stop(http.StatusForbidden, web.CaseNoCookie, "the browser sent no session cookie")
}
