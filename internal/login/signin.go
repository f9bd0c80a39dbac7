package login

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/sessions"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/web"
)

// recordTimeout bounds the writing of a failed sign-in.
const recordTimeout = 5 * time.Second

// showSignIn serves GET /sign-in (pages.md 4.1). Whoever is signed in goes on,
// unless they came to switch accounts or to confirm who they are.
func (h *Handler) showSignIn(w http.ResponseWriter, r *http.Request) error {
	params, err := oauth.QueryParams(r)
	if err != nil {
		return err
	}
	id := params.Get("request")
	if id != "" && !h.o.Sessions.HasCookie(r) {
		return noCookie()
	}
	if endpoint.LooksOnly(w, r) {
		return nil
	}
	sess, err := h.o.Sessions.Ensure(w, r)
	if err != nil {
		return err
	}
	req, err := h.request(r.Context(), sess, id)
	if err != nil {
		return err
	}
	confirm := params.Get("confirm") != ""
	if sess.SignedIn() && !confirm && params.Get("switch") == "" {
		return h.goOn(w, r, id)
	}
	page := web.SignIn{Confirm: confirm && sess.SignedIn()}
	if page.Confirm {
		page.Email = sess.Email
	}
	return h.writeSignIn(w, r, http.StatusOK, sess, req, page)
}

// signIn serves POST /sign-in.
func (h *Handler) signIn(w http.ResponseWriter, r *http.Request) error {
	params, err := endpoint.Form(r)
	if err != nil {
		return err
	}
	id := params.Get("request")
	sess, err := h.checkForm(r, purposeSignIn, id, params)
	if errors.Is(err, flow.ErrFormToken) {
		return h.sentAgain(w, r, params, err)
	}
	if err != nil {
		return err
	}
	req, err := h.request(r.Context(), sess, id)
	if err != nil {
		return err
	}
	c := credentials{email: params.Get("username"), password: oauth.Secret(params.Get("password")), deviceID: h.deviceID(r)}
	if err := c.check(); err != nil {
		return err
	}
	page := web.SignIn{Email: c.email, Confirm: sess.SignedIn() && EmailKey(c.email) == EmailKey(sess.Email)}
	if c.email == "" || c.password == "" {
		page.Problem = web.ProblemMissing
		return h.writeSignIn(w, r, http.StatusUnprocessableEntity, sess, req, page)
	}
	v, err := h.verify(r.Context(), c)
	if err != nil {
		return err
	}
	if v.failure == "" {
		err := h.finishSignIn(w, r, v)
		if err == nil {
			return h.goOn(w, r, id)
		}
		if !errors.Is(err, errAccountChanged) {
			return err
		}
		v.failure = failedCredentials
	}
	return h.refuseSignIn(w, r, sess, req, v, page)
}

// sentAgain answers a form that does not belong to the session. After a double
// click the first answer has signed the person in and given the browser another
// session: they go on, and nothing is changed. Everybody else gets the refusal.
func (h *Handler) sentAgain(w http.ResponseWriter, r *http.Request, params oauth.Params, refusal error) error {
	sess, err := h.o.Sessions.Current(r)
	if err != nil {
		return err
	}
	if !sess.SignedIn() || EmailKey(params.Get("username")) != EmailKey(sess.Email) {
		return refusal
	}
	return h.goOn(w, r, params.Get("request"))
}

// check refuses what is too long for a form before anything is hashed (SL-07).
func (c credentials) check() error {
	if len(c.email) > maxPasswordBytes {
		return oauth.InvalidRequest("username is longer than %d bytes", maxPasswordBytes)
	}
	return checkPasswordSize(c.password)
}

// request returns the authorization request that the sign-in is for, nil when
// there is none. It must be open and this browser's (CS-05).
func (h *Handler) request(ctx context.Context, sess *flow.Session, id string) (*flow.AuthorizationRequest, error) {
	if id == "" {
		return nil, nil
	}
	req, err := h.o.Requests.GetRequest(ctx, id)
	now := h.o.Now()
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, stop(http.StatusBadRequest, web.CaseExpired, "no such authorization request")
	case err != nil:
		return nil, err
	case req.SessionID != sess.ID:
		return nil, stop(http.StatusForbidden, web.CaseForbidden, "the authorization request is another session's")
	case !now.Before(req.ExpiresAt):
		return nil, stop(http.StatusBadRequest, web.CaseExpired, "the authorization request has expired")
	case !req.FinishedAt.IsZero():
		return nil, stop(http.StatusBadRequest, web.CaseAnswered, "the authorization request is finished")
	}
	if err := h.o.Requests.TouchRequest(ctx, id, now.Add(flow.RequestIdle)); err != nil {
		return nil, err
	}
	return &req, nil
}

