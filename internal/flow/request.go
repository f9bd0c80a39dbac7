// Package flow holds the state of one sign-in: the stored authorization request,
// the browser session it is bound to, and the one URL to which every step
// returns. Steps (sign-in, consent) meet only here: each records what it
// learned and redirects to ContinueURL; authserver/continue.go decides what
// comes next.
package flow

import (
	"context"
	"net/url"
	"slices"
	"time"
)

// Lifetimes of a stored authorization request (D33).
const (
	// RequestIdle is how long a request lives after its last page.
	RequestIdle = 30 * time.Minute
	// RequestMax is how long a request lives in all.
	RequestMax = 4 * time.Hour
)

// Decision is a person's answer on the consent page.
type Decision string

// Answers on the consent page; the empty Decision is no answer yet.
const (
	DecisionAllow Decision = "allow"
	DecisionDeny  Decision = "deny"
)

// PromptLogin is the prompt value that asks for a new sign-in.
const PromptLogin = "login"

// AuthorizationRequest is one validated authorization request on its way
// through the pages.
type AuthorizationRequest struct {
	// ID is 128 random bits; it stands in URLs and is worthless without the session.
	ID string
	// Reference is what a person reads to a help desk, e.g. "7Q4M-2KXD".
	Reference string
	// SessionID is the Session.ID (a hash) of the browser session that started it.
	SessionID string
	// Source is the network source, for the cap on open requests.
	Source string
	// ClientID, RedirectURI, Resource are validated; RedirectURI is the one sent,
	// re-serialised (D15); Resource is the registered identifier.
	ClientID    string
	RedirectURI string
	Resource    string
	// Scopes are what may be granted of what was asked: known, allowed, ordered.
	Scopes []string
	// OfflineNamed says whether offline_access was among the scopes asked for.
	OfflineNamed bool
	// State is echoed byte-exact; HasState tells an empty one from none.
	State    string
	HasState bool
	// Prompt is the prompt parameter's values (OpenID Connect Core §3.1.2.1), with
	// "login" also when max_age asks for it.
	Prompt []string
	// CodeChallenge is the S256 challenge.
	CodeChallenge string
	// Params are the parameters as received, to validate again before the code
	// is issued; never a secret.
	Params url.Values
	// CreatedAt, ExpiresAt bound its life; ExpiresAt slides with each page.
	CreatedAt time.Time
	ExpiresAt time.Time

	// Decision, ApprovedScopes and StayConnected are the person's answer;
	// DecidedAt is when. DecidedBy is the account that answered.
	Decision       Decision
	ApprovedScopes []string
	StayConnected  bool
	DecidedAt      time.Time
	DecidedBy      string
	// ExtendsConsent says that the answer adds to what the person allowed before,
	// and rests on that being remembered still.
	ExtendsConsent bool

	// FinishedAt is when the response was made: a code (GrantID) or an error
	// (ErrorCode). Set once.
	FinishedAt       time.Time
	GrantID          string
	ErrorCode        string
	ErrorDescription string
	// OnceHash finds the request from /return/{once}; ReturnedAt is its first GET.
	OnceHash   string
	ReturnedAt time.Time
}

// NeedsSignIn reports whether the person has to sign in before the request goes
// on: nobody is signed in, or the request wants it done anew.
func (r *AuthorizationRequest) NeedsSignIn(s *Session) bool {
	return !s.SignedIn() || slices.Contains(r.Prompt, PromptLogin) && s.AuthTime.Before(r.CreatedAt)
}

// Answer is what Store.AnswerRequest writes.
type Answer struct {
	Decision       Decision
	ApprovedScopes []string
	StayConnected  bool
	ExtendsConsent bool
	By             string
	Now            time.Time
}

// Outcome is what Store.FinishRequest writes.
type Outcome struct {
	GrantID          string
	ErrorCode        string
	ErrorDescription string
	OnceHash         string
	Now              time.Time
}

// Store keeps authorization requests. Every method is one statement.
type Store interface {
	// CreateRequest inserts a, unless source has cap or more requests that are
	// neither finished nor expired at a.CreatedAt; it reports whether it did.
	CreateRequest(ctx context.Context, a AuthorizationRequest, cap int) (bool, error)
	// GetRequest returns the request whatever its state, or store.ErrNotFound.
	GetRequest(ctx context.Context, id string) (AuthorizationRequest, error)
	// GetRequestByOnce finds a finished request by its OnceHash, or store.ErrNotFound.
	GetRequestByOnce(ctx context.Context, onceHash string) (AuthorizationRequest, error)
	// TouchRequest slides ExpiresAt to until, at most CreatedAt+RequestMax.
	TouchRequest(ctx context.Context, id string, until time.Time) error
	// AnswerRequest records the person's answer, once: only while the request is
	// unexpired, unfinished, without an answer, and bound to sessionID. It
	// reports whether it did.
	AnswerRequest(ctx context.Context, id, sessionID string, a Answer) (bool, error)
	// FinishRequest records the outcome, once: only while the request is
	// unexpired and unfinished and bound to sessionID. It reports whether it did.
	FinishRequest(ctx context.Context, id, sessionID string, o Outcome) (bool, error)
	// MarkReturned records the first GET of /return/{once} and reports whether
	// this was the first.
	MarkReturned(ctx context.Context, id string, now time.Time) (bool, error)
	// MoveRequests binds the unfinished requests of session from to session to (D33).
	MoveRequests(ctx context.Context, from, to string) error
}

// ContinuePath is where every step of a flow ends, below the issuer's path.
const ContinuePath = "/authorize/continue"

// ContinueURL returns the path and query that a finished step redirects to;
// base is the issuer's path, "" for none.
func ContinueURL(base, requestID string) string {
	return base + ContinuePath + "?" + url.Values{"request": {requestID}}.Encode()
}
