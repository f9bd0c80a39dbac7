package flow

import (
	"context"
	"net/http"
	"time"
)

// Session is a browser's session as the pages see it. The cookie's value is
// never here: ID is its hash, the row's key.
type Session struct {
	// ID is the hash under which the session's row is kept.
	ID string
	// Subject is the signed-in account, "" while anonymous.
	Subject string
	// Email, Name and Operator are the account's, when signed in.
	Email    string
	Name     string
	Operator bool
	// AuthTime is when the person last proved who they are.
	AuthTime time.Time
	// CreatedAt is when the row was made.
	CreatedAt time.Time
}

// SignedIn reports whether a person is signed in.
func (s *Session) SignedIn() bool { return s != nil && s.Subject != "" }

// SignedInAt is when the person signed in, zero when nobody is.
func (s *Session) SignedInAt() time.Time {
	if s == nil {
		return time.Time{}
	}
	return s.AuthTime
}

// Sessions finds and makes browser sessions; internal/login implements it over
// gorilla/sessions with the row in the database.
type Sessions interface {
	// Current returns the live session of the request's cookie, or nil when
	// there is none. A signed-in session of a disabled account is nil.
	Current(r *http.Request) (*Session, error)
	// Ensure returns the current session, or makes an anonymous row and sets the
	// cookie. Call it before anything is written to w.
	Ensure(w http.ResponseWriter, r *http.Request) (*Session, error)
}

// Forms makes and checks the hidden txn value of every form on every page: an
// HMAC over the session, the purpose, the subject matter and the time at which
// the page was shown (pages.md §3, decision D22). It is stateless: a second GET
// never invalidates a first.
type Forms interface {
	// Token returns the txn value for a form of this purpose about subject
	// matter ref (a request id, say), shown now.
	Token(s *Session, purpose, ref string) string
	// Check verifies token and returns when its page was shown. A token of
	// another session, purpose or ref, a forged or an outdated one is
	// ErrFormToken.
	Check(ctx context.Context, s *Session, purpose, ref, token string) (shownAt time.Time, err error)
}
