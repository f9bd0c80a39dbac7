package authserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// handleReturn serves GET /return/{once}: the page that leaves this origin with
// a Refresh header and a button, since browsers apply form-action to every
// redirect after a form (pages.md §3.1, D15).
func (s *Server) handleReturn(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	req, sess, err := s.returning(r)
	if err != nil {
		return err
	}
	page := web.Return{Frame: web.Frame{Account: sess.Email}, Allowed: req.GrantID != ""}
	client, err := s.o.Clients.GetClient(ctx, req.ClientID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil {
		page.Client = registration.Describe(&client)
	}
	goes, host, _ := registration.DescribeRedirect(req.RedirectURI)
	page.Goes, page.Host = goes, host.Before+host.Bold
	if page.URL, err = s.returnURL(ctx, req); err != nil {
		return err
	}
	if page.URL == "" {
		page.Spent = true
		return s.o.Pages.Write(w, r, http.StatusOK, page)
	}
	if endpoint.LooksOnly(w, r) {
		return nil
	}
	known, err := s.knownTo(ctx, &client, sess, req.RedirectURI)
	if err != nil {
		return err
	}
	first, err := s.o.Requests.MarkReturned(ctx, req.ID, s.o.Now())
	if err != nil {
		return err
	}
	if delay, ok := automatic(req, known, goes); ok && first {
		page.Automatic = true
		w.Header().Set("Refresh", fmt.Sprintf("%d; url=%s", delay, page.URL))
	}
	return s.o.Pages.Write(w, r, http.StatusOK, page)
}

// returning finds the finished request of this browser session.
func (s *Server) returning(r *http.Request) (*flow.AuthorizationRequest, *flow.Session, error) {
	sess, err := s.o.Sessions.Current(r)
	if err != nil {
		return nil, nil, err
	}
	req, err := s.o.Requests.GetRequestByOnce(r.Context(), onceHash(r.PathValue("once")))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, stopped(http.StatusNotFound, web.CaseExpired, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	if sess == nil {
		return nil, nil, stopped(http.StatusForbidden, web.CaseNoCookie, nil)
	}
	if req.SessionID != sess.ID {
		return nil, nil, stopped(http.StatusForbidden, web.CaseForbidden, nil)
	}
	return &req, sess, nil
}

// returnURL derives where the button leads, or "" when there is nothing left to
// bring: the code is redeemed, ended or expired, or the error is too old.
func (s *Server) returnURL(ctx context.Context, req *flow.AuthorizationRequest) (string, error) {
	now := s.o.Now()
	if now.Sub(req.FinishedAt) >= max(s.o.CodeLifetime, time.Minute) {
		return "", nil
	}
	if req.GrantID == "" {
		e := &oauth.Error{Code: req.ErrorCode, Description: req.ErrorDescription}
		return responseURL(req.RedirectURI, errorParams(s.o.Issuer, e, req.State, req.HasState)), nil
	}
	g, err := s.o.Grants.GetGrant(ctx, req.GrantID)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if g.Generation > 0 || !g.Live(now) {
		return "", nil
	}
	code, err := s.tokens.mint(g.ID, 0, g.Salt)
	if err != nil {
		return "", err
	}
	return responseURL(req.RedirectURI, s.successParams(req, code)), nil
}

// automatic says whether the Refresh header may be sent, and its delay in
// seconds. An app's own scheme gets a moment to be read and is never opened by
// an error (D12); after "Don't allow" a client that is not known gets a button
// unless a program on this computer waits for the answer (D14).
func automatic(req *flow.AuthorizationRequest, known bool, goes web.Destination) (int, bool) {
	allowed := req.GrantID != ""
	switch {
	case goes == web.DestinationApp:
		return 1, allowed
	case goes == web.DestinationLoopback:
		return 0, true
	}
	return 0, allowed || known
}
