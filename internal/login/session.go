package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/sessions"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Lifetimes of a browser session (D33, D4).
const (
	sessionIdle = 12 * time.Hour
	sessionMax  = 30 * 24 * time.Hour
	devMax      = 8 * time.Hour
	deviceMax   = 365 * 24 * time.Hour
	touchEvery  = time.Minute
)

// anonymousIdle is the idle limit before anybody signs in: longer than any form
// is good for that a stranger is shown, the set-up page's for an hour.
const anonymousIdle = setupLinkLife + flow.RequestIdle

// maxAnonymous is how many anonymous sessions a source may have. A source may
// be a whole office, and a sign-in ends its own.
const maxAnonymous = 500

// anonymousRetry is what a browser over the cap is told to wait.
const anonymousRetry = time.Minute

// maxUserAgent bounds what is kept of a header that anybody can send.
const maxUserAgent = 256

// RequestMover binds the open authorization requests of one session to another;
// flow.Store has it.
type RequestMover interface {
	MoveRequests(ctx context.Context, from, to string) error
}

// SessionOptions configures NewSessions. Store, Requests, Tx and Now are required.
type SessionOptions struct {
	Store    SessionStore
	Requests RequestMover
	Tx       store.Transactor
	Now      func() time.Time
	// Development names the cookies dev-… and lets them live 8 hours, because
	// browsers refuse __Host- cookies over plain http (D4).
	Development bool
	// MaxAnonymous caps the sessions of one source in which nobody is signed in.
	// Default 500 (DO-02).
	MaxAnonymous int
}

// Sessions finds and makes browser sessions. The cookie holds 256 random bits,
// the row is kept under their hash, so the cookie needs no signature and the
// database opens no session. It implements flow.Sessions for the pages and
// gorilla's sessions.Store beneath.
type Sessions struct {
	o    SessionOptions
	name string
}

// NewSessions checks the options.
func NewSessions(o SessionOptions) (*Sessions, error) {
	if o.Store == nil || o.Requests == nil || o.Tx == nil || o.Now == nil {
		return nil, errors.New("login: Store, Requests, Tx and Now are required for sessions")
	}
	if o.MaxAnonymous == 0 {
		o.MaxAnonymous = maxAnonymous
	}
	return &Sessions{o: o, name: cookieName(o.Development, "sid")}, nil
}

func cookieName(development bool, name string) string {
	if development {
		return "dev-" + name
	}
	return "__Host-" + name
}

// rowValue is the key under which a gorilla session holds its SessionUser.
const rowValue = "row"

// Current implements flow.Sessions.
func (s *Sessions) Current(r *http.Request) (*flow.Session, error) {
	sess, err := s.Get(r, s.name)
	if err != nil {
		return nil, err
	}
	return viewOf(sess), nil
}

// Ensure implements flow.Sessions.
func (s *Sessions) Ensure(w http.ResponseWriter, r *http.Request) (*flow.Session, error) {
	sess, err := s.Get(r, s.name)
	if err != nil {
		return nil, err
	}
	if sess.IsNew {
		if err := s.Save(r, w, sess); err != nil {
			return nil, err
		}
	}
	return viewOf(sess), nil
}

// HasCookie reports whether the browser sent a session cookie at all, be it a
// dead one: a browser that sends none needs other advice.
func (s *Sessions) HasCookie(r *http.Request) bool {
	_, err := r.Cookie(s.name)
	return err == nil
}

// SignIn gives the browser a new session of its own for u and, in the same
// transaction as also, moves the open authorization requests to it and deletes
// the old row, whose cookie is then worth nothing (SL-01). also may be called
// more than once.
func (s *Sessions) SignIn(w http.ResponseWriter, r *http.Request, u User, also func(ctx context.Context) error) (*flow.Session, error) {
	sess, err := s.Get(r, s.name)
	if err != nil {
		return nil, err
	}
	now, old := s.o.Now(), viewOf(sess)
	value := newRandom()
	row := s.newRow(r, value, u.ID, now)
	row.AuthTime = now
	err = s.o.Tx.InTx(r.Context(), func(ctx context.Context) error {
		if err := also(ctx); err != nil {
			return err
		}
		return s.replace(ctx, old, row)
	})
	if err != nil {
		return nil, err
	}
	s.keep(w, sess, value, SessionUser{Session: row, UserID: u.ID, Email: u.Email, Name: u.Name, Operator: u.Operator})
	return viewOf(sess), nil
}

func (s *Sessions) replace(ctx context.Context, old *flow.Session, row Session) error {
	if err := s.create(ctx, row); err != nil {
		return err
	}
	if old == nil {
		return nil
	}
	// sessions before requests, as everywhere
	if _, err := s.o.Store.DeleteSession(ctx, old.ID); err != nil {
		return err
	}
	return s.o.Requests.MoveRequests(ctx, old.ID, row.ID)
}

func (s *Sessions) create(ctx context.Context, row Session) error {
	created, err := s.o.Store.CreateSession(ctx, row, s.o.MaxAnonymous)
	if err == nil && !created {
		return oauth.TooManyRequests(anonymousRetry)
	}
	return err
}

