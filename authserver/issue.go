package authserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// errAnswered reports that another request finished the same authorization
// request first.
var errAnswered = errors.New("authorization request is already finished")

// Between the decision and its execution what it rested on may go away.
var (
	errSessionGone = errors.New("the session ended meanwhile")
	errConsentGone = errors.New("the remembered consent, or the client as it was, is gone")
	// errApprovalGone is of an answer: its request cannot be asked again.
	errApprovalGone = errors.New("the consent that the approval adds to is gone")
)

// outcome is what finish made.
type outcome struct {
	code oauth.Secret // "" after a refusal
	once string
}

// issueKey carries what the code issuer needs through fosite.
type issueKey struct{}

type issueState struct {
	req  *flow.AuthorizationRequest
	c    *registration.Client
	sess *flow.Session
	next nextStep
	now  time.Time
	code oauth.Secret
}

// finish ends a request, once: it creates the grant whose generation 0 is the
// code, or records the refusal, together with the remembered consent and the
// audit event, in one transaction.
func (s *Server) finish(ctx context.Context, req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session, next nextStep) (outcome, error) {
	out := outcome{once: s.once(req.ID)}
	now := s.o.Now()
	err := s.o.Tx.InTx(ctx, func(ctx context.Context) error {
		if err := s.hold(ctx, req, c, sess, next, now); err != nil {
			return err
		}
		result := flow.Outcome{OnceHash: onceHash(out.once), Now: now}
		if next.refusal != nil {
			result.ErrorCode, result.ErrorDescription = next.refusal.Code, next.refusal.Description
		} else {
			st := &issueState{req: req, c: c, sess: sess, next: next, now: now}
			id, err := s.issueCode(ctx, st)
			if err != nil {
				return err
			}
			result.GrantID, out.code = id, st.code
		}
		done, err := s.o.Requests.FinishRequest(ctx, req.ID, sess.ID, result)
		if err != nil {
			return err
		}
		if !done {
			return errAnswered
		}
		return s.record(ctx, req, c, sess, next, result, now)
	})
	if errors.Is(err, errAnswered) {
		return outcome{}, stopped(http.StatusBadRequest, web.CaseAnswered, req)
	}
	return out, err
}

// hold looks again, inside the transaction, at what the answer rests on: the
// person's session, the client, and the remembered consent when nobody was
// asked. Whoever ends sessions, removes clients or forgets consents does so
// before ending grants, so either that comes first and nothing is issued, or the
// new grant is there to be ended with the others (SL-10, RT-11, D10). Every
// transaction takes rows in the order account, session, client, consent, grant,
// request, so that none waits for another in a circle; the consent of an answer
// comes last here, since nobody else knows the new grant.
func (s *Server) hold(ctx context.Context, req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session, next nextStep, now time.Time) error {
	live, err := s.o.SessionRows.HoldSession(ctx, sess.ID, sess.Subject, now)
	if err != nil {
		return err
	}
	switch {
	case !live:
		return errSessionGone
	case next.refusal != nil:
		return nil
	}
	if err := s.holdClient(ctx, c, now); err != nil {
		return err
	}
	switch {
	case next.extends:
		return s.holdExtended(ctx, req, c, sess)
	case next.answered:
		return nil
	}
	return s.holdRemembered(ctx, req, c, sess)
}

// holdClient makes the client's row stay as it is, unless it is another than the
// decision was about.
func (s *Server) holdClient(ctx context.Context, c *registration.Client, now time.Time) error {
	if err := s.o.Clients.TouchClient(ctx, c.ID, now); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return clientPage(c.ID, err)
		}
		return err
	}
	held, err := s.o.Clients.GetClient(ctx, c.ID)
	if err != nil {
		return err
	}
	if held.DocumentHash != c.DocumentHash || !held.Enabled() {
		return errConsentGone
	}
	return nil
}

// issueCode lets fosite validate the stored parameters again and drive the code
// issuer.
func (s *Server) issueCode(ctx context.Context, st *issueState) (string, error) {
	if _, err := s.o.Resources.ByIdentifier(ctx, st.req.Resource); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return "", oauth.InvalidTarget("the resource is no longer registered")
		}
		return "", err
	}
	fc := &fositeClient{c: st.c, redirectURI: st.req.RedirectURI, scopes: st.next.scopes}
	ar, err := s.newAuthorizeRequest(ctx, oauth.Params(st.req.Params), fc, st.req.Resource)
	if err != nil {
		return "", err
	}
	for _, scope := range st.next.scopes {
		ar.GrantScope(scope)
	}
	ar.GrantAudience(st.req.Resource)
	resp, err := s.provider.NewAuthorizeResponse(context.WithValue(ctx, issueKey{}, st), ar, &session{})
	if err != nil {
		return "", fromFosite(err)
	}
	return resp.GetParameters().Get(grantIDParam), nil
}

// grantIDParam carries the new grant's id out of fosite; it is never sent.
const grantIDParam = "grant_id"

// codeIssuer is the fosite handler that creates the grant.
type codeIssuer struct{ s *Server }

