package account

import (
	"context"
	"net/http"
	"slices"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/web"
)

// addAsksAgain adds the line "Asks again for" to an app that asked for more than
// it has until the person is not asked any more (pages.md 4.3).
func (h *Handler) addAsksAgain(ctx context.Context, s *flow.Session, a app, quiet []consent.Refusal, shown *web.ConnectedApp) error {
	var scopes []string
	for _, r := range quiet {
		if r.ClientID != a.clientID || r.Resource != a.resource {
			continue
		}
		shown.AsksTxn = h.o.Forms.Token(s, purposeLetAsk, a.key)
		for _, scope := range r.Scopes {
			switch {
			case scope == oauth.OfflineAccess:
				shown.AsksStay = true
			case !slices.Contains(scopes, scope):
				scopes = append(scopes, scope)
			}
		}
	}
	if len(scopes) == 0 {
		return nil
	}
	var err error
	_, shown.AsksFor, err = h.permissions(ctx, a.resource, scopes)
	return err
}

// letAsk serves POST /account/apps/{key}/let-ask: what the person refused of the
// app is forgotten, so that the next time they are asked again. Nothing to
// forget is as good.
func (h *Handler) letAsk(w http.ResponseWriter, r *http.Request, s *flow.Session) error {
	key := r.PathValue("key")
	if err := h.checkForm(r, s, purposeLetAsk, key); err != nil {
		return err
	}
	err := h.o.Tx.InTx(r.Context(), func(ctx context.Context) error {
		a, err := h.findApp(ctx, s.Subject, key)
		if err != nil {
			return err
		}
		n, err := h.o.Consents.DeleteRefusals(ctx, s.Subject, a.clientID, a.resource)
		if err != nil || n == 0 {
			return err
		}
		return h.o.Audit.Append(ctx, audit.New(ctx, h.o.Now(), audit.Event{Name: "consent.let_ask", Actor: s.Subject,
			Subject: s.Subject, ClientID: a.clientID, Resource: a.resource}))
	})
	if err != nil {
		return err
	}
	return h.redirect(w, r, "/account#apps")
}