// SignOut deletes the row, so that a copy of the cookie is dead too (SL-09), in
// the same transaction as also, and takes the cookie away.
func (s *Sessions) SignOut(w http.ResponseWriter, r *http.Request, also func(ctx context.Context) error) error {
	sess, err := s.Get(r, s.name)
	if err != nil {
		return err
	}
	if old := viewOf(sess); old != nil {
		err = s.o.Tx.InTx(r.Context(), func(ctx context.Context) error {
			if _, err := s.o.Store.DeleteSession(ctx, old.ID); err != nil {
				return err
			}
			return also(ctx)
		})
		if err != nil {
			return err
		}
	}
	delete(sess.Values, rowValue)
	sess.IsNew = true
	sess.Options.MaxAge = -1
	http.SetCookie(w, sessions.NewCookie(s.name, "", sess.Options))
	return nil
}

// Get implements sessions.Store: the session of this request, read once.
func (s *Sessions) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New implements sessions.Store. It reads the row of the request's cookie; a
// cookie without a live row gives a new, empty session.
func (s *Sessions) New(r *http.Request, name string) (*sessions.Session, error) {
	sess := sessions.NewSession(s, name)
	sess.IsNew = true
	sess.Options = s.cookieOptions(s.max())
	c, err := r.Cookie(name)
	if err != nil || !isRandom(c.Value) {
		return sess, nil
	}
	row, err := s.o.Store.GetSession(r.Context(), hashOf("session", c.Value))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return sess, nil
	case err != nil:
		return sess, err
	case !s.live(row):
		return sess, nil
	}
	if err := s.touch(r.Context(), &row.Session); err != nil {
		return sess, err
	}
	sess.IsNew, sess.ID = false, row.ID
	sess.Values[rowValue] = row
	return sess, nil
}

// Save implements sessions.Store: it makes an anonymous row for a new session
// and sets its cookie. A session that is not new is already in the database.
func (s *Sessions) Save(r *http.Request, w http.ResponseWriter, sess *sessions.Session) error {
	if !sess.IsNew {
		return nil
	}
	value := newRandom()
	row := s.newRow(r, value, "", s.o.Now())
	if err := s.create(r.Context(), row); err != nil {
		return err
	}
	s.keep(w, sess, value, SessionUser{Session: row})
	return nil
}

// keep makes sess the session row and gives the browser its cookie.
func (s *Sessions) keep(w http.ResponseWriter, sess *sessions.Session, value oauth.Secret, row SessionUser) {
	sess.IsNew, sess.ID = false, row.ID
	sess.Values[rowValue] = row
	sess.Options = s.cookieOptions(s.max())
	http.SetCookie(w, sessions.NewCookie(s.name, value.Reveal(), sess.Options))
}

func (s *Sessions) newRow(r *http.Request, value oauth.Secret, subject string, now time.Time) Session {
	agent, src := r.UserAgent(), audit.SourceFrom(r.Context())
	agent = strings.ToValidUTF8(agent[:min(len(agent), maxUserAgent)], "")
	row := Session{ID: hashOf("session", value.Reveal()), Subject: subject, IP: src.IP, Source: src.Class(),
		UserAgent: agent, CreatedAt: now, LastSeenAt: now}
	row.ExpiresAt = s.expiry(row)
	return row
}

// live reports whether the row may be used: unexpired and, when signed in, of
// an account that exists and is enabled.
func (s *Sessions) live(row SessionUser) bool {
	if !s.o.Now().Before(row.ExpiresAt) {
		return false
	}
	return row.Subject == "" || row.UserID == row.Subject && row.DisabledAt.IsZero()
}

// touch slides the idle limit, at most once a minute: a page costs no write.
func (s *Sessions) touch(ctx context.Context, row *Session) error {
	now := s.o.Now()
	if now.Sub(row.LastSeenAt) < touchEvery {
		return nil
	}
	row.LastSeenAt = now
	row.ExpiresAt = s.expiry(*row)
	if err := s.o.Store.TouchSession(ctx, row.ID, row.LastSeenAt, row.ExpiresAt); err != nil {
		return fmt.Errorf("keep session alive: %w", err)
	}
	return nil
}

// expiry is the earlier of the idle and the absolute limit.
func (s *Sessions) expiry(row Session) time.Time {
	idle, absolute := row.LastSeenAt.Add(sessionIdle), row.CreatedAt.Add(s.max())
	if row.Subject == "" {
		idle = row.LastSeenAt.Add(anonymousIdle)
	}
	if idle.Before(absolute) {
		return idle
	}
	return absolute
}

func (s *Sessions) max() time.Duration {
	if s.o.Development {
		return devMax
	}
	return sessionMax
}

// cookieOptions are those of every cookie here: never Domain, never
// SameSite=Strict, which would drop the session when an app sends the browser
// to /authorize (SL-02).
func (s *Sessions) cookieOptions(life time.Duration) *sessions.Options {
	return &sessions.Options{Path: "/", MaxAge: int(life.Seconds()), Secure: !s.o.Development,
		HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// viewOf is the session as the pages see it; nil for one without a row.
func viewOf(sess *sessions.Session) *flow.Session {
	row, ok := sess.Values[rowValue].(SessionUser)
	if !ok {
		return nil
	}
	return &flow.Session{ID: row.ID, Subject: row.Subject, Email: row.Email, Name: row.Name,
		Operator: row.Operator, AuthTime: row.AuthTime, CreatedAt: row.CreatedAt}
}

var (
	_ flow.Sessions  = (*Sessions)(nil)
	_ sessions.Store = (*Sessions)(nil)
)
