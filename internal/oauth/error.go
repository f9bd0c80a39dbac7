package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Error is an OAuth error response (RFC 6749 §4.1.2.1 and §5.2). It is made
// where the rule is checked and written by internal/endpoint alone.
type Error struct {
	// Code is the error parameter, e.g. "invalid_target".
	Code string
	// Description is error_description: ASCII, written for the client's
	// developer, never a reflected value.
	Description string
	// Status is the HTTP status; 0 means 400.
	Status int
	// RetryAfter, when positive, becomes the Retry-After header in whole seconds.
	RetryAfter time.Duration
	// Challenge, when set, becomes the WWW-Authenticate header.
	Challenge string
	// Err is the cause: it is logged, and never sent to the client.
	Err error
}

// Error returns code, description and cause, for logs.
func (e *Error) Error() string {
	s := e.Code
	if e.Description != "" {
		s += ": " + e.Description
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HTTPStatus returns Status, or 400 when it is not set.
func (e *Error) HTTPStatus() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

// With returns a copy of e whose cause is err.
func (e *Error) With(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// Code returns the OAuth error code in err's chain: "" when err is nil,
// "server_error" when err is not an *Error.
func Code(err error) string {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return "server_error"
}

func newError(code, format string, args ...any) *Error {
	return &Error{Code: code, Description: fmt.Sprintf(format, args...)}
}

// InvalidRequest reports a missing, repeated or malformed parameter (RFC 6749 §5.2).
func InvalidRequest(format string, args ...any) *Error {
	return newError("invalid_request", format, args...)
}

// InvalidClient reports failed client authentication, status 401 (RFC 6749 §5.2).
func InvalidClient(format string, args ...any) *Error {
	e := newError("invalid_client", format, args...)
	e.Status = http.StatusUnauthorized
	return e
}

// InvalidGrant reports a code or refresh token that cannot be used (RFC 6749 §5.2).
func InvalidGrant(format string, args ...any) *Error {
	return newError("invalid_grant", format, args...)
}

// InvalidScope reports a scope beyond what may be granted (RFC 6749 §5.2).
func InvalidScope(format string, args ...any) *Error {
	return newError("invalid_scope", format, args...)
}

// InvalidTarget reports a resource the server will not issue tokens for (RFC 8707 §2).
func InvalidTarget(format string, args ...any) *Error {
	return newError("invalid_target", format, args...)
}

// UnauthorizedClient reports a grant the client may not use (RFC 6749 §5.2).
func UnauthorizedClient(format string, args ...any) *Error {
	return newError("unauthorized_client", format, args...)
}

// UnsupportedGrantType reports a grant_type the server does not have (RFC 6749 §5.2).
func UnsupportedGrantType(format string, args ...any) *Error {
	return newError("unsupported_grant_type", format, args...)
}

// UnsupportedTokenType reports a token that is genuine and cannot be revoked (RFC
// 7009 §2.2.1).
func UnsupportedTokenType(format string, args ...any) *Error {
	return newError("unsupported_token_type", format, args...)
}

// UnsupportedResponseType reports a response_type other than code (RFC 6749 §4.1.2.1).
func UnsupportedResponseType(format string, args ...any) *Error {
	return newError("unsupported_response_type", format, args...)
}

// AccessDenied reports that the person or the policy refused (RFC 6749 §4.1.2.1).
func AccessDenied(format string, args ...any) *Error {
	return newError("access_denied", format, args...)
}

// LoginRequired answers prompt=none without a session (OpenID Connect Core §3.1.2.6).
func LoginRequired(format string, args ...any) *Error {
	return newError("login_required", format, args...)
}

// ConsentRequired answers prompt=none without remembered consent (OpenID Connect Core §3.1.2.6).
func ConsentRequired(format string, args ...any) *Error {
	return newError("consent_required", format, args...)
}

// InvalidRedirectURI reports a redirect URI that may not be registered (RFC 7591 §3.2.2).
func InvalidRedirectURI(format string, args ...any) *Error {
	return newError("invalid_redirect_uri", format, args...)
}

// InvalidClientMetadata reports client metadata that may not be registered (RFC 7591 §3.2.2).
func InvalidClientMetadata(format string, args ...any) *Error {
	return newError("invalid_client_metadata", format, args...)
}

// Unavailable reports overload or a store that does not answer: status 503 with
// Retry-After, never invalid_grant and never a bare 500 (rule A21).
func Unavailable(retryAfter time.Duration, cause error) *Error {
	return &Error{Code: "temporarily_unavailable", Description: "the server is busy; try again shortly",
		Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: cause}
}

// TooManyRequests reports a rate limit: status 429 with Retry-After (rule A15).
func TooManyRequests(retryAfter time.Duration) *Error {
	return &Error{Code: "temporarily_unavailable", Description: "too many requests; try again later",
		Status: http.StatusTooManyRequests, RetryAfter: retryAfter}
}
