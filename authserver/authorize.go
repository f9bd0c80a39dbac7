package authserver

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// maxState is the longest state that is echoed (A31 asks for at least 4 KiB).
const maxState = 8 << 10

// asked is an authorization request whose client and redirect URI are proven.
type asked struct {
	params      oauth.Params
	client      *registration.Client
	redirectURI string
	session     *flow.Session // nil without one
}

// handleAuthorizePost serves POST /authorize (OpenID Connect Core §3.1.2.1) by
// turning it into the GET: a cross-site POST comes without our cookies
// (SameSite=Lax), and the navigation that follows brings them.
func (s *Server) handleAuthorizePost(w http.ResponseWriter, r *http.Request) error {
	params, err := oauth.FormParams(r)
	if err != nil {
		return err
	}
	if r.URL.RawQuery != "" {
		return oauth.InvalidRequest("parameters belong in the body, not in the query string")
	}
	http.Redirect(w, r, s.base+pathAuthorize+"?"+url.Values(params).Encode(), http.StatusSeeOther)
	return nil
}

// handleAuthorize serves GET /authorize. What is wrong before the redirect URI
// is proven gets a page; afterwards the client may be told (D14).
func (s *Server) handleAuthorize(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	a, err := s.prove(r)
	if err != nil {
		return err
	}
	req, err := s.validate(ctx, a)
	if err != nil {
		return s.refuse(w, r, a, err)
	}
	if endpoint.LooksOnly(w, r) {
		return nil
	}
	if slices.Contains(req.Prompt, "none") {
		return s.withoutPages(w, r, a, req)
	}
	if a.session == nil {
		if a.session, err = s.o.Sessions.Ensure(w, r); err != nil {
			return err
		}
	}
	next, err := s.begin(ctx, a, req)
	if err != nil {
		return err
	}
	if next.issue || next.refusal != nil {
		return s.leaveAtOnce(w, r, a, req, next)
	}
	http.Redirect(w, r, next.page, http.StatusSeeOther)
	return nil
}

// begin stores the request and decides its first step.
func (s *Server) begin(ctx context.Context, a *asked, req *flow.AuthorizationRequest) (nextStep, error) {
	if err := s.keep(ctx, a, req); err != nil {
		return nextStep{}, err
	}
	return s.decide(ctx, req, a.client, a.session)
}

// keep stores the request for this browser session.
func (s *Server) keep(ctx context.Context, a *asked, req *flow.AuthorizationRequest) error {
	req.SessionID = a.session.ID
	created, err := s.o.Requests.CreateRequest(ctx, *req, s.o.MaxOpenRequests)
	if err != nil {
		return err
	}
	if !created {
		return oauth.TooManyRequests(time.Minute)
	}
	return nil
}

// prove finds the client and the redirect URI. Until both are certain nothing
// is sent anywhere (RFC 6749 §4.1.2.1; AR-01 to AR-04, RU-20).
func (s *Server) prove(r *http.Request) (*asked, error) {
	params, err := oauth.QueryParams(r)
	if err != nil {
		return nil, err
	}
	for _, name := range params.Repeated() {
		// neither the first nor the last value wins (AR-03)
		if name == "client_id" || name == "redirect_uri" {
			return nil, oauth.InvalidRequest("%s is sent more than once", name)
		}
	}
	id := params.Get("client_id")
	if id == "" {
		return nil, oauth.InvalidRequest("client_id is missing")
	}
	client, err := s.o.Resolver.Resolve(r.Context(), id)
	if err != nil {
		return nil, clientPage(id, err)
	}
	if !client.Enabled() {
		return nil, &endpoint.PageError{Status: http.StatusBadRequest, Page: web.Error{Case: web.CaseClientDisabled,
			Client: describe(client), ClientID: id}}
	}
	a := &asked{params: params, client: client}
	if a.redirectURI, err = provenRedirectURI(client, params); err != nil {
		return nil, redirectPage(client, params, err)
	}
	a.session, err = s.o.Sessions.Current(r)
	return a, err
}

// provenRedirectURI applies OAuth 2.1 §4.1.1: the one sent must match a
// registered one; it may be left out only when there is exactly one.
func provenRedirectURI(c *registration.Client, p oauth.Params) (string, error) {
	registered := c.Metadata.RedirectURIs
	if !p.Has("redirect_uri") {
		if len(registered) != 1 {
			return "", oauth.InvalidRequest("redirect_uri is missing and the client registered more than one")
		}
		return registration.MatchRedirectURI(registered, registered[0])
	}
	return registration.MatchRedirectURI(registered, p.Get("redirect_uri"))
}

func describe(c *registration.Client) *web.Client {
	d := registration.Describe(c)
	return &d
}

