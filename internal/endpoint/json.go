package endpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// retryAfter is what a client is told to wait when the database is away.
const retryAfter = 2 * time.Second

// JSON makes a handler of an OAuth endpoint: its answers are never cached or
// sniffed, and an error it returns becomes a JSON error (RFC 6749 §5.2). What
// is no *oauth.Error becomes temporarily_unavailable or server_error; its cause
// is logged and never sent (LG-03).
func (e *Edge) JSON(fn HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, r := record(w, r)
		noStore(rec.Header())
		err := run(fn, rec, r)
		if err == nil {
			return
		}
		oe := e.oauthError(err)
		e.logFailure(r, oe.HTTPStatus(), err)
		if !rec.started() {
			writeError(rec, oe)
		}
	})
}

// WriteJSON writes v as the body of an answer. It encodes before it writes, so
// that an error it returns can still become an error response.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

func noStore(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// oauthError returns the error response for err.
func (e *Edge) oauthError(err error) *oauth.Error {
	var oe *oauth.Error
	if errors.As(err, &oe) {
		return oe
	}
	var pe *PageError
	if errors.As(err, &pe) {
		return &oauth.Error{Code: "invalid_request", Status: pe.Status, Description: pe.Page.Code, Err: pe.Err}
	}
	if isTooLarge(err) {
		return &oauth.Error{Code: "invalid_request", Status: http.StatusRequestEntityTooLarge,
			Description: "the body is too large", Err: err}
	}
	if e.isUnavailable(err) {
		return oauth.Unavailable(retryAfter, err)
	}
	return &oauth.Error{Code: "server_error", Status: http.StatusInternalServerError,
		Description: "the server met a condition it did not expect", Err: err}
}

func writeError(w http.ResponseWriter, oe *oauth.Error) {
	h := w.Header()
	noStore(h)
	if oe.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(wholeSeconds(oe.RetryAfter)))
	}
	if oe.Challenge != "" {
		h.Set("WWW-Authenticate", oe.Challenge)
	}
	body := struct {
		Error       string `json:"error"`
		Description string `json:"error_description,omitempty"`
	}{oe.Code, describe(oe.Description)}
	// Two strings always encode, and a failed write has nobody left to tell.
	_ = WriteJSON(w, oe.HTTPStatus(), body)
}

// describe keeps the characters that error_description may hold (RFC 6749
// §5.2: %x20-21, %x23-5B, %x5D-7E).
func describe(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < 0x20, r > 0x7e, r == '\\':
			return -1
		}
		return r
	}, s)
}

// wholeSeconds rounds up: a client that waits as long as told must not be early.
func wholeSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}
