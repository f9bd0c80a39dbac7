package account

import (
	"context"
	"net/http"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/web"
)

// show serves GET /account (pages.md 4.7).
func (h *Handler) show(w http.ResponseWriter, r *http.Request, s *flow.Session) error {
	ctx := r.Context()
	page := web.Account{Frame: h.frame(s), Now: h.o.Now(), Txn: h.o.Forms.Token(s, purposeAccount, ""),
		AccessMinutes: h.accessMinutes(), SessionsEnded: r.URL.Query().Get("ended") == "sessions"}
	apps, err := h.liveApps(ctx, s.Subject)
	if err != nil {
		return err
	}
	quiet, err := h.o.Consents.ListQuiet(ctx, s.Subject, h.o.Now().Add(-consent.QuietFor))
	if err != nil {
		return err
	}
	for _, a := range apps {
		shown, err := h.describe(ctx, a)
		if err != nil {
			return err
		}
		if err := h.addAsksAgain(ctx, s, a, quiet, &shown); err != nil {
			return err
		}
		page.Apps = append(page.Apps, shown)
	}
	if err := h.addNotices(ctx, s, r.URL.Query().Get("disconnected"), &page); err != nil {
		return err
	}
	if page.Sessions, err = h.sessions(ctx, s); err != nil {
		return err
	}
	return h.o.Pages.Write(w, r, http.StatusOK, page)
}

func (h *Handler) addNotices(ctx context.Context, s *flow.Session, disconnected string, page *web.Account) error {
	all, err := h.o.Grants.ListGrants(ctx, grant.Filter{Subject: s.Subject})
	if err != nil {
		return err
	}
	ended := endedOnly(all)
	if page.Disconnected, err = h.disconnected(ctx, ended, disconnected); err != nil {
		return err
	}
	page.Reuse, err = h.reused(ctx, ended)
	return err
}

// sessions lists where the person is signed in.
func (h *Handler) sessions(ctx context.Context, s *flow.Session) ([]web.Session, error) {
	rows, err := h.o.SessionStore.ListSessions(ctx, s.Subject, h.o.Now())
	if err != nil {
		return nil, err
	}
	var shown []web.Session
	for _, row := range rows {
		shown = append(shown, web.Session{Key: sessionKey(row), Browser: browserOf(row.UserAgent), IP: row.IP,
			SignedInAt: row.AuthTime, LastSeenAt: row.LastSeenAt, Current: row.ID == s.ID})
	}
	return shown, nil
}

// sessionKey names a session in a form; the row's key stays here.
func sessionKey(row login.Session) string { return opaque("session", row.Subject, row.ID) }

// endSession serves POST /account/sessions/{key}/end.
func (h *Handler) endSession(w http.ResponseWriter, r *http.Request, s *flow.Session) error {
	if err := h.checkForm(r, s, purposeAccount, ""); err != nil {
		return err
	}
	rows, err := h.o.SessionStore.ListSessions(r.Context(), s.Subject, h.o.Now())
	if err != nil {
		return err
	}
	for _, row := range rows {
		if sessionKey(row) != r.PathValue("key") {
			continue
		}
		err := h.o.Tx.InTx(r.Context(), func(ctx context.Context) error {
			if _, err := h.o.SessionStore.DeleteSession(ctx, row.ID); err != nil {
				return err
			}
			return h.recordSessions(ctx, s, "user.session_ended")
		})
		if err != nil {
			return err
		}
		return h.redirect(w, r, "/account")
	}
	return notFound("session")
}

// askEndOthers serves GET /account/sessions/end-others.
func (h *Handler) askEndOthers(w http.ResponseWriter, r *http.Request, s *flow.Session) error {
	rows, err := h.o.SessionStore.ListSessions(r.Context(), s.Subject, h.o.Now())
	if err != nil {
		return err
	}
	return h.o.Pages.Write(w, r, http.StatusOK, web.EndSessions{Frame: h.frame(s),
		Txn: h.o.Forms.Token(s, purposeEndOthers, ""), Others: max(0, len(rows)-1)})
}

// endOthers serves POST /account/sessions/end-others.
func (h *Handler) endOthers(w http.ResponseWriter, r *http.Request, s *flow.Session) error {
	if err := h.checkForm(r, s, purposeEndOthers, ""); err != nil {
		return err
	}
	err := h.o.Tx.InTx(r.Context(), func(ctx context.Context) error {
		if _, err := h.o.SessionStore.DeleteSessions(ctx, s.Subject, s.ID); err != nil {
			return err
		}
		return h.recordSessions(ctx, s, "user.other_sessions_ended")
	})
	if err != nil {
		return err
	}
	return h.redirect(w, r, "/account?ended=sessions")
}

func (h *Handler) recordSessions(ctx context.Context, s *flow.Session, event string) error {
	return h.o.Audit.Append(ctx, audit.New(ctx, h.o.Now(), audit.Event{Name: event, Actor: s.Subject, Subject: s.Subject}))
}
