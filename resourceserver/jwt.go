package resourceserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// authority is one trusted issuer, and how its tokens are verified for this
// resource.
type authority struct {
	Issuer
	audience      string // canonical form of Options.Resource (A23)
	algorithms    []jwa.SignatureAlgorithm
	skew          time.Duration
	now           func() time.Time
	keys          *keySet
	introspection *introspector // nil unless Issuer.Introspection is set
}

// defaultAlgorithms are asymmetric and current; none and HMAC can never be configured.
var defaultAlgorithms = []jwa.SignatureAlgorithm{jwa.ES256, jwa.EdDSA, jwa.RS256, jwa.PS256}

var knownAlgorithms = []jwa.SignatureAlgorithm{jwa.ES256, jwa.ES384, jwa.ES512, jwa.EdDSA,
	jwa.RS256, jwa.RS384, jwa.RS512, jwa.PS256, jwa.PS384, jwa.PS512}

func parseAlgorithms(names []string) ([]jwa.SignatureAlgorithm, error) {
	if names == nil {
		return defaultAlgorithms, nil
	}
	if len(names) == 0 {
		return nil, errors.New("Options.Algorithms is empty: leave it nil for the default")
	}
	var algs []jwa.SignatureAlgorithm
	for _, n := range names {
		alg := jwa.SignatureAlgorithm(n)
		if !slices.Contains(knownAlgorithms, alg) {
			return nil, fmt.Errorf("Options.Algorithms: %q is not a supported asymmetric signature algorithm", n)
		}
		algs = append(algs, alg)
	}
	return algs, nil
}

// signedJWT is a compact JWS (RFC 7515 §3.1) taken apart; nothing in it is checked.
type signedJWT struct {
	header, claims claimSet
	signed         string // what the signature is over
	signature      []byte
	// most tokens fit here, and so on the stack
	headerArray [8]claim
	claimsArray [24]claim
}

// errNotJWT tells a token of another form, which only its issuer can read: it has
// not three segments, or the first is no JOSE header.
var errNotJWT = invalidToken("the token is not a signed JWT")

// split takes raw apart into j.
func (j *signedJWT) split(raw string) error {
	head, rest, ok := strings.Cut(raw, ".")
	payload, signature, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || strings.Contains(signature, ".") { // five segments would be a JWE
		return errNotJWT
	}
	buf := make([]byte, 0, base64.RawURLEncoding.DecodedLen(len(raw)))
	headerJSON, buf, err := decodeSegment(buf, head)
	if err != nil {
		return errNotJWT
	}
	if j.header, err = readClaimSet(headerJSON, j.headerArray[:0]); err != nil || !j.header.has("alg") {
		return errNotJWT
	}
	claimsJSON, buf, err := decodeSegment(buf, payload)
	if err != nil {
		return invalidToken("the token's payload is not base64url")
	}
	if j.signature, _, err = decodeSegment(buf, signature); err != nil {
		return invalidToken("the token's signature is not base64url")
	}
	if j.claims, err = readClaimSet(claimsJSON, j.claimsArray[:0]); err != nil {
		return invalidToken("the token's claims are not a JSON object with unique members")
	}
	j.signed = raw[:len(head)+1+len(payload)]
	return nil
}

// verifyJWT applies RFC 9068 §4. What costs nothing comes first: no key is looked
// for, and no signature computed, for a token that would be refused anyway.
func (a *authority) verifyJWT(ctx context.Context, j *signedJWT) (*Token, *key, error) {
	alg, kid, err := a.readHeader(j.header)
	if err != nil {
		return nil, nil, err
	}
	token, err := a.readClaims(j.claims)
	if err != nil {
		return nil, nil, err
	}
	key, err := a.keys.find(ctx, kid, alg)
	if err != nil {
		return nil, nil, err
	}
	if err := key.verify(alg, j.signed, j.signature); err != nil {
		e := invalidToken("the token's signature is not valid")
		e.err = err
		return nil, nil, e
	}
	return token, key, nil
}

