package registration

import (
	"net/http"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// registrationTokenPrefix lets people and secret scanners tell what a string is.
const registrationTokenPrefix = "ost_rat_"

// newRegistrationToken returns a registration access token of 256 random bits (RFC 7592 §3).
func newRegistrationToken() oauth.Secret {
	return oauth.Secret(registrationTokenPrefix + oauth.NewSecret().Reveal())
}

// HashRegistrationToken returns what is stored of a client's registration access
// token (D16). The client_id stands under it: another client's token never fits.
func HashRegistrationToken(clientID string, token oauth.Secret) []byte {
	return oauth.HashSecret("ostiary registration access token v1", clientID, token)
}

// CheckRegistrationToken compares in constant time; a client without a stored
// hash never matches.
func (c *Client) CheckRegistrationToken(token oauth.Secret) bool {
	return oauth.SameHash(c.RegistrationTokenHash, HashRegistrationToken(c.ID, token))
}

// bearer returns the bearer token of a request, "" for none (RFC 6750 §2.1). It
// is read from the header alone: a query is logged, and a form is not ours.
func bearer(r *http.Request) (oauth.Secret, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", unauthorized("Authorization must be one bearer token", true)
	}
	return oauth.Secret(token), nil
}

// unauthorized is the answer to a token that is missing or, when one was sent,
// not valid (RFC 6750 §3: the challenge names an error only then).
func unauthorized(description string, sent bool) *oauth.Error {
	challenge := oauth.Challenge{Scheme: "Bearer"}
	if sent {
		challenge.Params = [][2]string{{"error", "invalid_token"}}
	}
	return &oauth.Error{Code: "invalid_token", Status: http.StatusUnauthorized, Description: description,
		Challenge: challenge.String()}
}
