package authclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/printable"
)

// What a caller can tell apart with errors.Is.
var (
	// ErrLoginRequired reports that a person must be asked and that there is no
	// Authorizer to do it.
	ErrLoginRequired = errors.New("nobody has logged in to the server yet")
	// ErrNotProtected reports that Login found a server that asks for no token.
	ErrNotProtected = errors.New("the server asks for no authorization")
	// ErrRefused reports what a server said that may not be followed: a document of
	// somebody else, no PKCE, an address that is not talked to, an answer to another
	// question. No secret was sent because of it.
	ErrRefused = errors.New("refused for safety")
	// ErrPrivateAddress is the ErrRefused that Options.AllowPrivate lifts.
	ErrPrivateAddress = errors.New("on a private network")
	// ErrIssuerSlash is the ErrRefused that Options.TolerateIssuerSlash lifts.
	ErrIssuerSlash = errors.New("another slash at the end of an issuer")
	// ErrDenied reports that the person, or the server, said no.
	ErrDenied = errors.New("access was denied")
	// ErrCannotRegister reports an authorization server that knows none of the
	// configured clients and registers no new one.
	ErrCannotRegister = errors.New("no client is registered with the authorization server")
	// ErrNoDeviceGrant reports a Device Authorizer and an authorization server without
	// the device authorization grant (RFC 8628).
	ErrNoDeviceGrant = errors.New("the authorization server has no device authorization grant")
)

// refusal is an ErrRefused.
type refusal struct {
	text string
	is   []error // ErrRefused, and what an option lifts
}

// Error says what was refused.
func (r *refusal) Error() string { return ErrRefused.Error() + ": " + r.text }

// Unwrap returns ErrRefused, and which one it is.
func (r *refusal) Unwrap() []error { return r.is }

// refused makes an ErrRefused.
func refused(format string, args ...any) error { return refusedUnless(nil, format, args...) }

// refusedUnless is refused for what an option lifts; nil is nothing.
func refusedUnless(lift error, format string, args ...any) error {
	r := &refusal{text: fmt.Sprintf(format, args...), is: []error{ErrRefused}}
	if lift != nil {
		r.is = append(r.is, lift)
	}
	return r
}

// ServerError is what an authorization server answered instead of what was asked
// for (RFC 6749 §5.2). Its text can be printed: what the server wrote is cut and
// escaped.
type ServerError struct {
	// Endpoint is what was asked: "token", "registration", "revocation",
	// "device authorization" or "authorization".
	Endpoint string
	// Code is error, e.g. "invalid_grant"; "" when the answer had none.
	Code string
	// Description is error_description, in the server's words.
	Description string
	// Status is the HTTP status; 0 for an authorization response.
	Status int
	// RetryAfter is what the server asks to wait; 0 when it does not say.
	RetryAfter time.Duration
}

// Error says which endpoint answered what.
func (e *ServerError) Error() string {
	s := "the " + e.Endpoint + " endpoint answered"
	if e.Status != 0 {
		s += fmt.Sprintf(" %d", e.Status)
	}
	if e.Code != "" {
		s += " " + theirs(e.Code)
	}
	if e.Description != "" {
		s += ": " + theirs(e.Description)
	}
	return s
}

// Temporary reports that asking again later may help and that nothing is to be
// thrown away: 429, 5xx or temporarily_unavailable (rule C5).
func (e *ServerError) Temporary() bool {
	return e.Status == 429 || e.Status >= 500 || e.Code == "temporarily_unavailable" || e.Code == "server_error"
}

// maxTheirs bounds what is repeated of a server's text, in bytes.
const maxTheirs = 300

// theirs makes a server's text fit for a terminal and a log.
func theirs(s string) string { return printable.Line(s, maxTheirs) }

// UnansweredError reports a server that could not be reached or did not answer.
type UnansweredError struct {
	// Endpoint is what was asked.
	Endpoint string
	// Origin is where.
	Origin string
	// Err is why.
	Err error
}

// Error says who did not answer and why.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("the %s at %s did not answer: %s", e.Endpoint, e.Origin, theirs(e.Err.Error()))
}

// Unwrap returns the cause.
func (e *UnansweredError) Unwrap() error { return e.Err }