// goOn leaves the sign-in page: to the dispatcher, or to the account page.
func (h *Handler) goOn(w http.ResponseWriter, r *http.Request, requestID string) error {
	if requestID == "" {
		return h.redirect(w, r, "/account")
	}
	http.Redirect(w, r, flow.ContinueURL(h.o.Base, requestID), http.StatusSeeOther)
	return nil
}

func (h *Handler) writeSignIn(w http.ResponseWriter, r *http.Request, status int, sess *flow.Session, req *flow.AuthorizationRequest, page web.SignIn) error {
	page.Frame = h.frame(sess)
	if req != nil {
		client, server, err := h.o.Describe(r.Context(), *req)
		if errors.Is(err, store.ErrNotFound) {
			return stop(http.StatusBadRequest, web.CaseExpired, "the client or the resource was removed meanwhile")
		}
		if err != nil {
			return err
		}
		page.RequestID, page.Client, page.Server = req.ID, &client, server
	}
	page.Txn = h.o.Forms.Token(sess, purposeSignIn, page.RequestID)
	return h.o.Pages.Write(w, r, status, page)
}

// errAccountChanged reports that the account was switched off, or its password
// changed, between the check and the record of the sign-in.
var errAccountChanged = errors.New("the account changed meanwhile")

// finishSignIn writes everything a sign-in changes in one transaction: a new
// session, the account's last sign-in, the known device, the audit event.
func (h *Handler) finishSignIn(w http.ResponseWriter, r *http.Request, v verdict) error {
	device, deviceID := h.device(r)
	now := h.o.Now()
	_, err := h.o.Sessions.SignIn(w, r, v.user, func(ctx context.Context) error {
		ok, err := h.o.Users.RecordSignIn(ctx, v.user.ID, v.user.PasswordHash, v.rehash, now)
		if err != nil {
			return err
		}
		if !ok {
			return errAccountChanged
		}
		if err := h.guard.succeeded(ctx, v.counters); err != nil {
			return err
		}
		if err := h.o.Devices.PutDevice(ctx, Device{ID: deviceID, Subject: v.user.ID, CreatedAt: now, ExpiresAt: now.Add(deviceMax)}); err != nil {
			return err
		}
		return h.o.Audit.Append(ctx, audit.New(ctx, now, audit.Event{Name: "user.signed_in", Actor: v.user.ID, Subject: v.user.ID}))
	})
	if err != nil {
		return err
	}
	http.SetCookie(w, sessions.NewCookie(cookieName(h.o.Development, "device"), device.Reveal(), h.o.Sessions.cookieOptions(deviceMax)))
	return nil
}

// refuseSignIn counts a failure and shows the form again. A try that had to
// wait was not looked at, and is neither counted nor recorded: the rows would
// be the attacker's to multiply.
func (h *Handler) refuseSignIn(w http.ResponseWriter, r *http.Request, sess *flow.Session, req *flow.AuthorizationRequest, v verdict, page web.SignIn) error {
	if v.failure == failedBlocked {
		page.Problem, page.WaitMinutes = web.ProblemTooMany, int((v.wait+time.Minute-1)/time.Minute)
		w.Header().Set("Retry-After", strconv.Itoa(int((v.wait+time.Second-1)/time.Second)))
		return h.writeSignIn(w, r, http.StatusTooManyRequests, sess, req, page)
	}
	page.Problem = web.ProblemCredentials
	if v.failure == failedDisabled {
		page.Problem = web.ProblemDisabled
	}
	if err := h.recordFailure(r.Context(), v); err != nil {
		return err
	}
	return h.writeSignIn(w, r, http.StatusUnprocessableEntity, sess, req, page)
}

// recordFailure outlives the request: whoever hangs up before the answer has
// guessed all the same (SL-04).
func (h *Handler) recordFailure(ctx context.Context, v verdict) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return h.o.Tx.InTx(ctx, func(ctx context.Context) error {
		if v.failure == failedCredentials {
			if err := h.guard.failed(ctx, v.counters); err != nil {
				return err
			}
		}
		return h.o.Audit.Append(ctx, audit.New(ctx, h.o.Now(), audit.Event{Name: "user.sign_in_failed",
			Subject: v.user.ID, Outcome: "denied", Detail: map[string]string{"reason": v.failure}}))
	})
}

// deviceID is the row id of the browser's device cookie, "" for none.
func (h *Handler) deviceID(r *http.Request) string {
	c, err := r.Cookie(cookieName(h.o.Development, "device"))
	if err != nil || !isRandom(c.Value) {
		return ""
	}
	return hashOf("device", c.Value)
}

// device returns the browser's device cookie and its row id, making one when
// the browser has none.
func (h *Handler) device(r *http.Request) (oauth.Secret, string) {
	value := newRandom()
	if c, err := r.Cookie(cookieName(h.o.Development, "device")); err == nil && isRandom(c.Value) {
		value = oauth.Secret(c.Value)
	}
	return value, hashOf("device", value.Reveal())
}
