package login

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/web"
)

// setupTail is how long after its sign-in the new operator may still take the
// second step of set-up.
const setupTail = 30 * time.Minute

// showSetup serves GET /setup (pages.md 4.8): with a live link the page with
// the button, and to the operator that set-up just made its second step. To
// everybody else it does not exist once there is an operator (SL-17).
func (h *Handler) showSetup(w http.ResponseWriter, r *http.Request) error {
	params, err := oauth.QueryParams(r)
	if err != nil {
		return err
	}
	over, err := h.o.Setup.HasOperator(r.Context())
	if err != nil {
		return err
	}
	if over {
		return h.showSetupServer(w, r)
	}
	link := params.Get("link")
	if err := h.checkLink(r.Context(), link); err != nil {
		return err
	}
	if endpoint.LooksOnly(w, r) {
		return nil
	}
	sess, err := h.o.Sessions.Ensure(w, r)
	if err != nil {
		return err
	}
	return h.o.Pages.Write(w, r, http.StatusOK,
		web.SetupStart{Frame: h.frame(sess), Link: link, Txn: h.o.Forms.Token(sess, purposeSetup, link)})
}

func (h *Handler) showSetupServer(w http.ResponseWriter, r *http.Request) error {
	sess, err := h.newOperator(r)
	if err != nil {
		return err
	}
	return h.writeSetupServer(w, r, http.StatusOK, sess, web.SetupServer{})
}

// setup serves POST /setup, whose field step says which form it was.
func (h *Handler) setup(w http.ResponseWriter, r *http.Request) error {
	params, err := endpoint.Form(r)
	if err != nil {
		return err
	}
	if params.Get("step") == "server" {
		return h.setupServer(w, r, params)
	}
	over, err := h.o.Setup.HasOperator(r.Context())
	if err != nil {
		return err
	}
	if over {
		return setupNotFound()
	}
	link := params.Get("link")
	sess, err := h.checkForm(r, purposeSetup, link, params)
	if err != nil {
		return err
	}
	if err := h.checkLink(r.Context(), link); err != nil {
		return err
	}
	switch params.Get("step") {
	case "start":
		return h.writeSetupAccount(w, r, http.StatusOK, sess, web.SetupAccount{Link: link})
	case "account":
		return h.setupAccount(w, r, sess, params)
	}
	return oauth.InvalidRequest("step must be start, account or server")
}

// checkLink refuses a link that is unknown, used or expired; nothing is said of which.
func (h *Handler) checkLink(ctx context.Context, link string) error {
	live := false
	if isRandom(link) {
		var err error
		if live, err = h.o.Setup.SetupLinkLive(ctx, hashOf("set-up link", link), h.o.Now()); err != nil {
			return err
		}
	}
	if !live {
		return deadLink()
	}
	return nil
}

// setupAccount makes the first operator and spends the link in one transaction,
// and signs the person in.
func (h *Handler) setupAccount(w http.ResponseWriter, r *http.Request, sess *flow.Session, params oauth.Params) error {
	n := NewUser{Email: strings.TrimSpace(params.Get("username")), Name: strings.TrimSpace(params.Get("name")),
		Password: oauth.Secret(params.Get("password")), Operator: true}
	link := params.Get("link")
	user, err := h.o.Accounts.prepare(r.Context(), n)
	if problems := problemsOf(err); len(problems) > 0 {
		return h.writeSetupAccount(w, r, http.StatusUnprocessableEntity, sess,
			web.SetupAccount{Link: link, Email: n.Email, Name: n.Name, Problems: problems})
	}
	if err != nil {
		return err
	}
	user.LastSignInAt = user.CreatedAt
	_, err = h.o.Sessions.SignIn(w, r, user, func(ctx context.Context) error {
		if err := h.spendLink(ctx, link); err != nil {
			return err
		}
		if err := h.o.Accounts.insert(ctx, user, user.ID); err != nil {
			return err
		}
		return h.o.Audit.Append(ctx, audit.New(ctx, h.o.Now(), audit.Event{Name: "user.signed_in", Actor: user.ID, Subject: user.ID}))
	})
	if errors.Is(err, store.ErrExists) {
		return h.writeSetupAccount(w, r, http.StatusUnprocessableEntity, sess, web.SetupAccount{Link: link, Email: n.Email,
			Name: n.Name, Problems: problemsOf(errEmailTaken())})
	}
	if err != nil {
		return err
	}
	return h.redirect(w, r, "/setup")
}

