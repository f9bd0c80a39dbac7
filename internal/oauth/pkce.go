package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

// CheckCodeChallenge applies OAuth 2.1 §4.1.1 and RFC 7636 §4.3: every
// authorization request carries an S256 code_challenge. A missing method would
// mean plain (RFC 7636 §4.3), so it is refused too.
func CheckCodeChallenge(challenge, method string) error {
	switch {
	case challenge == "":
		return InvalidRequest("code_challenge is required (PKCE, RFC 7636)")
	case method == "":
		return InvalidRequest("code_challenge_method is required and must be S256")
	case method != "S256":
		return InvalidRequest("code_challenge_method must be S256")
	case !isS256Challenge(challenge):
		return InvalidRequest("code_challenge must be 43 characters of base64url, as S256 makes it")
	}
	return nil
}

// isS256Challenge reports whether s can be BASE64URL(SHA256(verifier)): 43
// characters whose last one carries no stray bits (RFC 7636 §4.2).
func isS256Challenge(s string) bool {
	if len(s) != 43 {
		return false
	}
	for i := range len(s) {
		if !isBase64URL(s[i]) {
			return false
		}
	}
	_, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil
}

// CheckCodeVerifier applies the syntax of RFC 7636 §4.1: 43 to 128 unreserved
// characters.
func CheckCodeVerifier(verifier string) error {
	if verifier == "" {
		return InvalidRequest("code_verifier is required (PKCE, RFC 7636)")
	}
	if len(verifier) < 43 || len(verifier) > 128 {
		return InvalidGrant("code_verifier must have 43 to 128 characters")
	}
	for i := range len(verifier) {
		if c := verifier[i]; !isBase64URL(c) && c != '.' && c != '~' {
			return InvalidGrant("code_verifier has a character outside A-Z a-z 0-9 - . _ ~")
		}
	}
	return nil
}

// VerifyCodeVerifier reports whether verifier belongs to an S256 challenge, in
// constant time (RFC 7636 §4.6). An empty challenge never matches.
func VerifyCodeVerifier(challenge, verifier string) bool {
	if challenge == "" {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	got := base64.RawURLEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(got), []byte(challenge)) == 1
}

func isBase64URL(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