// redirectPage is the stop for a redirect URI that is not registered.
func redirectPage(c *registration.Client, p oauth.Params, err error) error {
	page := web.Error{Case: web.CaseRedirectURI, Client: describe(c), ClientID: c.ID, Received: p.Get("redirect_uri"),
		Code: "invalid_request: redirect_uri does not match a registered value"}
	if from, ok := registration.DescribeOrigin(c); ok {
		page.From = &from
	}
	if u, parseErr := url.Parse(page.Received); parseErr == nil && u.Host != "" {
		host := web.NewHost(page.Received)
		page.AskedFor = &host
	}
	for _, uri := range c.Metadata.RedirectURIs {
		_, host, _ := registration.DescribeRedirect(uri)
		if !slices.Contains(page.Registered, host) {
			page.Registered = append(page.Registered, host)
		}
	}
	return &endpoint.PageError{Status: http.StatusBadRequest, Page: page, Err: err}
}

// validate checks everything else and returns the request to store. Its errors
// belong to the client.
func (s *Server) validate(ctx context.Context, a *asked) (*flow.AuthorizationRequest, error) {
	p := a.params
	if err := checkParams(p); err != nil {
		return nil, err
	}
	if !a.client.MayUseGrant(registration.GrantAuthorizationCode) {
		return nil, oauth.UnauthorizedClient("the client is not registered for authorization_code")
	}
	if err := oauth.CheckCodeChallenge(p.Get("code_challenge"), p.Get("code_challenge_method")); err != nil {
		return nil, err
	}
	asked, err := oauth.ParseScope(p.Get("scope"))
	if err != nil {
		return nil, err
	}
	res, err := s.o.Resources.Find(ctx, p.All("resource"))
	if err != nil {
		return nil, err
	}
	if !a.client.MayUseResource(res.Canonical) {
		return nil, oauth.InvalidTarget("the client may not ask for this resource")
	}
	scopes, err := res.Narrow(asked, a.client.Trusted(), a.client.ScopeLimit())
	if err != nil {
		return nil, err
	}
	if _, err := s.newAuthorizeRequest(ctx, p, &fositeClient{c: a.client, redirectURI: a.redirectURI, scopes: scopes}, res.Identifier); err != nil {
		return nil, err
	}
	anew, err := s.signInAnew(a)
	if err != nil {
		return nil, err
	}
	req := s.newRequest(ctx, a, res, scopes, slices.Contains(asked, oauth.OfflineAccess))
	if anew {
		req.Prompt = append(req.Prompt, flow.PromptLogin)
	}
	return req, nil
}

// signInAnew reports whether max_age asks for a new sign-in: the person's last
// one is longer ago, in seconds (OpenID Connect Core §3.1.2.1).
func (s *Server) signInAnew(a *asked) (bool, error) {
	raw := a.params.Get("max_age")
	if raw == "" {
		return false, nil
	}
	seconds, err := strconv.ParseUint(raw, 10, 31)
	if err != nil {
		return false, oauth.InvalidRequest("max_age must be a number of seconds")
	}
	return s.o.Now().Sub(a.session.SignedInAt()) > time.Duration(seconds)*time.Second, nil
}

// checkParams applies what needs no state.
func checkParams(p oauth.Params) error {
	if len(p.Repeated()) > 0 {
		// AR-08; the name is the sender's text and not repeated (LG-03)
		return oauth.InvalidRequest("a parameter is sent more than once")
	}
	// OAuth 2.1 §3.1: a parameter without a value counts as omitted
	switch {
	case p.Get("request") != "":
		return &oauth.Error{Code: "request_not_supported", Description: "request objects are not supported"}
	case p.Get("request_uri") != "":
		return &oauth.Error{Code: "request_uri_not_supported", Description: "request_uri is not supported"}
	case p.Get("response_type") == "":
		return oauth.InvalidRequest("response_type is missing")
	case p.Get("response_type") != "code":
		return oauth.UnsupportedResponseType("response_type must be code")
	case p.Get("response_mode") != "" && p.Get("response_mode") != "query":
		return oauth.InvalidRequest("response_mode must be query")
	case len(p.Get("state")) > maxState:
		return oauth.InvalidRequest("state is longer than %d bytes", maxState)
	}
	prompts := strings.Fields(p.Get("prompt"))
	if len(prompts) > 1 && slices.Contains(prompts, "none") {
		return oauth.InvalidRequest("prompt=none excludes other prompt values")
	}
	return nil
}

// storedParams are what is validated again before the code is issued.
var storedParams = []string{"response_type", "code_challenge", "code_challenge_method"}