// spendLink uses the link up. That no operator exists is asked again
// afterwards: a link made while another was being used knows nothing of it.
func (h *Handler) spendLink(ctx context.Context, link string) error {
	used, err := h.o.Setup.UseSetupLink(ctx, hashOf("set-up link", link), h.o.Now())
	if err != nil {
		return err
	}
	over, err := h.o.Setup.HasOperator(ctx)
	if err != nil {
		return err
	}
	if !used || over {
		return deadLink()
	}
	return nil
}

// setupServer adds the first MCP server, or skips it.
func (h *Handler) setupServer(w http.ResponseWriter, r *http.Request, params oauth.Params) error {
	sess, err := h.newOperator(r)
	if err != nil {
		return err
	}
	if _, err := h.checkForm(r, purposeSetup, "", params); err != nil {
		return err
	}
	address, name := strings.TrimSpace(params.Get("url")), strings.TrimSpace(params.Get("name"))
	if params.Get("skip") != "" {
		return h.writeSetupDone(w, r, sess, "")
	}
	page := web.SetupServer{URL: address, Name: name}
	if page.Problems = problemsOf(CheckName(name)); page.Problems != nil {
		return h.writeSetupServer(w, r, http.StatusUnprocessableEntity, sess, page)
	}
	problem, err := h.addServer(r.Context(), address, name)
	if err != nil {
		return err
	}
	if problem != "" {
		page.Problems = []web.FieldProblem{{Field: "url", Message: problem}}
		return h.writeSetupServer(w, r, http.StatusUnprocessableEntity, sess, page)
	}
	return h.writeSetupDone(w, r, sess, address)
}

// addServer returns the catalogue's key of what is wrong with the address.
func (h *Handler) addServer(ctx context.Context, address, name string) (problem string, err error) {
	if address == "" {
		return web.ProblemURL, nil
	}
	err = h.o.AddResource(ctx, address, name)
	var refused *oauth.Error
	switch {
	case errors.Is(err, store.ErrExists):
		return web.ProblemURLTaken, nil
	case errors.As(err, &refused) && refused.HTTPStatus() < http.StatusInternalServerError:
		return web.ProblemURL, nil
	}
	return "", err
}

// newOperator returns the session of an operator who signed in a moment ago;
// for anybody else there is nothing here.
func (h *Handler) newOperator(r *http.Request) (*flow.Session, error) {
	sess, err := h.o.Sessions.Current(r)
	if err != nil {
		return nil, err
	}
	if !sess.SignedIn() || !sess.Operator || h.o.Now().Sub(sess.AuthTime) > setupTail {
		return nil, setupNotFound()
	}
	return sess, nil
}

func (h *Handler) writeSetupAccount(w http.ResponseWriter, r *http.Request, status int, sess *flow.Session, page web.SetupAccount) error {
	page.Frame, page.Txn = h.frame(sess), h.o.Forms.Token(sess, purposeSetup, page.Link)
	return h.o.Pages.Write(w, r, status, page)
}

func (h *Handler) writeSetupServer(w http.ResponseWriter, r *http.Request, status int, sess *flow.Session, page web.SetupServer) error {
	page.Frame, page.Txn = h.frame(sess), h.o.Forms.Token(sess, purposeSetup, "")
	return h.o.Pages.Write(w, r, status, page)
}

func (h *Handler) writeSetupDone(w http.ResponseWriter, r *http.Request, sess *flow.Session, resource string) error {
	return h.o.Pages.Write(w, r, http.StatusOK, web.SetupDone{Frame: h.frame(sess), Issuer: h.o.Issuer,
		Resource: resource, WellKnown: wellKnown(h.o.Issuer)})
}

// wellKnown are the two metadata documents people look for first (RFC 8414 §3,
// OpenID Connect Discovery §4).
func wellKnown(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	origin := u.Scheme + "://" + u.Host
	return []string{origin + "/.well-known/oauth-authorization-server" + u.Path,
		issuer + "/.well-known/openid-configuration"}
}

// problemsOf turns the mistakes in err into what a form shows.
func problemsOf(err error) []web.FieldProblem {
	var problems []web.FieldProblem
	for _, m := range mistakesIn(err) {
		problems = append(problems, web.FieldProblem{Field: m.Field, Message: m.Key})
	}
	return problems
}

// mistakesIn lists the mistakes in err, which may be joined.
func mistakesIn(err error) []*Mistake {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Mistake
		for _, e := range joined.Unwrap() {
			all = append(all, mistakesIn(e)...)
		}
		return all
	}
	var m *Mistake
	if errors.As(err, &m) {
		return []*Mistake{m}
	}
	return nil
}

func deadLink() error {
	return stop(http.StatusGone, web.CaseSetupLink, "the set-up link is unknown, used or expired")
}

func setupNotFound() error {
	return stop(http.StatusNotFound, web.CaseNotFound, "set-up is over")
}
