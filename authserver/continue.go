package authserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// nextStep is what the dispatcher decided.
type nextStep struct {
	// page is the path and query of the page to show, when issue is false and
	// refusal is nil.
	page string
	// issue says that a code may be issued, for scopes and with or without a
	// refresh token; answered tells a person's answer from a remembered one.
	issue         bool
	answered      bool
	scopes        []string
	stayConnected bool
	// extends says that the answer rests on a remembered consent, which it adds to.
	extends bool
	// refusal is the answer when the person said no, now or before.
	refusal *oauth.Error
}

// decide is THE dispatcher: from stored state alone it says what comes next for
// an unfinished request. Sign-in and consent return here and never go to one
// another.
func (s *Server) decide(ctx context.Context, req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session) (nextStep, error) {
	switch {
	case !sess.SignedIn():
		return nextStep{page: s.pageURL(pathSignIn, req.ID)}, nil
	case req.NeedsSignIn(sess):
		return nextStep{page: s.pageURL(pathSignIn, req.ID) + "&confirm=1"}, nil
	case req.Decision != "" && req.DecidedBy != sess.Subject:
		return nextStep{}, stopped(http.StatusBadRequest, web.CaseExpired, req)
	case req.Decision == flow.DecisionDeny:
		return nextStep{answered: true, refusal: oauth.AccessDenied("the person did not allow it")}, nil
	case req.Decision == flow.DecisionAllow:
		return nextStep{issue: true, answered: true, extends: req.ExtendsConsent, scopes: req.ApprovedScopes, stayConnected: req.StayConnected}, nil
	}
	return s.recall(ctx, req, c, sess)
}

func (s *Server) pageURL(path, requestID string) string {
	return s.base + path + "?" + url.Values{"request": {requestID}}.Encode()
}

// handleContinue serves GET /authorize/continue, to which every step returns.
// It ends in a redirect to one of our own pages, never to a foreign origin (D15).
func (s *Server) handleContinue(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	params, err := oauth.QueryParams(r)
	if err != nil {
		return err
	}
	sess, err := s.o.Sessions.Current(r)
	if err != nil {
		return err
	}
	req, err := s.openRequest(ctx, params.Get("request"), sess)
	if err != nil {
		return err
	}
	if !req.FinishedAt.IsZero() {
		return s.alreadyAnswered(req)
	}
	if endpoint.LooksOnly(w, r) {
		return nil
	}
	// the row: its document was read, where there is one, when the request came
	row, err := s.o.Clients.GetClient(ctx, req.ClientID)
	if err != nil {
		return clientPage(req.ClientID, err)
	}
	client := &row
	if !client.Enabled() {
		return stopped(http.StatusBadRequest, web.CaseClientDisabled, req)
	}
	// what the client gave up since may be somebody else's by now (DR-16)
	if _, err := registration.MatchRedirectURI(client.Metadata.RedirectURIs, req.RedirectURI); err != nil {
		return redirectPage(client, oauth.Params{"redirect_uri": {req.RedirectURI}}, err)
	}
	next, err := s.decide(ctx, req, client, sess)
	if err != nil {
		return err
	}
	to := next.page
	if next.issue || next.refusal != nil {
		out, err := s.finish(ctx, req, client, sess, next)
		switch {
		case errors.Is(err, errSessionGone), errors.Is(err, errApprovalGone):
			return stopped(http.StatusBadRequest, web.CaseExpired, req)
		case errors.Is(err, errConsentGone): // decided again: the person is asked
			to = flow.ContinueURL(s.base, req.ID)
		case err != nil:
			return s.stopAfterPages(err, req)
		default:
			to = s.base + pathReturn + "/" + out.once
		}
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// openRequest finds a request of this browser session that has not expired.
func (s *Server) openRequest(ctx context.Context, id string, sess *flow.Session) (*flow.AuthorizationRequest, error) {
	req, err := s.o.Requests.GetRequest(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, stopped(http.StatusBadRequest, web.CaseExpired, nil)
	}
	if err != nil {
		return nil, err
	}
	if sess == nil {
		// the link of another browser, or no cookies at all (CS-05, CS-07)
		return nil, stopped(http.StatusForbidden, web.CaseNoCookie, nil)
	}
	if req.SessionID != sess.ID {
		return nil, stopped(http.StatusForbidden, web.CaseForbidden, nil)
	}
	if !s.o.Now().Before(req.ExpiresAt) && req.FinishedAt.IsZero() {
		return nil, stopped(http.StatusBadRequest, web.CaseExpired, &req)
	}
	return &req, nil
}

// alreadyAnswered stops a replay (AR-15); the way back, where it still works, is
// a button.
func (s *Server) alreadyAnswered(req *flow.AuthorizationRequest) error {
	err := stopped(http.StatusBadRequest, web.CaseAnswered, req)
	if s.o.Now().Sub(req.FinishedAt) < s.o.CodeLifetime {
		_, host, _ := registration.DescribeRedirect(req.RedirectURI)
		// absolute: the page takes no other link for a way out
		err.Page.ReturnURL, err.Page.ReturnHost = s.o.Issuer+pathReturn+"/"+s.once(req.ID), host.Before+host.Bold
	}
	return err
}

// stopAfterPages shows an error that appeared after the person answered: the
// client or the resource went away meanwhile.
func (s *Server) stopAfterPages(err error, req *flow.AuthorizationRequest) error {
	var oe *oauth.Error
	if !errors.As(err, &oe) || oe.HTTPStatus() >= 500 {
		return err
	}
	stop := stopped(http.StatusBadRequest, caseOf(oe), req)
	stop.Page.Code, stop.Err = oe.Code+": "+oe.Description, oe
	return stop
}

func stopped(status int, c web.ErrorCase, req *flow.AuthorizationRequest) *endpoint.PageError {
	e := &endpoint.PageError{Status: status, Page: web.Error{Case: c}}
	if req != nil {
		e.Page.ClientID = req.ClientID
	}
	return e
}