func (s *Server) newRequest(ctx context.Context, a *asked, res resource.Resource, scopes []string, offline bool) *flow.AuthorizationRequest {
	now := s.o.Now()
	req := &flow.AuthorizationRequest{
		ID: randomID(), Reference: reference(), Source: audit.SourceFrom(ctx).Class(),
		ClientID: a.client.ID, RedirectURI: a.redirectURI, Resource: res.Identifier,
		Scopes: scopes, OfflineNamed: offline, State: a.params.Get("state"), HasState: a.params.Has("state"),
		Prompt: strings.Fields(a.params.Get("prompt")), CodeChallenge: a.params.Get("code_challenge"),
		Params: url.Values{}, CreatedAt: now, ExpiresAt: now.Add(flow.RequestIdle),
	}
	for _, name := range storedParams {
		req.Params.Set(name, a.params.Get(name))
	}
	return req
}

// withoutPages serves prompt=none: a response at once, or an error (OpenID
// Connect Core §3.1.2.6, AR-11).
func (s *Server) withoutPages(w http.ResponseWriter, r *http.Request, a *asked, req *flow.AuthorizationRequest) error {
	if req.NeedsSignIn(a.session) {
		return s.refuse(w, r, a, oauth.LoginRequired("the person has to sign in"))
	}
	// decided first: a request that no page will finish is not stored
	next, err := s.decide(r.Context(), req, a.client, a.session)
	if err != nil {
		return err
	}
	if !next.issue {
		return s.refuse(w, r, a, oauth.ConsentRequired("the person has to be asked"))
	}
	if err := s.keep(r.Context(), a, req); err != nil {
		return err
	}
	return s.leaveAtOnce(w, r, a, req, next)
}

// leaveAtOnce issues the code and sends the browser to the client: the one
// redirect to a foreign origin, from a GET that shows no page (D15).
func (s *Server) leaveAtOnce(w http.ResponseWriter, r *http.Request, a *asked, req *flow.AuthorizationRequest, next nextStep) error {
	out, err := s.finish(r.Context(), req, a.client, a.session, next)
	if gone := errors.Is(err, errSessionGone); gone || errors.Is(err, errConsentGone) {
		return s.withdrawn(w, r, a, req, gone)
	}
	if err == nil && next.refusal != nil {
		err = next.refusal
	}
	if err != nil {
		return s.refuse(w, r, a, err)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", responseURL(req.RedirectURI, s.successParams(req, out.code)))
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// withdrawn goes on where what a code without pages rested on went away
// meanwhile: as if it had not been there.
func (s *Server) withdrawn(w http.ResponseWriter, r *http.Request, a *asked, req *flow.AuthorizationRequest, session bool) error {
	switch {
	case !slices.Contains(req.Prompt, "none"):
		http.Redirect(w, r, flow.ContinueURL(s.base, req.ID), http.StatusSeeOther)
		return nil
	case session:
		return s.refuse(w, r, a, oauth.LoginRequired("the person has to sign in"))
	}
	return s.refuse(w, r, a, oauth.ConsentRequired("the person has to be asked"))
}

// refuse answers an error that belongs to the client. Only a client that the
// operator knows, or that this person approved before, gets an automatic
// redirect; everybody else gets a page with a button, so that nobody can bounce
// a person through us to a page of theirs (D14, AR-18, RFC 9700 §4.11.2).
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, a *asked, err error) error {
	var oe *oauth.Error
	if !errors.As(err, &oe) || oe.HTTPStatus() >= 500 || oe.HTTPStatus() == http.StatusTooManyRequests {
		return err
	}
	target := responseURL(a.redirectURI, errorParams(s.o.Issuer, oe, a.params.Get("state"), a.params.Has("state")))
	known, kerr := s.knownTo(r.Context(), a.client, a.session, a.redirectURI)
	if kerr != nil {
		return kerr
	}
	if known {
		s.o.Log.InfoContext(r.Context(), "authorization request refused", "event", "authorization.refused",
			"client_id", a.client.ID, "error", oe.Code)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Location", target)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	_, host, _ := registration.DescribeRedirect(a.redirectURI)
	return &endpoint.PageError{Status: http.StatusBadRequest, Err: oe, Page: web.Error{Case: caseOf(oe),
		Client: describe(a.client), ClientID: a.client.ID, Code: oe.Code + ": " + oe.Description,
		ReturnURL: target, ReturnHost: host.Before + host.Bold}}
}

// knownTo reports whether the operator vouches for the client, or this person
// approved it before at this redirect URI (D14).
func (s *Server) knownTo(ctx context.Context, c *registration.Client, sess *flow.Session, redirectURI string) (bool, error) {
	if c.Trusted() || !sess.SignedIn() {
		return c.Trusted(), nil
	}
	return s.o.Consents.HasConsent(ctx, sess.Subject, c.ID, redirectURI)
}

func caseOf(e *oauth.Error) web.ErrorCase {
	switch e.Code {
	case "invalid_target":
		return web.CaseResource
	case "invalid_scope":
		return web.CaseScope
	}
	return web.CaseClientError
}

// randomID returns 128 random bits in base64url.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// reference returns what a person can read to a help desk, "7Q4M-2KXD".
func reference() string {
	t := rand.Text()
	return t[:4] + "-" + t[4:8]
}
