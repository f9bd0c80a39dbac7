package resourceserver

import (
	"net/http"
	"strings"
)

// maxToken bounds a token in bytes: larger ones are refused before any
// cryptography (JW-04).
const maxToken = 16 << 10

// bearerToken returns the token of the Authorization header (RFC 6750 §2.1).
// Tokens in the query or the body are never looked at (OAuth 2.1 §5.1, JW-03).
func bearerToken(h http.Header) (string, error) {
	values := h["Authorization"]
	switch {
	case len(values) == 0:
		return "", errNoToken
	case len(values) > 1:
		return "", &refusal{status: http.StatusBadRequest, code: "invalid_request",
			description: "more than one Authorization header"}
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", errNoToken
	}
	token = strings.TrimLeft(token, " ")
	if !ok || !isToken68(token) {
		return "", invalidToken("the Authorization header is not Bearer and one token")
	}
	if len(token) > maxToken {
		return "", invalidToken("the token is larger than %d bytes", maxToken)
	}
	return token, nil
}

// isToken68 applies the b64token syntax of RFC 6750 §2.1.
func isToken68(s string) bool {
	for len(s) > 0 && s[len(s)-1] == '=' {
		s = s[:len(s)-1]
	}
	for i := range len(s) {
		if !token68[s[i]] {
			return false
		}
	}
	return s != ""
}

// token68 are the bytes of a b64token but its padding: one look-up each, since
// every request has hundreds.
var token68 = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") {
		t[c] = true
	}
	return t
}()
