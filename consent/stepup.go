package consent

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/web"
)

// More is what a request asks beyond a remembered decision: the step-up page
// asks for that alone (pages.md 4.3).
type More struct {
	// Consent is the remembered decision.
	Consent Consent
	// Scopes are the new ones, in the order requested: nothing that was allowed
	// covers them.
	Scopes []string
	// StayConnected says that refresh tokens are asked for and were not allowed.
	StayConnected bool
}

// Beyond returns what r asks beyond the remembered decision, or nil: when it
// covers all of r, and when it decides nothing for r, because it is about another
// person, client, redirect URI or resource, or the client changed since; Covers
// tells which. An allowed scope covers those it implies (D13).
func (c *Consent) Beyond(res resource.Resource, r Request) *More {
	if !c.decides(r) {
		return nil
	}
	m := &More{Consent: *c, StayConnected: r.StayConnected && !c.StayConnected}
	for _, s := range r.Scopes {
		if !res.Covers(c.Scopes, s) {
			m.Scopes = append(m.Scopes, s)
		}
	}
	if m.Count() == 0 {
		return nil
	}
	return m
}

// Count is how many permissions are new.
func (m *More) Count() int {
	if m.StayConnected {
		return len(m.Scopes) + 1
	}
	return len(m.Scopes)
}

// Refusal is the refusal of exactly this.
func (m *More) Refusal() Refusal {
	set := slices.Clone(m.Scopes)
	if m.StayConnected {
		set = append(set, oauth.OfflineAccess)
	}
	slices.Sort(set)
	return Refusal{Subject: m.Consent.Subject, ClientID: m.Consent.ClientID, RedirectURI: m.Consent.RedirectURI,
		Resource: m.Consent.Resource, Scopes: set}
}

// isNew reports whether a scope is one of those the page asks for.
func (m *More) isNew(s resource.Scope) bool { return slices.Contains(m.Scopes, s.Name) }

// beyond is what is left of the offer when the page asks for m alone. The
// permission that is the only new one has no checkbox: the buttons are the choice.
func (o offer) beyond(m *More) offer {
	old := func(s resource.Scope) bool { return !m.isNew(s) }
	step := offer{requested: o.requested, required: slices.DeleteFunc(slices.Clone(o.required), old),
		optional: slices.DeleteFunc(slices.Clone(o.optional), old)}
	for _, name := range o.requested {
		if !slices.Contains(m.Scopes, name) {
			step.kept = append(step.kept, name)
		}
	}
	if m.Count() == 1 {
		step.required, step.optional = append(step.required, step.optional...), nil
	}
	return step
}

// beyond returns what makes q a step-up page, nil for the full one: approvals of
// its client are not remembered (D11), there is none, or nothing is new.
func (q question) beyond() *More {
	if !q.remembers() {
		return nil
	}
	return q.earlier.Beyond(q.res, Request{Subject: q.sess.Subject, ClientID: q.client.ID, RedirectURI: q.req.RedirectURI,
		Resource: q.req.Resource, Scopes: q.offer.requested, StayConnected: q.req.OfflineNamed && q.stay,
		DocumentHash: q.client.DocumentHash})
}

// remembers reports whether an earlier approval is there and may be used (D11).
func (q question) remembers() bool {
	return q.earlier != nil && MayRemember(&q.client, q.req.RedirectURI)
}

// initial returns the choices a page begins with. On a step-up page all is
// ticked: what the person came for is new, and marked as such.
func (q question) initial() choices {
	return choices{ticked: q.offer.initial(q.client.Trusted() || q.more != nil), stay: q.choosesStay()}
}

// choosesStay reports whether "Stay connected" has a checkbox.
func (q question) choosesStay() bool {
	if q.more == nil {
		return q.stay
	}
	return q.more.StayConnected && q.more.Count() > 1
}

