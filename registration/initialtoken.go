package registration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// initialTokenPrefix lets people and secret scanners tell what a string is.
const initialTokenPrefix = "ost_iat_"

// Bounds of initial access tokens.
const (
	// DefaultInitialTokenLife is how long a token is good that names no time.
	DefaultInitialTokenLife = 7 * 24 * time.Hour
	// MaxInitialTokenLife bounds it.
	MaxInitialTokenLife = 365 * 24 * time.Hour

	maxInitialTokenUses = 1_000_000
)

// InitialAccessToken lets whoever has it register clients (RFC 7591 §3) where
// the policy asks for one.
type InitialAccessToken struct {
	// ID names it to the operator; it is no secret.
	ID string
	// Name says whom it was given to.
	Name string
	// Hash is the hash of the token (D16).
	Hash []byte
	// MaxUses is how many clients it may register, Uses how many it has.
	MaxUses, Uses int
	// ExpiresAt ends it.
	ExpiresAt time.Time
	CreatedAt time.Time
	// LastUsedAt is when it last registered a client; zero: never.
	LastUsedAt time.Time
}

// Usable reports whether the token can still register a client.
func (t *InitialAccessToken) Usable(now time.Time) bool {
	return t.Uses < t.MaxUses && now.Before(t.ExpiresAt)
}

// InitialAccessTokenStore keeps initial access tokens. Every method is one statement.
type InitialAccessTokenStore interface {
	// CreateInitialAccessToken inserts t.
	CreateInitialAccessToken(ctx context.Context, t InitialAccessToken) error
	// ListInitialAccessTokens returns every token, oldest first.
	ListInitialAccessTokens(ctx context.Context) ([]InitialAccessToken, error)
	// DeleteInitialAccessToken removes the row, or returns store.ErrNotFound.
	DeleteInitialAccessToken(ctx context.Context, id string) error
	// SpendInitialAccessToken counts one use and returns the token's ID, or
	// store.ErrNotFound when there is none, or it is used up or expired. Of
	// concurrent spenders of the last use one gets it.
	SpendInitialAccessToken(ctx context.Context, hash []byte, now time.Time) (id string, err error)
}

// HashInitialAccessToken returns what is stored of an initial access token (D16).
func HashInitialAccessToken(token oauth.Secret) []byte {
	return oauth.HashSecret("ostiary initial access token v1", "", token)
}

// InitialAccessTokens is what an operator does with initial access tokens (D18).
type InitialAccessTokens struct {
	// Store, Tx and Audit are required.
	Store InitialAccessTokenStore
	Tx    store.Transactor
	Audit audit.Store
	// Now is the clock. Required.
	Now func() time.Time
}

// NewInitialAccessToken describes a token to add.
type NewInitialAccessToken struct {
	// Name says whom it is for. Required.
	Name string
	// Uses is how many clients it may register; 0 is one.
	Uses int
	// Life is how long it is good; 0 is DefaultInitialTokenLife.
	Life time.Duration
}

// Add makes a token and returns it with its secret, which is not shown again.
func (a *InitialAccessTokens) Add(ctx context.Context, o NewInitialAccessToken) (InitialAccessToken, oauth.Secret, error) {
	if o.Uses == 0 {
		o.Uses = 1
	}
	if o.Life == 0 {
		o.Life = DefaultInitialTokenLife
	}
	name := NormalizeName(o.Name)
	switch {
	case name == "":
		return InitialAccessToken{}, "", oauth.InvalidRequest("a name is required: it tells later whom the token was given to")
	case o.Uses < 1 || o.Uses > maxInitialTokenUses:
		return InitialAccessToken{}, "", oauth.InvalidRequest("uses must be 1 to %d", maxInitialTokenUses)
	case o.Life < time.Minute || o.Life > MaxInitialTokenLife:
		return InitialAccessToken{}, "", oauth.InvalidRequest("it must be good for one minute to 365 days")
	}
	token := oauth.Secret(initialTokenPrefix + oauth.NewSecret().Reveal())
	t := InitialAccessToken{ID: newClientID(), Name: name, Hash: HashInitialAccessToken(token), MaxUses: o.Uses,
		CreatedAt: a.Now(), ExpiresAt: a.Now().Add(o.Life)}
	err := a.change(ctx, "initial_access_token.added", t.ID, t.Name, func(ctx context.Context) error {
		return a.Store.CreateInitialAccessToken(ctx, t)
	})
	if err != nil {
		return InitialAccessToken{}, "", fmt.Errorf("add initial access token: %w", err)
	}
	return t, token, nil
}

// List returns every token, oldest first.
func (a *InitialAccessTokens) List(ctx context.Context) ([]InitialAccessToken, error) {
	return a.Store.ListInitialAccessTokens(ctx)
}

// Remove deletes a token, or returns store.ErrNotFound. Clients that were
// registered with it stay.
func (a *InitialAccessTokens) Remove(ctx context.Context, id string) error {
	err := a.change(ctx, "initial_access_token.removed", id, "", func(ctx context.Context) error {
		return a.Store.DeleteInitialAccessToken(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("remove initial access token: %w", err)
	}
	return nil
}

// change runs fn and appends the audit event in one transaction.
func (a *InitialAccessTokens) change(ctx context.Context, event, id, name string, fn func(ctx context.Context) error) error {
	detail := map[string]string{"token": id}
	if name != "" {
		detail["name"] = name
	}
	return a.Tx.InTx(ctx, func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return err
		}
		return a.Audit.Append(ctx, audit.New(ctx, a.Now(), audit.Event{Name: event, Actor: Operator, Detail: detail}))
	})
}

// initialToken returns the bearer token of a registration where one is needed.
// Elsewhere the header is not looked at: clients send what they have.
func (h *Handler) initialToken(r *http.Request) (oauth.Secret, error) {
	if h.o.Policy.Mode != ModeToken {
		return "", nil
	}
	token, err := bearer(r)
	if err == nil && token == "" {
		return "", unauthorized("registration needs an initial access token; ask the operator for one", false)
	}
	return token, err
}

// spendInitialToken uses up one registration of the token, in the transaction
// that registers, so that a refused registration costs nothing.
func (h *Handler) spendInitialToken(ctx context.Context, token oauth.Secret) (id string, err error) {
	if !strings.HasPrefix(token.Reveal(), initialTokenPrefix) {
		return "", unauthorized("the initial access token is not valid", true)
	}
	id, err = h.o.InitialTokens.SpendInitialAccessToken(ctx, HashInitialAccessToken(token), h.o.Now())
	if errors.Is(err, store.ErrNotFound) {
		return "", unauthorized("the initial access token is not valid: it is unknown, expired or used up", true)
	}
	return id, err
}