// readHeader applies RFC 9068 §4 and RFC 8725 §3 to the JOSE header. Members
// that point at keys (jwk, jku, x5c, x5u) are never used.
func (a *authority) readHeader(h claimSet) (alg jwa.SignatureAlgorithm, kid string, err error) {
	// RFC 9068 §4: anything else may be another kind of JWT of the same issuer (JW-13).
	if !a.Profile.allowsType(h) {
		return "", "", invalidToken("the token's typ is not that of an access token")
	}
	name := h.get("alg")
	i := slices.IndexFunc(a.algorithms, func(known jwa.SignatureAlgorithm) bool { return isString(name, string(known)) })
	if i < 0 {
		return "", "", invalidToken("the token's signature algorithm is not accepted")
	}
	// RFC 7515 §4.1.11: an extension marked critical that we do not know; we know none.
	if h.has("crit") || h.has("b64") || h.has("zip") {
		return "", "", invalidToken("the token's header has an extension that is not supported")
	}
	kid, ok := h.str("kid")
	if h.has("kid") && !ok {
		return "", "", invalidToken("the token's kid is not a string")
	}
	return a.algorithms[i], kid, nil
}

// readClaims applies RFC 9068 §4 to the claims.
func (a *authority) readClaims(c claimSet) (*Token, error) {
	if !c.is("iss", a.Identifier) {
		return nil, invalidToken("the token was not issued by this server's authorization server")
	}
	return a.readToken(c)
}

// readToken checks what a JWT and an introspection response have in common.
func (a *authority) readToken(c claimSet) (*Token, error) {
	t := &Token{Issuer: a.Identifier}
	if t.Audience = a.readAudience(c); t.Audience == nil {
		return nil, invalidToken("the token was issued for another resource")
	}
	if !a.Profile.isAccessToken(c) {
		return nil, invalidToken("the token's claims are not those of an access token")
	}
	// RFC 9449 §7.1, RFC 8705 §3: a bound token is worth nothing without its proof (JW-21).
	if c.has("cnf") {
		return nil, invalidToken("the token is bound to a key and cannot be used as a bearer token")
	}
	if err := a.readTimes(c, t); err != nil {
		return nil, err
	}
	if t.Subject, _ = c.str("sub"); t.Subject == "" {
		return nil, invalidToken("the token has no sub")
	}
	t.ClientID = clientOf(c)
	t.ID, _ = c.str("jti")
	t.Scopes = a.readScopes(c)
	return t, nil
}

// readAudience returns aud when it has this resource, else nil.
func (a *authority) readAudience(c claimSet) []string {
	if c.is("aud", a.audience) { // the usual case, without a copy
		return []string{a.audience}
	}
	aud := c.strs("aud")
	if !slices.ContainsFunc(aud, a.isAudience) {
		return nil
	}
	return aud
}

// isAudience compares canonically (A23, M7): the issuer's identifier and the
// client_id are never equal to a resource's.
func (a *authority) isAudience(aud string) bool {
	if aud == a.audience || slices.Contains(a.AllowAudiences, aud) {
		return true
	}
	canonical, err := oauth.CanonicalResource(aud)
	return err == nil && canonical == a.audience
}

func (a *authority) readTimes(c claimSet, t *Token) error {
	now := a.now()
	exp, ok := c.seconds("exp")
	if !ok {
		return invalidToken("the token has no usable exp")
	}
	if t.ExpiresAt = exp; !now.Before(exp.Add(a.skew)) {
		return invalidToken("the token has expired")
	}
	var notBefore time.Time
	for _, claim := range [...]struct {
		name string
		at   *time.Time
		past bool // must not lie in the future
	}{{"iat", &t.IssuedAt, true}, {"nbf", &notBefore, true}, {"auth_time", &t.AuthTime, false}} {
		if !c.has(claim.name) {
			continue
		}
		at, ok := c.seconds(claim.name)
		if !ok {
			return invalidToken("the token's %s is not a number of seconds", claim.name)
		}
		if claim.past && at.After(now.Add(a.skew)) {
			return invalidToken("the token's %s is in the future", claim.name)
		}
		*claim.at = at
	}
	return nil
}

// base64URL is strict, so that a token has one spelling only.
var base64URL = base64.RawURLEncoding.Strict()

// decodeSegment decodes a segment that is not empty behind what buf holds, and
// returns it and the rest of buf.
func decodeSegment(buf []byte, s string) (segment, rest []byte, err error) {
	if s == "" || strings.ContainsAny(s, "\r\n") { // which Decode would leave out
		return nil, nil, errors.New("empty, or line break in base64url")
	}
	from := len(buf)
	if buf, err = base64URL.AppendDecode(buf, []byte(s)); err != nil {
		return nil, nil, err
	}
	return buf[from:len(buf):len(buf)], buf, nil
}
