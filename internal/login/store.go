package login

import (
	"context"
	"time"
)

// Session is the row of a browser session (D33).
type Session struct {
	// ID is the hash of the cookie's value.
	ID string
	// Subject is the signed-in account, "" while anonymous.
	Subject string
	// AuthTime is when the person proved who they are; zero while anonymous.
	AuthTime time.Time
	// IP and UserAgent are those of the request that made the row, shown to the
	// person under "Where you are signed in".
	IP        string
	UserAgent string
	// Source is the class of IP, for the cap on anonymous sessions.
	Source string
	// CreatedAt starts the absolute limit, LastSeenAt the idle limit; ExpiresAt
	// is the earlier of the two.
	CreatedAt  time.Time
	LastSeenAt time.Time
	ExpiresAt  time.Time
}

// SessionUser is a session with what the pages show of its account.
type SessionUser struct {
	Session
	// UserID is "" when the session is anonymous or its account is gone.
	UserID   string
	Email    string
	Name     string
	Operator bool
	// DisabledAt is zero for an enabled account.
	DisabledAt time.Time
}

// SessionStore keeps browser sessions. Every method is one statement.
type SessionStore interface {
	// CreateSession inserts s and reports whether it did: an anonymous session is
	// refused when its source has limit unexpired ones (DO-02).
	CreateSession(ctx context.Context, s Session, limit int) (bool, error)
	// GetSession returns the session with its account, expired or not, or store.ErrNotFound.
	GetSession(ctx context.Context, id string) (SessionUser, error)
	// TouchSession sets LastSeenAt and ExpiresAt.
	TouchSession(ctx context.Context, id string, seen, expires time.Time) error
	// DeleteSession removes the row and reports whether there was one.
	DeleteSession(ctx context.Context, id string) (bool, error)
	// DeleteSessions removes every session of subject but exceptID ("" spares
	// none) and returns how many.
	DeleteSessions(ctx context.Context, subject, exceptID string) (int, error)
	// ListSessions returns the unexpired sessions of subject, last seen first.
	ListSessions(ctx context.Context, subject string, now time.Time) ([]Session, error)
}

// SetupLink is the row of a set-up link (D3).
type SetupLink struct {
	// TokenHash is the hash of the link's token.
	TokenHash string
	CreatedAt time.Time
	ExpiresAt time.Time
	// UsedAt is zero until the link is used, or killed by another operator.
	UsedAt time.Time
}

// SetupStore keeps set-up links. Every method is one statement.
type SetupStore interface {
	// CreateSetupLink inserts l, unless an operator exists; it reports whether it did.
	CreateSetupLink(ctx context.Context, l SetupLink) (bool, error)
	// HasOperator reports whether any operator account exists.
	HasOperator(ctx context.Context) (bool, error)
	// SetupLinkLive reports whether the link can still be used: known, unused,
	// unexpired, and no operator exists.
	SetupLinkLive(ctx context.Context, tokenHash string, now time.Time) (bool, error)
	// UseSetupLink spends the link and every other one, if it is live, and
	// reports whether it was. Of concurrent uses, of one link or of several, one wins.
	UseSetupLink(ctx context.Context, tokenHash string, now time.Time) (bool, error)
	// EndSetupLinks spends every unused link; making an operator does it in the
	// same transaction.
	EndSetupLinks(ctx context.Context, now time.Time) error
}

// Guess counts failed sign-ins under one name (an account or a source).
type Guess struct {
	// Name is a hash, so that a password typed into the wrong field is not stored.
	Name string
	// Failures is how many there were since the row was made.
	Failures int
	// BlockedUntil is when the next try is allowed.
	BlockedUntil time.Time
	// ExpiresAt is when the row is forgotten.
	ExpiresAt time.Time
}

// GuessStore keeps guess counters. Every method is one statement.
type GuessStore interface {
	// GetGuess returns the unexpired counter, or store.ErrNotFound.
	GetGuess(ctx context.Context, name string, now time.Time) (Guess, error)
	// CountGuess adds one failure, beginning at one when there is no unexpired
	// row, sets ExpiresAt and returns the number of failures.
	CountGuess(ctx context.Context, name string, now, expires time.Time) (int, error)
	// BlockGuess sets BlockedUntil of an existing row.
	BlockGuess(ctx context.Context, name string, until time.Time) error
	// DeleteGuess forgets the counter; it is no error when there is none.
	DeleteGuess(ctx context.Context, name string) error
}

// Device is a browser in which an account signed in before (SL-04).
type Device struct {
	// ID is the hash of the device cookie's value.
	ID        string
	Subject   string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// DeviceStore keeps known devices. Every method is one statement.
type DeviceStore interface {
	// PutDevice inserts d, or extends the row of the same ID and Subject.
	PutDevice(ctx context.Context, d Device) error
	// KnowsDevice reports whether subject signed in on that device before.
	KnowsDevice(ctx context.Context, id, subject string, now time.Time) (bool, error)
	// DeleteDevices forgets every device of subject.
	DeleteDevices(ctx context.Context, subject string) error
}
