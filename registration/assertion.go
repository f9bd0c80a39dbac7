package registration

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/ostiary-auth/ostiary/internal/oauth"
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

	alg               jwa.SignatureAlgorithm
	keyID             string
	jtiHash           []byte
	expiresAt         time.Time
	signed, signature []byte
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
	compact := raw.Reveal()
	if len(compact) > maxAssertion {
		return nil, refuse("is larger than %d bytes", maxAssertion)
	}
	parts := strings.Split(compact, ".")
	if len(parts) != 3 { // five would be a JWE
		return nil, refuse("is not a signed JWT in compact form")
	}
	var decoded [3][]byte
	for i, part := range parts {
		b, err := decodeSegment(part)
		if err != nil || len(b) == 0 {
			return nil, refuse("is not three parts in base64url without padding")
		}
		decoded[i] = b
	}
	as := &Assertion{signed: []byte(compact[:len(parts[0])+1+len(parts[1])]), signature: decoded[2]}
	if err := as.readHeader(decoded[0]); err != nil {
		return nil, err
	}
	return as, a.readClaims(as, decoded[1], now)
}

// Check proves that c made the assertion and uses it up, as the last step: what
// is refused uses nothing up (A18). ErrAssertion and *oauth.Error are the
// client's failures, any other error is ours.
func (a *Assertions) Check(ctx context.Context, c *Client, as *Assertion, now time.Time) error {
	if want := c.Metadata.TokenEndpointAuthSigningAlg; want != "" && want != as.alg.String() {
		return fmt.Errorf("%w: alg is not the registered token_endpoint_auth_signing_alg", ErrAssertion)
	}
	key, err := a.Keys.find(ctx, c, as.keyID, as.alg)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAssertion, err)
	}
	if err := key.verify(as.alg, as.signed, as.signature); err != nil {
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

// readHeader applies RFC 7515 §4.1 and RFC 8725 §3. Members that point at keys
// (jwk, jku, x5c, x5u) are never used: a key is the client's by registration.
func (as *Assertion) readHeader(b []byte) error {
	h, err := readObject(b)
	if err != nil {
		return refuse("has a header that is not a JSON object with unique members")
	}
	var alg, typ string
	if err := errors.Join(h.string("alg", &alg, maxWord), h.string("typ", &typ, maxWord), h.string("kid", &as.keyID, maxWord)); err != nil {
		return refuse("has an alg, typ or kid in its header that is no string or too long")
	}
	if as.alg = jwa.SignatureAlgorithm(alg); !slices.Contains(assertionAlgorithms[:], as.alg) {
		return refuse("has an alg that is none of %s", strings.Join(AssertionAlgorithms(), ", "))
	}
	// draft-ietf-oauth-rfc7523bis §4 has a type of its own; RFC 7523 none, and
	// clients in use send JWT or nothing. Any other is another kind of token.
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "client-authentication+jwt":
	default:
		return refuse("has a typ that is neither client-authentication+jwt nor JWT")
	}
	// RFC 7515 §4.1.11: an extension marked critical that we do not know; we know none
	if h.has("crit") || h.has("b64") || h.has("zip") {
		return refuse("has an extension in its header that is not supported")
	}
	return nil
}

// readClaims applies RFC 7523 §3.
func (a *Assertions) readClaims(as *Assertion, payload []byte, now time.Time) error {
	c, err := readObject(payload)
	if err != nil {
		return refuse("has claims that are not a JSON object with unique members")
	}
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

// seconds reads a NumericDate (RFC 7519 §2), within what a time.Time can mean.
func (m members) seconds(name string) (time.Time, bool) {
	f, err := strconv.ParseFloat(string(m[name]), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1<<40 {
		return time.Time{}, false
	}
	whole, frac := math.Modf(f)
	return time.Unix(int64(whole), int64(frac*1e9)), true
}

// decodeSegment is strict: no line break and no stray bits, so that an
// assertion has one spelling only.
func decodeSegment(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("line break in base64url")
	}
	return base64.RawURLEncoding.Strict().DecodeString(s)
}
