package oauth_test

import (
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// The pair of RFC 7636 appendix B.
const (
	rfcVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	rfcChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func TestCheckCodeChallenge(t *testing.T) {
	for _, tt := range []struct{ name, challenge, method, want string }{
		{"RFC 7636 appendix B", rfcChallenge, "S256", ""},
		{"PK-01 none", "", "S256", "invalid_request"},
		{"PK-02 plain", rfcVerifier, "plain", "invalid_request"},
		{"PK-02 lower case", rfcChallenge, "s256", "invalid_request"},
		{"PK-03 no method", rfcChallenge, "", "invalid_request"},
		{"one short", rfcChallenge[:42], "S256", "invalid_request"},
		{"one long", rfcChallenge + "A", "S256", "invalid_request"},
		{"standard base64", rfcChallenge[:42] + "/", "S256", "invalid_request"},
		{"stray bits in the last character", rfcChallenge[:42] + "N", "S256", "invalid_request"},
		{"junk", "x", "S256", "invalid_request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oauth.Code(oauth.CheckCodeChallenge(tt.challenge, tt.method)); got != tt.want {
				t.Errorf("code = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVerifyCodeVerifier(t *testing.T) {
	for _, tt := range []struct {
		name, challenge, verifier string
		want                      bool
	}{
		{"RFC 7636 appendix B", rfcChallenge, rfcVerifier, true},
		{"PK-06 another verifier", rfcChallenge, rfcVerifier[:42] + "l", false},
		{"PK-06 the challenge itself", rfcChallenge, rfcChallenge, false},
		{"PK-08 no challenge stored", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oauth.VerifyCodeVerifier(tt.challenge, tt.verifier); got != tt.want {
				t.Errorf("VerifyCodeVerifier = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestCheckCodeVerifier(t *testing.T) {
	for _, tt := range []struct{ name, verifier, want string }{
		{"43 characters", rfcVerifier, ""},
		{"128 characters of every kind", strings.Repeat("aZ9-._~x", 16), ""},
		{"PK-05 none", "", "invalid_request"},
		{"42 characters", rfcVerifier[:42], "invalid_grant"},
		{"129 characters", strings.Repeat("a", 129), "invalid_grant"},
		{"a space", strings.Repeat("a", 43) + " ", "invalid_grant"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oauth.Code(oauth.CheckCodeVerifier(tt.verifier)); got != tt.want {
				t.Errorf("code = %q, want %q", got, tt.want)
			}
		})
	}
}