// stays returns whether refresh tokens are allowed by c: on a step-up page what
// was allowed stays so, and without a checkbox the buttons are the choice.
func (q question) stays(c choices) bool {
	switch {
	case q.more == nil, q.choosesStay():
		return c.stay
	case q.more.StayConnected:
		return true
	}
	return q.stay && q.more.Consent.StayConnected
}

// choosesAny reports whether an approval allows anything new.
func (q question) choosesAny(c choices) bool {
	return len(q.offer.required) > 0 || len(c.ticked) > 0 || q.more.StayConnected && q.stays(c)
}

// otherQuestion is the end of a form whose page asked something else than would
// be asked now: the remembered decision, the scopes or the client changed
// meanwhile. A refusal stands; an approval is of what the page showed, so it is
// asked for again, unless nothing is left to ask.
func (h *Handler) otherQuestion(w http.ResponseWriter, r *http.Request, q question, stepUp bool, d flow.Decision) error {
	switch {
	case d == flow.DecisionDeny:
		q.more = nil // the refusal is not of what is asked now: it does not count
		return h.record(w, r, q, d, choices{})
	case stepUp && q.more == nil && q.remembers() && !changed(q, q.earlier):
		return h.goOn(w, r, q.req.ID)
	}
	c := q.initial()
	c.anew = true
	return h.page(w, r, q, c)
}

// countRefusal counts the refusal of q, in the caller's transaction, unless what
// it is about was forgotten meanwhile.
func (h *Handler) countRefusal(ctx context.Context, q question, now time.Time) error {
	refused := q.more.Refusal()
	refused.RefusedAt = now
	_, err := h.o.Consents.HoldConsent(ctx, refused.Subject, refused.ClientID, refused.RedirectURI, refused.Resource)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.o.Consents.CountRefusal(ctx, refused, now.Add(-refusalWindow))
}

// stepUpPage is page p of a question that asks for more.
func stepUpPage(p web.Consent, q question, c choices) web.StepUp {
	never := func(string) bool { return false }
	p.Required, p.Groups = q.offer.words(true, c.ticked, never)
	s := web.StepUp{Consent: p, Count: q.more.Count(), StayNew: q.more.StayConnected, NewScopes: strings.Join(q.more.Scopes, " "),
		AllowedStay: q.more.Consent.StayConnected, AllowedSince: q.more.Consent.CreatedAt}
	for _, scope := range inOrder(q.res, q.more.Consent.Scopes) {
		s.Allowed = append(s.Allowed, permission(scope, never))
	}
	return s
}

// stepUpMark begins what a step-up page's form says of itself.
const stepUpMark = "more."

// about tells what the page of q shows, as far as an answer rests on it: all
// that a step-up page offers and takes for granted; of the full page the client,
// since its form names every choice.
func (q question) about() string {
	if q.more == nil {
		return q.client.DocumentHash
	}
	shown, err := json.Marshal([]any{q.client.ID, q.client.DocumentHash, q.offer.kept, q.offer.required, q.offer.optional,
		q.more.StayConnected, q.more.Consent.Scopes, q.more.Consent.StayConnected})
	if err != nil {
		panic(fmt.Sprintf("consent: marshal what a page shows: %v", err)) // strings and booleans
	}
	sum := sha256.Sum256(shown)
	return stepUpMark + base64.RawURLEncoding.EncodeToString(sum[:])
}

// isStepUp reports whether a form is a step-up page's.
func isStepUp(about string) bool { return strings.HasPrefix(about, stepUpMark) }

// formRef is what the form's token is about. That of a step-up page is signed
// with what it shows; that of the full page with the request, as its form was
// before there were two.
func formRef(requestID, about string) string {
	if isStepUp(about) {
		return requestID + " " + about
	}
	return requestID
}

// asksAs reports whether the form of a page that said about still is the
// question's. The full page compares the client later, and only for an approval.
func (q question) asksAs(about string) bool {
	return q.more == nil && !isStepUp(about) || about == q.about()
}
