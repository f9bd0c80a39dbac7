package consent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
	"golang.org/x/net/publicsuffix"
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
	before, err := h.before(r.Context(), q)
	if err != nil {
		return err
	}
	p := h.facts(q, now)
	p.Others = others
	p.Required, p.Groups = q.offer.words(q.client.Trusted(), c.ticked, before)
	p.Basic = len(q.offer.requested) == 0
	p.StayConnected, p.StayChecked, p.TooQuick = q.stay, c.stay, c.tooQuick
	return h.o.Pages.Write(w, r, http.StatusOK, p)
}

// facts are the parts of the page that no choice changes.
func (h *Handler) facts(q question, now time.Time) web.Consent {
	p := web.Consent{
		Frame:     web.Frame{Account: q.sess.Email},
		RequestID: q.req.ID, Txn: h.o.Forms.Token(q.sess, formPurpose, q.req.ID),
		Client:    registration.Describe(&q.client),
		FirstSeen: q.client.CreatedAt, FirstSeenToday: sameDay(q.client.CreatedAt, now),
		SelfRegistered: q.client.Kind == registration.KindDynamic && !q.client.Trusted(),
		Server:         q.res.Name, ServerHost: web.NewHost(q.res.Identifier), RunBy: !q.res.Unregistered,
		ClientID: q.client.ID, RedirectURI: q.req.RedirectURI, Resource: q.res.Identifier,
		Scopes: scopeText(q.req), AuthMethod: q.client.Metadata.TokenEndpointAuthMethod,
		Reference: q.req.Reference, SwitchURL: h.switchURL(q.req.ID),
	}
	p.Goes, p.GoesTo, p.Scheme = registration.DescribeRedirect(q.req.RedirectURI)
	p.Warning = warning(h.o.Issuer, &q.client, q.req.RedirectURI, p.Goes)
	return p
}

// before returns which scopes this person allowed this client earlier, at this
// redirect URI and resource; a client whose metadata changed since starts anew.
func (h *Handler) before(ctx context.Context, q question) (func(scope string) bool, error) {
	row, err := h.o.Consents.GetConsent(ctx, q.sess.Subject, q.client.ID, q.req.RedirectURI, q.req.Resource)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("earlier consent: %w", err)
	}
	if err != nil || row.DocumentHash != q.client.DocumentHash {
		return func(string) bool { return false }, nil
	}
	return func(scope string) bool { return q.res.Covers(row.Scopes, scope) }, nil
}

// warning chooses the amber box (D32). Any program of this computer can listen
// on a loopback port or claim a scheme, whoever the client says it is.
func warning(issuer string, c *registration.Client, redirectURI string, goes web.Destination) web.Warning {
	if goes != web.DestinationWebsite {
		return web.WarningLoopback
	}
	host := hostOf(redirectURI)
	if c.Trusted() || registration.IsKnownRedirectHost(host) || sameSite(host, hostOf(issuer)) {
		return ""
	}
	return web.WarningOtherSite
}

// sameSite reports whether two hosts belong to one registrable domain, or are equal.
func sameSite(a, b string) bool {
	if a == b {
		return a != ""
	}
	siteA, errA := publicsuffix.EffectiveTLDPlusOne(a)
	siteB, errB := publicsuffix.EffectiveTLDPlusOne(b)
	return errA == nil && errB == nil && siteA == siteB
}

func hostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

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
