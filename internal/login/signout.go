package login

import (
	"context"
	"net/http"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/web"
)

// showSignOut serves GET /sign-out: the question to somebody signed in, the
// farewell to anybody else (pages.md 4.6).
func (h *Handler) showSignOut(w http.ResponseWriter, r *http.Request) error {
	sess, err := h.o.Sessions.Current(r)
	if err != nil {
		return err
	}
	page := web.SignedOut{Frame: h.frame(sess), Ask: sess.SignedIn()}
	if page.Ask {
		page.Txn = page.Frame.SignOut
	}
	return h.o.Pages.Write(w, r, http.StatusOK, page)
}

// signOut serves POST /sign-out. The row goes, so a copied cookie is dead at
// once (SL-09).
func (h *Handler) signOut(w http.ResponseWriter, r *http.Request) error {
	params, err := endpoint.Form(r)
	if err != nil {
		return err
	}
	sess, err := h.checkForm(r, PurposeSignOut, "", params)
	if err != nil {
		return err
	}
	err = h.o.Sessions.SignOut(w, r, func(ctx context.Context) error {
		if !sess.SignedIn() {
			return nil
		}
		return h.o.Audit.Append(ctx, audit.New(ctx, h.o.Now(), audit.Event{Name: "user.signed_out",
			Actor: sess.Subject, Subject: sess.Subject}))
	})
	if err != nil {
		return err
	}
	return h.redirect(w, r, "/sign-out")
}
