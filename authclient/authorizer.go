package authclient

import (
	"context"
	"io"
	"net/url"
	"time"
)

// Authorizer asks a person: Loopback, Paste and Device are three, and a program
// with a window of its own can be a fourth. It is safe for concurrent use.
type Authorizer interface {
	// Begin prepares one authorization. Its redirect URI is known before the
	// authorization server is asked, because registration needs it.
	Begin(ctx context.Context) (Attempt, error)
}

// Attempt is one authorization.
type Attempt interface {
	// RedirectURI is where the authorization server sends the browser back.
	RedirectURI() string
	// Authorize shows authorizationURL to the person, which has been checked to be
	// https or loopback http, and returns the parameters with which the browser came
	// back. Who calls it checks state and iss.
	Authorize(ctx context.Context, authorizationURL string) (callback url.Values, err error)
	// Close ends the attempt, whatever became of it.
	Close() error
}

// Loopback opens the system's browser and listens on 127.0.0.1 for its return (RFC
// 8252 §7.3). The zero Loopback is ready to use.
type Loopback struct {
	// Open shows the URL in a browser. Default: the system's own way, without a shell.
	Open func(ctx context.Context, authorizationURL string) error
	// Path is the redirect URI's path. Default "/callback".
	Path string
	// Timeout bounds how long the browser may stay away. Default 5 minutes.
	Timeout time.Duration
	// Notify, when set, is told the URL before the browser is opened, for who must
	// open it by hand.
	Notify func(authorizationURL string)
}

// Paste lets a person open the URL on any machine and paste back the address at
// which the browser ended, for machines without a browser.
type Paste struct {
	// In is where the pasted address is read from. Required.
	In io.Reader
	// Out is where the instructions are written. Required.
	Out io.Writer
	// Redirect is the redirect URI. Default "http://127.0.0.1/callback", where
	// nobody listens: the browser shows an error, and the address to paste.
	Redirect string
}

// Device uses the device authorization grant (RFC 8628) with servers that have it:
// the person types a short code on any machine.
type Device struct {
	// Show tells the person where to go and what to type. Required. What it is given
	// has been checked and holds no control character.
	Show func(ctx context.Context, code DeviceCode) error
}

// DeviceCode is what a person needs to allow a device (RFC 8628 §3.2).
type DeviceCode struct {
	// UserCode is user_code.
	UserCode string
	// VerificationURI is verification_uri: https, or loopback http.
	VerificationURI string
	// VerificationURIComplete is verification_uri_complete, with the code in it; it
	// may be empty.
	VerificationURIComplete string
	// Expires is when the code dies.
	Expires time.Time
}

// Begin implements Authorizer.
func (l *Loopback) Begin(context.Context) (Attempt, error) { return nil, errNotBuilt }

// Begin implements Authorizer.
func (p *Paste) Begin(context.Context) (Attempt, error) { return nil, errNotBuilt }

// Begin implements Authorizer.
func (d *Device) Begin(context.Context) (Attempt, error) { return nil, errNotBuilt }
