// Package login owns people: their accounts, how they prove who they are
// (e-mail and password in this version), first-run set-up, and the browser
// session that remembers them (gorilla/sessions, with the row in the database).
// It issues nothing and decides no flow: a finished step redirects to
// flow.ContinueURL.
package login

import (
	"context"
	"time"
)

// User is a person's account.
type User struct {
	// ID is the opaque account id: the sub of their tokens (D7).
	ID string
	// Email is stored as typed, and unique by EmailKey.
	Email string
	// EmailKey is Email lower-cased and normalised.
	EmailKey string
	// Name is shown to people; may be empty.
	Name string
	// PasswordHash is an argon2id PHC string; "" when the account has no password (SL-18).
	PasswordHash string
	// Operator marks an administrator.
	Operator          bool
	DisabledAt        time.Time
	PasswordChangedAt time.Time
	CreatedAt         time.Time
	UpdatedAt         time.Time
	LastSignInAt      time.Time
}

// Enabled reports whether the account may be used.
func (u *User) Enabled() bool { return u.DisabledAt.IsZero() }

// UserStore keeps accounts. Every method is one statement.
type UserStore interface {
	// CreateUser inserts u, or returns store.ErrExists for the same EmailKey.
	CreateUser(ctx context.Context, u User) error
	// GetUser returns the account by ID, or store.ErrNotFound.
	GetUser(ctx context.Context, id string) (User, error)
	// GetUserByEmail returns the account by EmailKey, or store.ErrNotFound.
	GetUserByEmail(ctx context.Context, emailKey string) (User, error)
	// ListUsers returns all accounts by EmailKey.
	ListUsers(ctx context.Context) ([]User, error)
	// UpdateUser replaces every field but ID and CreatedAt, or returns store.ErrNotFound.
	UpdateUser(ctx context.Context, u User) error
	// DeleteUser removes the row, or returns store.ErrNotFound.
	DeleteUser(ctx context.Context, id string) error
	// CountUsers returns how many accounts there are.
	CountUsers(ctx context.Context) (int, error)
	// TouchUser sets UpdatedAt, or returns store.ErrNotFound. Inside a
	// transaction it holds the row, so that what is read next stays true.
	TouchUser(ctx context.Context, id string, now time.Time) error
	// LockOperators makes other transactions that call it wait until this one
	// ends. It must be called inside InTx.
	LockOperators(ctx context.Context) error
	// RecordSignIn sets LastSignInAt and replaces the password hash that was
	// verified by newHash, if the account is still enabled and still has that
	// password; it reports whether it did.
	RecordSignIn(ctx context.Context, id, verifiedHash, newHash string, now time.Time) (bool, error)
}
