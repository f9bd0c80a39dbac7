package login

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// setupLinkLife is how long a set-up link is good (D3).
const setupLinkLife = 60 * time.Minute

// ErrOperatorExists reports that set-up is over: an operator account exists.
var ErrOperatorExists = errors.New("an operator account exists already")

// SetupLinks makes the one-time links that open first-run set-up (D3).
type SetupLinks struct {
	// Store keeps the hashes of the links. Required.
	Store SetupStore
	// Issuer is what the link begins with. Required.
	Issuer string
	// Now is the clock. Required.
	Now func() time.Time
}

// New makes a link that is good for 60 minutes and one use. The link is a
// credential: it is printed for the operator and kept nowhere. It returns
// ErrOperatorExists when set-up is over.
func (l *SetupLinks) New(ctx context.Context) (token oauth.Secret, link string, err error) {
	token = newRandom()
	now := l.Now()
	made, err := l.Store.CreateSetupLink(ctx, SetupLink{TokenHash: hashOf("set-up link", token.Reveal()),
		CreatedAt: now, ExpiresAt: now.Add(setupLinkLife)})
	if err != nil {
		return "", "", err
	}
	if !made {
		return "", "", ErrOperatorExists
	}
	return token, l.Issuer + "/setup?" + url.Values{"link": {token.Reveal()}}.Encode(), nil
}
