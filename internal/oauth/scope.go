package oauth

import (
	"slices"
	"strings"
)

// OfflineAccess is the scope by which some clients ask for a refresh token.
const OfflineAccess = "offline_access"

// maxScopes bounds the work one request can ask for.
const maxScopes = 200

// ParseScope splits a scope parameter (RFC 6749 §3.3) and drops repeats,
// keeping order. Spaces may repeat and lead; other characters outside the
// scope-token alphabet are invalid_scope. The empty string is no scope at all.
func ParseScope(raw string) ([]string, error) {
	var scopes []string
	for s := range strings.SplitSeq(raw, " ") {
		if s == "" || slices.Contains(scopes, s) {
			continue
		}
		if !IsScopeToken(s) {
			return nil, InvalidScope("scope has a character that RFC 6749 section 3.3 does not allow")
		}
		if len(scopes) == maxScopes {
			return nil, InvalidScope("scope lists more than %d values", maxScopes)
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}

// IsScopeToken reports whether s is one scope-token (RFC 6749 §3.3): visible
// ASCII without space, double quote and backslash, 1 to 256 characters.
func IsScopeToken(s string) bool {
	if s == "" || len(s) > 256 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// IsProtocolScope reports a scope that asks the authorization server for
// something and no resource for anything: accepted, never granted (D26, A29).
func IsProtocolScope(s string) bool {
	switch s {
	case OfflineAccess, "openid", "profile", "email":
		return true
	}
	return false
}
