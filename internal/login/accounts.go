package login

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/web"
)

// ErrLastOperator reports that a change would leave no enabled operator; Force
// allows it.
var ErrLastOperator = errors.New("this is the last enabled operator")

// AccountOptions configures NewAccounts. Every field but Now is required.
type AccountOptions struct {
	Users     UserStore
	Sessions  SessionStore
	Devices   DeviceStore
	Setup     SetupStore
	Grants    grant.GroupStore
	Consents  grant.ConsentStore
	Audit     audit.Store
	Tx        store.Transactor
	Passwords *Passwords
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Accounts changes accounts; the command line and set-up use the same
// functions. Each change and its audit event are one transaction. An account is
// named by its e-mail address or its id.
type Accounts struct{ o AccountOptions }

// NewAccounts checks the options.
func NewAccounts(o AccountOptions) (*Accounts, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Users == nil || o.Sessions == nil || o.Devices == nil || o.Setup == nil || o.Grants == nil ||
		o.Consents == nil || o.Audit == nil || o.Tx == nil || o.Passwords == nil {
		return nil, errors.New("login: every option of Accounts but Now is required")
	}
	return &Accounts{o: o}, nil
}

// NewUser is what an account is made of. Password "" makes an account that
// cannot sign in until one is set (SL-18).
type NewUser struct {
	Email, Name string
	Password    oauth.Secret
	Operator    bool
}

// Add makes an account and returns it. Mistakes in what was typed are
// *Mistake, joined; an address that is taken is store.ErrExists. An operator
// ends every set-up link (D3).
func (a *Accounts) Add(ctx context.Context, n NewUser) (User, error) {
	var user User
	var err error
	if n.Password == "" {
		user, err = a.draft(n)
	} else {
		user, err = a.prepare(ctx, n)
	}
	if err != nil {
		return User{}, err
	}
	err = a.o.Tx.InTx(ctx, func(ctx context.Context) error { return a.insert(ctx, user, "operator") })
	if errors.Is(err, store.ErrExists) {
		return User{}, fmt.Errorf("%w: %w", errEmailTaken(), err)
	}
	return user, err
}

// draft checks what was typed and returns the account without password.
func (a *Accounts) draft(n NewUser) (User, error) {
	if err := errors.Join(CheckEmail(n.Email), CheckName(n.Name)); err != nil {
		return User{}, err
	}
	now := a.o.Now()
	return User{ID: newAccountID(), Email: n.Email, EmailKey: EmailKey(n.Email), Name: n.Name,
		Operator: n.Operator, CreatedAt: now, UpdatedAt: now}, nil
}

// prepare checks everything that was typed and hashes the password.
func (a *Accounts) prepare(ctx context.Context, n NewUser) (User, error) {
	user, err := a.draft(n)
	if err := errors.Join(err, CheckNewPassword(n.Password)); err != nil {
		return User{}, err
	}
	if user.PasswordHash, err = a.o.Passwords.Hash(ctx, n.Password); err != nil {
		return User{}, err
	}
	user.PasswordChangedAt = user.CreatedAt
	return user, nil
}

// insert writes a prepared account inside the caller's transaction. The links
// come first, so that a set-up going on meanwhile waits for this one.
func (a *Accounts) insert(ctx context.Context, u User, actor string) error {
	if u.Operator {
		if err := a.o.Setup.EndSetupLinks(ctx, a.o.Now()); err != nil {
			return err
		}
	}
	if err := a.o.Users.CreateUser(ctx, u); err != nil {
		return err
	}
	return a.record(ctx, "user.created", actor, u.ID, map[string]string{"operator": strconv.FormatBool(u.Operator)})
}

// Get returns the account by e-mail address or id, or store.ErrNotFound.
func (a *Accounts) Get(ctx context.Context, who string) (User, error) {
	if strings.Contains(who, "@") {
		return a.o.Users.GetUserByEmail(ctx, EmailKey(who))
	}
	return a.o.Users.GetUser(ctx, who)
}

// List returns all accounts by e-mail address.
func (a *Accounts) List(ctx context.Context) ([]User, error) { return a.o.Users.ListUsers(ctx) }

// Change says what Update changes; nil fields stay.
type Change struct {
	Email, Name *string
	Operator    *bool
	// Force allows taking the last operator's role.
	Force bool
}

// Update changes an account's address, name or role.
func (a *Accounts) Update(ctx context.Context, who string, c Change) (User, error) {
	return a.change(ctx, who, "user.updated", func(ctx context.Context, u *User) error {
		if c.Email != nil {
			u.Email, u.EmailKey = *c.Email, EmailKey(*c.Email)
		}
		if c.Name != nil {
			u.Name = *c.Name
		}
		if c.Operator != nil && *c.Operator != u.Operator {
			if err := a.changeRole(ctx, u, c); err != nil {
				return err
			}
		}
		return errors.Join(CheckEmail(u.Email), CheckName(u.Name))
	})
}

func (a *Accounts) changeRole(ctx context.Context, u *User, c Change) error {
	if *c.Operator {
		u.Operator = true
		return a.o.Setup.EndSetupLinks(ctx, a.o.Now())
	}
	if err := a.checkLast(ctx, *u, c.Force); err != nil {
		return err
	}
	u.Operator = false
	return nil
}

// SetPassword sets a new password and ends everything the old one opened:
// sessions, codes, grants, remembered consents and known devices (SL-10).
func (a *Accounts) SetPassword(ctx context.Context, who string, password oauth.Secret) (User, error) {
	phc, err := a.o.Passwords.Hash(ctx, password)
	if err != nil {
		return User{}, err
	}
	return a.change(ctx, who, "user.password_set", func(ctx context.Context, u *User) error {
		u.PasswordHash, u.PasswordChangedAt = phc, a.o.Now()
		return a.endAll(ctx, u.ID, grant.ReasonPassword)
	})
}

// Enable switches an account on again.
func (a *Accounts) Enable(ctx context.Context, who string) (User, error) {
	return a.change(ctx, who, "user.enabled", func(_ context.Context, u *User) error {
		u.DisabledAt = time.Time{}
		return nil
	})
}

// Disable switches an account off and ends everything it opened (SL-10, RT-11).
// The last enabled operator needs force, else nobody could administer the server.
func (a *Accounts) Disable(ctx context.Context, who string, force bool) (User, error) {
	return a.change(ctx, who, "user.disabled", func(ctx context.Context, u *User) error {
		if err := a.checkLast(ctx, *u, force); err != nil {
			return err
		}
		if u.Enabled() {
			u.DisabledAt = a.o.Now()
		}
		return a.endAll(ctx, u.ID, grant.ReasonUserDisabled)
	})
}

// Remove deletes an account and ends everything it opened. The last enabled
// operator needs force.
func (a *Accounts) Remove(ctx context.Context, who string, force bool) (User, error) {
	var user User
	err := a.o.Tx.InTx(ctx, func(ctx context.Context) error {
		var err error
		if user, err = a.hold(ctx, who); err != nil {
			return err
		}
		if err := a.checkLast(ctx, user, force); err != nil {
			return err
		}
		if err := a.endAll(ctx, user.ID, grant.ReasonUserDisabled); err != nil {
			return err
		}
		if err := a.o.Users.DeleteUser(ctx, user.ID); err != nil {
			return err
		}
		return a.record(ctx, "user.removed", "operator", user.ID, nil)
	})
	return user, err
}

// change applies fn to the account in one transaction with the audit event.
func (a *Accounts) change(ctx context.Context, who, event string, fn func(ctx context.Context, u *User) error) (User, error) {
	var user User
	err := a.o.Tx.InTx(ctx, func(ctx context.Context) error {
		var err error
		if user, err = a.hold(ctx, who); err != nil {
			return err
		}
		if err := fn(ctx, &user); err != nil {
			return err
		}
		user.UpdatedAt = a.o.Now()
		if err := a.o.Users.UpdateUser(ctx, user); err != nil {
			return err
		}
		return a.record(ctx, event, "operator", user.ID, nil)
	})
	return user, err
}

// hold returns the account as it will stay until the transaction ends: a
// sign-in or another change going on meanwhile waits, and is not overwritten.
func (a *Accounts) hold(ctx context.Context, who string) (User, error) {
	user, err := a.Get(ctx, who)
	if err != nil {
		return User{}, err
	}
	if err := a.o.Users.TouchUser(ctx, user.ID, a.o.Now()); err != nil {
		return User{}, err
	}
	return a.o.Users.GetUser(ctx, user.ID)
}

// endAll ends everything that the account opened. The account's row is held,
// so a sign-in that was being recorded is over and its session is found here.
func (a *Accounts) endAll(ctx context.Context, subject, reason string) error {
	if _, err := a.o.Sessions.DeleteSessions(ctx, subject, ""); err != nil {
		return err
	}
	if err := a.o.Devices.DeleteDevices(ctx, subject); err != nil {
		return err
	}
	n, err := grant.EndAll(ctx, a.o.Consents, a.o.Grants, grant.Filter{Subject: subject}, reason, a.o.Now())
	if err != nil || n == 0 {
		return err
	}
	return a.record(ctx, "grant.ended", "operator", subject, map[string]string{"reason": reason, "count": strconv.Itoa(n)})
}

// checkLast refuses to take away the last enabled operator. Operators go one
// after another: two who switch each other off would each find the other one.
func (a *Accounts) checkLast(ctx context.Context, u User, force bool) error {
	if force || !u.Operator || !u.Enabled() {
		return nil
	}
	if err := a.o.Users.LockOperators(ctx); err != nil {
		return err
	}
	users, err := a.o.Users.ListUsers(ctx)
	if err != nil {
		return err
	}
	for _, other := range users {
		if other.ID != u.ID && other.Operator && other.Enabled() {
			return nil
		}
	}
	return ErrLastOperator
}

func (a *Accounts) record(ctx context.Context, name, actor, subject string, detail map[string]string) error {
	return a.o.Audit.Append(ctx, audit.New(ctx, a.o.Now(), audit.Event{Name: name, Actor: actor, Subject: subject, Detail: detail}))
}

func errEmailTaken() error {
	return &Mistake{Field: "username", Key: web.ProblemEmailTaken, Text: "an account with this e-mail address exists already"}
}
