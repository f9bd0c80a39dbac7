package resourceserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// authority is one trusted issuer, and how its tokens are verified for this
// resource.
type authority struct {
	Issuer
	audience      string // canonical form of Options.Resource (A23)
	algorithms    []jose.Algorithm
	skew          time.Duration
	now           func() time.Time
	keys          *keySet
	introspection *introspector // nil unless Issuer.Introspection is set
}

// defaultAlgorithms are asymmetric and current; none and HMAC can never be configured.
var defaultAlgorithms = []jose.Algorithm{jose.ES256, jose.EdDSA, jose.RS256, jose.PS256}

var knownAlgorithms = []jose.Algorithm{jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}

func parseAlgorithms(names []string) ([]jose.Algorithm, error) {
	if names == nil {
		return defaultAlgorithms, nil
	}
	if len(names) == 0 {
		return nil, errors.New("Options.Algorithms is empty: leave it nil for the default")
	}
	var algs []jose.Algorithm
	for _, n := range names {
		alg := jose.Algorithm(n)
		if !slices.Contains(knownAlgorithms, alg) {
			return nil, fmt.Errorf("Options.Algorithms: %q is not a supported asymmetric signature algorithm", n)
		}
		algs = append(algs, alg)
	}
	return algs, nil
}

// errNotJWT tells a token of another form, which only its issuer can read.
var errNotJWT = invalidToken("the token %s", jose.ErrNotJWS)

// splitJWT takes raw apart into j.
func splitJWT(j *jose.JWS, raw string) error {
	switch err := j.Split(raw); {
	case errors.Is(err, jose.ErrNotJWS):
		return errNotJWT
	case err != nil:
		return invalidToken("the token %s", err)
	}
	return nil
}

// verifyJWT applies RFC 9068 §4. What costs nothing comes first: no key is looked
// for, and no signature computed, for a token that would be refused anyway.
func (a *authority) verifyJWT(ctx context.Context, j *jose.JWS) (*Token, *jose.Key, error) {
	alg, kid, err := a.readHeader(j)
	if err != nil {
		return nil, nil, err
	}
	token, err := a.readClaims(j.Claims)
	if err != nil {
		return nil, nil, err
	}
	key, err := a.keys.find(ctx, kid, alg)
	if err != nil {
		return nil, nil, err
	}
	if err := key.Verify(alg, j.Signed, j.Signature); err != nil {
		e := invalidToken("the token's signature is not valid")
		e.err = err
		return nil, nil, e
	}
	return token, key, nil
}

// readHeader applies RFC 9068 §4 and RFC 8725 §3 to the JOSE header.
func (a *authority) readHeader(j *jose.JWS) (alg jose.Algorithm, kid string, err error) {
	// RFC 9068 §4: anything else may be another kind of JWT of the same issuer (JW-13).
	if !a.Profile.allowsType(j.Header) {
		return "", "", invalidToken("the token's typ is not that of an access token")
	}
	alg, ok := j.Algorithm(a.algorithms)
	if !ok {
		return "", "", invalidToken("the token's signature algorithm is not accepted")
	}
	if kid, err = j.KeyID(); err != nil {
		return "", "", invalidToken("the token %s", err)
	}
	return alg, kid, nil
}

// readClaims applies RFC 9068 §4 to the claims.
func (a *authority) readClaims(c strictjson.Object) (*Token, error) {
	if !c.Is("iss", a.Identifier) {
		return nil, invalidToken("the token was not issued by this server's authorization server")
	}
	return a.readToken(c)
}

// readToken checks what a JWT and an introspection response have in common.
func (a *authority) readToken(c strictjson.Object) (*Token, error) {
	t := &Token{Issuer: a.Identifier}
	if t.Audience = a.readAudience(c); t.Audience == nil {
		return nil, invalidToken("the token was issued for another resource")
	}
	if !a.Profile.isAccessToken(c) {
		return nil, invalidToken("the token's claims are not those of an access token")
	}
	// RFC 9449 §7.1, RFC 8705 §3: a bound token is worth nothing without its proof (JW-21).
	if c.Has("cnf") {
		return nil, invalidToken("the token is bound to a key and cannot be used as a bearer token")
	}
	if err := a.readTimes(c, t); err != nil {
		return nil, err
	}
	if t.Subject, _ = c.Str("sub"); t.Subject == "" {
		return nil, invalidToken("the token has no sub")
	}
	t.ClientID = clientOf(c)
	t.ID, _ = c.Str("jti")
	t.Scopes = a.readScopes(c)
	return t, nil
}

// readAudience returns aud when it has this resource, else nil.
func (a *authority) readAudience(c strictjson.Object) []string {
	if c.Is("aud", a.audience) { // the usual case, without a copy
		return []string{a.audience}
	}
	aud := c.Strs("aud")
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

func (a *authority) readTimes(c strictjson.Object, t *Token) error {
	now := a.now()
	exp, ok := c.Seconds("exp")
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
		if !c.Has(claim.name) {
			continue
		}
		at, ok := c.Seconds(claim.name)
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
