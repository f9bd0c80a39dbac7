package authclient

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	authKey = "private_key_jwt"
	// typeAssertion is client_assertion_type (RFC 7523 §2.2).
	typeAssertion = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// assertionLife is how long an assertion is good for: it is used at once.
	assertionLife = time.Minute
)

// keyAuth proves a client by an assertion that its key signs (private_key_jwt).
type keyAuth struct {
	clientID string
	key      *SigningKey
}

// authenticate implements clientAuth. The assertion names one audience, the issuer:
// whoever gets it cannot use it elsewhere (draft-ietf-oauth-rfc7523bis §4).
func (k keyAuth) authenticate(as *authorizationServer, form url.Values, _ http.Header, now time.Time) error {
	a, err := k.key.algorithmFor(as.TokenEndpointAuthSigningAlgValuesSupported)
	if err != nil {
		return err
	}
	header := map[string]any{"typ": "JWT"}
	if k.key.ID != "" {
		header["kid"] = k.key.ID
	}
	assertion, err := signJWT(k.key.Signer, a, header, map[string]any{
		"iss": k.clientID, "sub": k.clientID, "aud": as.Issuer, "jti": randomID(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return fmt.Errorf("make a client assertion: %w", err)
	}
	form.Set("client_id", k.clientID)
	form.Set("client_assertion_type", typeAssertion)
	form.Set("client_assertion", assertion)
	return nil
}
