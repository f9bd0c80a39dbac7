package resourceserver

import (
	"context"
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

// verifier checks JWT access tokens (RFC 9068 §4) of one issuer for one audience.
type verifier struct {
	issuer     string
	audience   string // canonical
	algorithms []jwa.SignatureAlgorithm
	skew       time.Duration
	now        func() time.Time
	keys       *keySet
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

// verify returns the token that raw carries. Whatever is wrong with raw is a
// 401 refusal; keys that cannot be had are a 503 refusal.
func (v *verifier) verify(ctx context.Context, raw string) (*Token, error) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 { // five would be a JWE
		return nil, invalidToken("the token is not a signed JWT")
	}
	alg, kid, err := v.readHeader(parts[0])
	if err != nil {
		return nil, err
	}
	payload, err := decodeSegment(parts[1])
	if err != nil || len(payload) == 0 {
		return nil, invalidToken("the token's payload is not base64url")
	}
	signature, err := decodeSegment(parts[2])
	if err != nil || len(signature) == 0 {
		return nil, invalidToken("the token's signature is not base64url")
	}
	key, err := v.keys.find(ctx, kid, alg)
	if err != nil {
		return nil, err
	}
	signed := raw[:len(parts[0])+1+len(parts[1])]
	if err := key.verify(alg, []byte(signed), signature); err != nil {
		e := invalidToken("the token's signature is not valid")
		e.err = err
		return nil, e
	}
	return v.readClaims(payload)
}

// readHeader applies RFC 9068 §4 and RFC 8725 §3 to the JOSE header. Members
// that point at keys (jwk, jku, x5c, x5u) are never used.
func (v *verifier) readHeader(segment string) (alg jwa.SignatureAlgorithm, kid string, err error) {
	b, err := decodeSegment(segment)
	if err != nil {
		return "", "", invalidToken("the token's header is not base64url")
	}
	h, err := readObject(b)
	if err != nil {
		return "", "", invalidToken("the token's header is not a JSON object with unique members")
	}
	typ, _ := h.str("typ")
	// RFC 9068 §4: anything else may be another kind of JWT of the same issuer (JW-13).
	if typ != oauth.TypeAccessToken && typ != "application/"+oauth.TypeAccessToken {
		return "", "", invalidToken("the token's typ is not " + oauth.TypeAccessToken + ": it is not an access token")
	}
	name, _ := h.str("alg")
	if alg = jwa.SignatureAlgorithm(name); !slices.Contains(v.algorithms, alg) {
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
	return alg, kid, nil
}

// readClaims applies RFC 9068 §4 to the signed claims. Names are compared by
// exact case: encoding/json would take "AUD" or "iſs" for ours (JW-18).
func (v *verifier) readClaims(payload []byte) (*Token, error) {
	c, err := readObject(payload)
	if err != nil {
		return nil, invalidToken("the token's claims are not a JSON object with unique members")
	}
	t := &Token{}
	if t.Issuer, _ = c.str("iss"); t.Issuer != v.issuer {
		return nil, invalidToken("the token was not issued by this server's authorization server")
	}
	if t.Audience = c.strs("aud"); !v.isAudience(t.Audience) {
		return nil, invalidToken("the token was issued for another resource")
	}
	// RFC 9449 §7.1, RFC 8705 §3: a bound token is worth nothing without its proof (JW-21).
	if c.has("cnf") {
		return nil, invalidToken("the token is bound to a key and cannot be used as a bearer token")
	}
	if err := v.readTimes(c, t); err != nil {
		return nil, err
	}
	if t.Subject, _ = c.str("sub"); t.Subject == "" {
		return nil, invalidToken("the token has no sub")
	}
	t.ClientID, _ = c.str("client_id")
	t.ID, _ = c.str("jti")
	t.Scopes = readScope(c)
	return t, nil
}

// isAudience compares canonically (A23, M7): the issuer's identifier and the
// client_id are never equal to a resource's.
func (v *verifier) isAudience(aud []string) bool {
	return slices.ContainsFunc(aud, func(a string) bool {
		if a == v.audience {
			return true
		}
		canonical, err := oauth.CanonicalResource(a)
		return err == nil && canonical == v.audience
	})
}

func (v *verifier) readTimes(c object, t *Token) error {
	now := v.now()
	exp, ok := c.seconds("exp")
	if !ok {
		return invalidToken("the token has no usable exp")
	}
	if t.ExpiresAt = exp; !now.Before(exp.Add(v.skew)) {
		return invalidToken("the token has expired")
	}
	for name, at := range map[string]*time.Time{"iat": &t.IssuedAt, "nbf": new(time.Time), "auth_time": &t.AuthTime} {
		if !c.has(name) {
			continue
		}
		if *at, ok = c.seconds(name); !ok {
			return invalidToken("the token's %s is not a number of seconds", name)
		}
		if name != "auth_time" && at.After(now.Add(v.skew)) {
			return invalidToken("the token's %s is in the future", name)
		}
	}
	return nil
}

// readScope returns the scope claim's values (RFC 9068 §2.2.3: a string of
// space-separated values). Anything else grants nothing, never everything (JW-20).
func readScope(c object) []string {
	raw, ok := c.str("scope")
	if !ok {
		return nil
	}
	scopes, err := oauth.ParseScope(raw)
	if err != nil {
		return nil
	}
	return scopes
}

// decodeSegment is strict: no newline and no stray bits, so that a token has
// one spelling only.
func decodeSegment(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("line break in base64url")
	}
	return base64.RawURLEncoding.Strict().DecodeString(s)
}

// seconds reads a NumericDate (RFC 7519 §2): whole or fractional seconds
// within what a time.Time and a sane issuer can mean.
func (o object) seconds(name string) (time.Time, bool) {
	raw, ok := o[name]
	if !ok || len(raw) == 0 || raw[0] == '"' {
		return time.Time{}, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1<<40 {
		return time.Time{}, false
	}
	whole, frac := math.Modf(f)
	return time.Unix(int64(whole), int64(frac*1e9)), true
}

// strs reads a string or an array of strings; anything else is nil.
func (o object) strs(name string) []string {
	if s, ok := o.str(name); ok {
		return []string{s}
	}
	var raws []json.RawMessage
	if json.Unmarshal(o[name], &raws) != nil {
		return nil
	}
	list := make([]string, 0, len(raws))
	for _, raw := range raws {
		s, ok := readString(raw)
		if !ok {
			return nil
		}
		list = append(list, s)
	}
	return list
}
