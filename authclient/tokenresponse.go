package authclient

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Types of access tokens (RFC 6750, RFC 9449), as they are written in Authorization.
const (
	typeBearer = "Bearer"
	typeDPoP   = "DPoP"
)

// tokenRequest is one request to a token endpoint.
type tokenRequest struct {
	form url.Values
	auth clientAuth // nil: the form has all that proves the client
	// prover is nil for bearer tokens. Nonces are remembered and a use_dpop_nonce is
	// answered once by token itself.
	prover prover
}

// tokenResponse is a successful answer of a token endpoint, checked (RFC 6749 §5.1).
type tokenResponse struct {
	AccessToken  Secret
	TokenType    string // typeBearer or typeDPoP
	RefreshToken Secret
	Expiry       time.Time // zero: the server did not say
	Scope        []string  // nil: the server did not say, so as asked for
	// IssuedTokenType is issued_token_type (RFC 8693 §2.2.1); "" is absent.
	IssuedTokenType string
}

// maxToken bounds a token, in bytes: it goes into a header.
const maxToken = 64 << 10

// readTokenResponse reads an answer of status 200. Anything that is not a token of
// the type that was asked for is an error, and nothing of it is used (MM-16).
func readTokenResponse(a *answer, bound bool, now time.Time) (*tokenResponse, error) {
	if t, _, err := mime.ParseMediaType(a.header.Get("Content-Type")); err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
		return nil, errors.New("the token endpoint's answer is not JSON")
	}
	o, err := readObject(a.body)
	if err != nil {
		return nil, fmt.Errorf("token endpoint: %w", err)
	}
	if o.Has("error") { // some servers answer so with status 200
		return nil, readServerError("token", a, now)
	}
	r := &tokenResponse{}
	if err := r.readTokens(o, bound); err != nil {
		return nil, fmt.Errorf("token endpoint: %w", err)
	}
	r.Expiry = readExpiry(o, now)
	if scope, ok := o.Str("scope"); ok {
		if r.Scope, err = oauth.ParseScope(scope); err != nil {
			return nil, errors.New("token endpoint: the scope of the answer cannot be read")
		}
	}
	r.IssuedTokenType, _ = o.Str("issued_token_type")
	return r, nil
}

func (r *tokenResponse) readTokens(o strictjson.Object, bound bool) error {
	access, ok := o.Str("access_token")
	if !ok || access == "" || len(access) > maxToken || !isVisible(access) {
		return errors.New("the answer has no access_token that can be sent")
	}
	r.AccessToken = Secret(access)
	kind, _ := o.Str("token_type")
	switch {
	case strings.EqualFold(kind, typeBearer):
		r.TokenType = typeBearer
	case strings.EqualFold(kind, typeDPoP) && bound:
		r.TokenType = typeDPoP
	case strings.EqualFold(kind, "N_A"): // RFC 8693 §2.2.1: what was issued is no access token
		r.TokenType = "N_A"
	default:
		return fmt.Errorf("token_type %s is not one that was asked for", quoted(kind))
	}
	refresh, _ := o.Str("refresh_token")
	if len(refresh) > maxToken {
		return errors.New("the refresh_token is too long")
	}
	r.RefreshToken = Secret(refresh)
	return nil
}

// readExpiry reads expires_in, which some servers send as a string. Zero is unknown.
func readExpiry(o strictjson.Object, now time.Time) time.Time {
	raw := string(o.Get("expires_in"))
	if s, ok := o.Str("expires_in"); ok {
		raw = s
	}
	seconds, err := strconv.ParseFloat(raw, 64)
	if err != nil || !(seconds >= 0 && seconds <= 10*365*24*3600) { // NaN is neither
		return time.Time{}
	}
	return now.Add(time.Duration(seconds * float64(time.Second)))
}

// readServerError reads an error response (RFC 6749 §5.2), or what stands in its
// place: a page, nothing.
func readServerError(what string, a *answer, now time.Time) *ServerError {
	e := &ServerError{Endpoint: what, Status: a.status, RetryAfter: readRetryAfter(a.header, now)}
	if o, err := readObject(a.body); err == nil {
		code, _ := o.Str("error")
		description, _ := o.Str("error_description")
		e.Code, e.Description = a.withoutEchoes(code), a.withoutEchoes(description)
	}
	return e
}

// maxRetryAfter bounds how long a server can keep us waiting.
const maxRetryAfter = 10 * time.Minute

// readRetryAfter reads Retry-After: seconds or a date (RFC 9110 §10.2.3).
func readRetryAfter(h http.Header, now time.Time) time.Duration {
	raw := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(raw, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(raw); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	return 0
}

// isVisible reports visible ASCII: what fits into a header.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
