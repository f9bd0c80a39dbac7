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
	values := h["Authorization"] // net/http has put names into canonical form
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
	if !ok || token == "" {
		return "", errNotOneToken
	}
	if len(token) > maxToken {
		return "", invalidToken("the token is larger than %d bytes", maxToken)
	}
	return token, nil
}

// errNotOneToken refuses what follows the scheme. The verifier makes sure of the
// token's syntax, since a token that it remembers has been through that.
var errNotOneToken = invalidToken("the Authorization header is not Bearer and one token")

// isToken68 applies the b64token syntax of RFC 6750 §2.1.
func isToken68(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" {
		return false
	}
	for i := range len(body) {
		c := body[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~+/", c) >= 0) {
			return false
		}
	}
	return true
}
