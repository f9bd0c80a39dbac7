package authclient

import (
	"context"
	"errors"
	"net/url"
)

// ErrNoAnswer reports that the person did not come back from the browser in time.
var ErrNoAnswer = errors.New("nobody came back from the browser in time")

// Authorizer asks a person: Loopback, Paste and Device are three, and a program
// with a window of its own can be a fourth. It is safe for concurrent use.
type Authorizer interface {
	// Begin prepares one authorization. Its redirect URI is known before the
	// authorization server is asked, because registration needs it.
	Begin(ctx context.Context) (Attempt, error)
}

// Attempt is one authorization.
type Attempt interface {
	// RedirectURI is where the authorization server sends the browser back. "" is an
	// attempt of Device, which has no browser to come back.
	RedirectURI() string
	// Authorize shows authorizationURL to the person, which has been checked to be
	// https or loopback http, and returns the parameters with which the browser came
	// back. Who calls it checks state and iss.
	Authorize(ctx context.Context, authorizationURL string) (callback url.Values, err error)
	// Close ends the attempt, whatever became of it.
	Close() error
}