// HandleAuthorizeEndpointRequest implements fosite.AuthorizeEndpointHandler.
func (h *codeIssuer) HandleAuthorizeEndpointRequest(ctx context.Context, ar fosite.AuthorizeRequester, resp fosite.AuthorizeResponder) error {
	st, ok := ctx.Value(issueKey{}).(*issueState)
	if !ok || !ar.GetResponseTypes().ExactOne("code") {
		return nil
	}
	g, err := h.s.newGrant(st, ar.GetGrantedScopes())
	if err != nil {
		return err
	}
	if err := h.s.o.Grants.CreateGrant(ctx, g); err != nil {
		return err
	}
	if st.code, err = h.s.tokens.mint(g.ID, 0, g.Salt); err != nil {
		return err
	}
	resp.AddParameter(grantIDParam, g.ID)
	ar.SetResponseTypeHandled("code")
	return nil
}

// newGrant is the row of one approval (D10).
func (s *Server) newGrant(st *issueState, scopes []string) (grant.Grant, error) {
	raw := make([]byte, grantIDBytes+32)
	if _, err := rand.Read(raw); err != nil {
		return grant.Grant{}, fmt.Errorf("random grant id: %w", err)
	}
	absolute := s.o.RefreshAbsolute
	if !st.c.Trusted() && registration.IsLoopbackRedirect(st.req.RedirectURI) {
		absolute = min(absolute, s.o.LoopbackRefreshAbsolute)
	}
	return grant.Grant{
		ID: hex.EncodeToString(raw[:grantIDBytes]), Salt: raw[grantIDBytes:],
		ClientID: st.c.ID, Subject: st.sess.Subject, Resource: st.req.Resource, Scopes: slices.Clone(scopes),
		OfflineAccess: st.next.stayConnected && st.c.MayUseGrant(registration.GrantRefreshToken),
		OfflineNamed:  st.req.OfflineNamed, RedirectURI: st.req.RedirectURI, CodeChallenge: st.req.CodeChallenge,
		AuthTime: st.sess.AuthTime, CreatedAt: st.now, CodeExpiresAt: st.now.Add(s.o.CodeLifetime),
		ExpiresAt: st.now.Add(absolute),
	}, nil
}

// record keeps what a person's answer leaves behind: the remembered decision and
// an audit event.
func (s *Server) record(ctx context.Context, req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session,
	next nextStep, result flow.Outcome, now time.Time) error {
	event := audit.Event{Name: "consent.granted", Actor: sess.Subject, Subject: sess.Subject, ClientID: c.ID,
		Resource: req.Resource, GrantID: result.GrantID, Detail: map[string]string{"scope": strings.Join(next.scopes, " ")}}
	switch {
	case next.refusal != nil && next.answered:
		event.Name, event.Outcome, event.Detail = "consent.denied", "denied", nil
	case next.refusal != nil:
		event.Name, event.Outcome, event.Detail = "consent.denied_again", "denied", map[string]string{"scope": strings.Join(req.Scopes, " ")}
	case !next.answered:
		event.Name = "consent.remembered"
	}
	if next.answered && next.refusal == nil {
		added, err := s.remember(ctx, req, c, sess, next, now)
		if err != nil {
			return err
		}
		if next.extends {
			event.Detail["added"] = strings.Join(added, " ")
		}
	}
	return s.o.Audit.Append(ctx, audit.New(ctx, now, event))
}

// remember unites the answer with what this person allowed this client here
// before, and returns the scopes that it added.
func (s *Server) remember(ctx context.Context, req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session, next nextStep, now time.Time) ([]string, error) {
	row := consent.Consent{Subject: sess.Subject, ClientID: c.ID, RedirectURI: req.RedirectURI, Resource: req.Resource,
		Scopes: slices.Clone(next.scopes), StayConnected: next.stayConnected, DocumentHash: c.DocumentHash,
		CreatedAt: now, UpdatedAt: now}
	if c.UpdatedAt.After(req.DecidedAt) {
		row.DocumentHash = "" // the person has not seen what the client says now (CI-17)
	}
	// held, or what a disconnect forgets meanwhile would come back with the union
	before, err := s.o.Consents.HoldConsent(ctx, row.Subject, row.ClientID, row.RedirectURI, row.Resource)
	switch {
	case err == nil && before.DocumentHash == row.DocumentHash:
		for _, scope := range before.Scopes {
			if !slices.Contains(row.Scopes, scope) {
				row.Scopes = append(row.Scopes, scope)
			}
		}
		row.StayConnected = row.StayConnected || next.extends && before.StayConnected
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	added := slices.DeleteFunc(slices.Clone(next.scopes), func(s string) bool { return slices.Contains(before.Scopes, s) })
	return added, s.o.Consents.PutConsent(ctx, row)
}

// once is the last segment of a request's return URL: 128 bits derived from the
// request, so that a reload finds its way without the value being stored (D15).
func (s *Server) once(requestID string) string {
	h := hmac.New(sha256.New, s.onceKey())
	h.Write([]byte("return"))
	h.Write([]byte(requestID))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

func (s *Server) onceKey() []byte {
	key, err := s.o.Secrets.Derive(s.o.Secrets.MintKID(), keys.PurposeReturn)
	if err != nil {
		panic(err) // the minting key is there since LoadOrCreate
	}
	return key
}

func onceHash(once string) string {
	sum := sha256.Sum256([]byte(once))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

var _ fosite.AuthorizeEndpointHandler = (*codeIssuer)(nil)
