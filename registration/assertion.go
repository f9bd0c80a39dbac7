package registration

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// AssertionType is the client_assertion_type of private_key_jwt (RFC 7523 §2.2).
const AssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// Bounds of a client assertion.
const (
	maxAssertion = 8 << 10 // bytes
	maxJTI       = 512
	maxIssuer    = 2 << 10 // a client_id may be a URL
	// maxAssertionLife is how far ahead exp may be; RFC 7523 §3 lets us refuse
	// what is unreasonable, and so long must a used jti be kept.
	maxAssertionLife = 5 * time.Minute
	// assertionSkew is how far the client's clock may be off.
	assertionSkew = time.Minute
)

// ErrAssertion reports an assertion that does not authenticate its client.
// Why is for the log: the client learns no more than with a wrong secret (CA-02).
var ErrAssertion = errors.New("client assertion refused")

// Assertion is a client assertion that says the right things (RFC 7523 §3) about
// whoever may have signed it. Nothing in it is proven before Assertions.Check.
type Assertion struct {
	// ClientID is its iss and sub.
	ClientID string

	jwt       *signedJWT
	jtiHash   []byte
	expiresAt time.Time
}

// AssertionStore remembers the assertions that were used. internal/sqlstore
// implements it.
type AssertionStore interface {
	// UseAssertion reports whether the client did not use this jti before, and
	// remembers it until expiresAt. One statement decides, so of concurrent
	// callers in any process one is told true.
	UseAssertion(ctx context.Context, clientID string, jtiHash []byte, expiresAt, now time.Time) (bool, error)
}

// Assertions authenticate clients by private_key_jwt (RFC 7521 §4.2, RFC 7523
// §2.2, draft-ietf-oauth-rfc7523bis). It is safe for concurrent use.
type Assertions struct {
	// Issuer and TokenEndpoint are the audiences: an assertion names exactly one
	// of them, and nobody else.
	Issuer, TokenEndpoint string
	// Keys find the clients' keys, Used remembers. Required.
	Keys *ClientKeys
	Used AssertionStore
}

// Read parses an assertion and applies every rule that needs neither client nor
// key; the error, invalid_client, says which was broken.
func (a *Assertions) Read(raw oauth.Secret, now time.Time) (*Assertion, error) {
	jwt, err := readSignedJWT(raw.Reveal(), maxAssertion)
	if err != nil {
		return nil, refuse("%s", err)
	}
	// draft-ietf-oauth-rfc7523bis §4 has a type of its own; RFC 7523 none, and
	// clients in use send JWT or nothing. Any other is another kind of token.
	if !slices.Contains([]string{"", "jwt", "client-authentication+jwt"}, jwt.typ) {
		return nil, refuse("has a typ that is neither client-authentication+jwt nor JWT")
	}
	as := &Assertion{jwt: jwt}
	return as, a.readClaims(as, now)
}

// Check proves that c made the assertion and uses it up, as the last step: what
// is refused uses nothing up (A18). ErrAssertion and *oauth.Error are the
// client's failures, any other error is ours.
func (a *Assertions) Check(ctx context.Context, c *Client, as *Assertion, now time.Time) error {
	if want := c.Metadata.TokenEndpointAuthSigningAlg; want != "" && want != as.jwt.alg.String() {
		return fmt.Errorf("%w: alg is not the registered token_endpoint_auth_signing_alg", ErrAssertion)
	}
	key, err := a.Keys.find(ctx, c, as.jwt.keyID, as.jwt.alg)
	if errors.Is(err, errKeysAway) {
		return oauth.Unavailable(clientKeysRetry, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAssertion, err)
	}
	if err := key.Verify(as.jwt.alg, as.jwt.signed, as.jwt.signature); err != nil {
		return fmt.Errorf("%w: the signature is not valid: %w", ErrAssertion, err)
	}
	fresh, err := a.Used.UseAssertion(ctx, c.ID, as.jtiHash, as.expiresAt.Add(assertionSkew), now)
	if err != nil {
		return err
	}
	if !fresh {
		return refuse("was used before: each request needs one with a new jti")
	}
	return nil
}

// refuse reports an assertion that breaks a rule which its maker can mend.
func refuse(format string, args ...any) *oauth.Error {
	return oauth.InvalidClient("client_assertion "+format, args...)
}

// readClaims applies RFC 7523 §3.
func (a *Assertions) readClaims(as *Assertion, now time.Time) error {
	c := as.jwt.claims
	var iss, sub, jti string
	if err := errors.Join(c.string("iss", &iss, maxIssuer), c.string("sub", &sub, maxIssuer), c.string("jti", &jti, maxJTI)); err != nil {
		return refuse("has an iss, sub or jti that is no string or too long")
	}
	if iss == "" || iss != sub {
		return refuse("must have the client_id as iss and as sub")
	}
	// draft-ietf-oauth-rfc7523bis §4: an assertion for several servers could be
	// passed on by one of them
	if aud := c.audience(); aud != a.Issuer && aud != a.TokenEndpoint {
		return refuse("must have one aud, the issuer or the token endpoint")
	}
	if jti == "" {
		return refuse("must have a jti")
	}
	as.ClientID = iss
	sum := sha256.Sum256([]byte(jti))
	as.jtiHash = sum[:]
	return as.readTimes(c, now)
}

func (as *Assertion) readTimes(c members, now time.Time) error {
	exp, ok := c.seconds("exp")
	switch {
	case !ok:
		return refuse("must have exp, in seconds")
	case !now.Before(exp.Add(assertionSkew)):
		return refuse("has expired")
	case exp.After(now.Add(maxAssertionLife + assertionSkew)):
		return refuse("has an exp more than %d minutes ahead", maxAssertionLife/time.Minute)
	}
	as.expiresAt = exp
	for _, name := range []string{"iat", "nbf"} {
		if at, ok := c.seconds(name); c.has(name) && (!ok || at.After(now.Add(assertionSkew))) {
			return refuse("has an %s in the future, or not in seconds", name)
		}
	}
	if iat, ok := c.seconds("iat"); ok && exp.Sub(iat) > maxAssertionLife+assertionSkew {
		return refuse("is valid for more than %d minutes from its iat", maxAssertionLife/time.Minute)
	}
	return nil
}

// audience returns the one value of aud, a string or a list of one; "" otherwise.
func (m members) audience() string {
	var one string
	if json.Unmarshal(m["aud"], &one) == nil {
		return one
	}
	var list []string
	if json.Unmarshal(m["aud"], &list) != nil || len(list) != 1 {
		return ""
	}
	return list[0]
}

// seconds reads a NumericDate (RFC 7519 §2).
func (m members) seconds(name string) (time.Time, bool) { return strictjson.Seconds(m[name]) }
