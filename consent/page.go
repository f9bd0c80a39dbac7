package consent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// page shows the question with the given choices and lets the request live
// longer (D33).
func (h *Handler) page(w http.ResponseWriter, r *http.Request, q question, c choices) error {
	now := h.o.Now()
	if err := h.o.Requests.TouchRequest(r.Context(), q.req.ID, now.Add(flow.RequestIdle)); err != nil {
		return err
	}
	others, err := h.o.Consents.CountSubjects(r.Context(), q.client.ID, q.sess.Subject)
	if err != nil {
		return err
	}
	p := h.facts(q, now)
	if err := h.warn(r.Context(), &p, q, q.earlier); err != nil {
		return err
	}
	p.Others = others
	p.StayConnected, p.StayChecked = q.choosesStay(), c.stay
	p.TooQuick, p.ChangedMeanwhile, p.AskedAnew = c.tooQuick, c.changed, c.anew
	if q.more != nil {
		return h.o.Pages.Write(w, r, http.StatusOK, stepUpPage(p, q, c))
	}
	p.Required, p.Groups = q.offer.words(q.client.Trusted(), c.ticked, allowedBefore(q, q.earlier))
	p.Basic = len(q.offer.requested) == 0
	return h.o.Pages.Write(w, r, http.StatusOK, p)
}

// facts are the parts of the page that no choice changes.
func (h *Handler) facts(q question, now time.Time) web.Consent {
	p := web.Consent{
		Frame:     web.Frame{Account: q.sess.Email},
		RequestID: q.req.ID, Txn: h.txn(q),
		Client:    registration.Describe(&q.client),
		FirstSeen: q.client.CreatedAt, FirstSeenToday: sameDay(q.client.CreatedAt, now),
		SelfRegistered: q.client.Kind == registration.KindDynamic && !q.client.Trusted(),
		Server:         q.res.Name, ServerHost: web.NewHost(q.res.Identifier), RunBy: !q.res.Unregistered,
		ClientID: q.client.ID, RedirectURI: q.req.RedirectURI, Resource: q.res.Identifier,
		Scopes: scopeText(q.req), AuthMethod: q.client.Metadata.TokenEndpointAuthMethod,
		Reference: q.req.Reference, SwitchURL: h.switchURL(q.req.ID),
	}
	p.Goes, p.GoesTo, p.Scheme = registration.DescribeRedirect(q.req.RedirectURI)
	if from, ok := registration.DescribeOrigin(&q.client); ok {
		p.From, p.FromProven = &from, p.Goes == web.DestinationWebsite
	}
	return p
}

// earlier returns what this person allowed this client before, at this redirect
// URI and resource, or nil.
func (h *Handler) earlier(ctx context.Context, q question) (*Consent, error) {
	row, err := h.o.Consents.GetConsent(ctx, q.sess.Subject, q.client.ID, q.req.RedirectURI, q.req.Resource)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("earlier consent: %w", err)
	}
	return &row, nil
}

// lastAllowed returns what this person allowed this client before, nil for
// nothing: here, else at another redirect URI or resource, since a client that
// changed may send access elsewhere now.
func (h *Handler) lastAllowed(ctx context.Context, q question, earlier *Consent) (*Consent, error) {
	if earlier != nil {
		return earlier, nil
	}
	row, err := h.o.Consents.LastConsent(ctx, q.sess.Subject, q.client.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("last consent: %w", err)
	}
	return &row, nil
}

// allowedBefore reports which scopes this person allowed this client earlier; a
// client whose metadata changed since starts anew.
func allowedBefore(q question, earlier *Consent) func(scope string) bool {
	if earlier == nil || changed(q, earlier) {
		return func(string) bool { return false }
	}
	return func(scope string) bool { return q.res.Covers(earlier.Scopes, scope) }
}

// changed reports whether the client's metadata is other than at the last approval.
func changed(q question, earlier *Consent) bool {
	return earlier != nil && earlier.DocumentHash != q.client.DocumentHash
}

// maxCompared is how many other clients one page compares names with.
const maxCompared = 500

// warn fills the amber box, worst first.
func (h *Handler) warn(ctx context.Context, p *web.Consent, q question, earlier *Consent) error {
	if w := warning(h.o.Issuer, &q.client, q.req.RedirectURI, p.Goes); w != "" {
		p.Warnings = append(p.Warnings, w)
	}
	last, err := h.lastAllowed(ctx, q, earlier)
	if err != nil {
		return err
	}
	if changed(q, last) {
		p.Warnings, p.ChangedSince = append(p.Warnings, web.WarningChanged), last.UpdatedAt
	}
	if q.client.Trusted() {
		return nil
	}
	others, err := h.o.Clients.ListIdentities(ctx, maxCompared)
	if err != nil {
		return err
	}
	like := q.client.LooksLike(q.req.RedirectURI, others)
	if like.Host != "" {
		p.Warnings, p.Doubtful = append(p.Warnings, web.WarningAddress), like.Host
	}
	if like.Name() {
		p.Warnings = append(p.Warnings, web.WarningName)
	}
	return nil
}

// warning chooses what the amber box says of where access goes (D32). Any program
// of this computer can listen on a loopback port or claim a scheme, whoever the
// client says it is.
func warning(issuer string, c *registration.Client, redirectURI string, goes web.Destination) web.Warning {
	switch {
	case goes != web.DestinationWebsite:
		return web.WarningLoopback
	case isElsewhere(c, redirectURI):
		return web.WarningDifferentSite // a document's site is a fact, whoever verified its client
	case c.Trusted():
		return ""
	case registration.IsKnownRedirect(redirectURI), registration.SameSite(redirectURI, issuer):
		return ""
	}
	return web.WarningOtherSite
}

// isElsewhere reports whether a metadata document sends responses to another site
// than its own. Apps in wide use have several: their hosts belong together.
func isElsewhere(c *registration.Client, redirectURI string) bool {
	if c.Kind != registration.KindCIMD || registration.SameSite(c.ID, redirectURI) {
		return false
	}
	return !registration.IsKnownRedirect(c.ID) || !registration.IsKnownRedirect(redirectURI)
}

func isHTTPS(uri string) bool { return strings.HasPrefix(uri, "https://") }

// scopeText is what the technical details show: what was asked for.
func scopeText(req flow.AuthorizationRequest) string {
	scopes := strings.Join(req.Scopes, " ")
	if req.OfflineNamed {
		scopes = strings.TrimSpace(scopes + " " + oauth.OfflineAccess)
	}
	return scopes
}

func sameDay(a, b time.Time) bool {
	return a.UTC().Format(time.DateOnly) == b.UTC().Format(time.DateOnly)
}
