// Package jose takes foreign JWTs and JWK sets apart (RFC 7515, RFC 7517, RFC 7518,
// RFC 8725) for all who must trust what is signed: the middleware, which verifies
// access tokens, and the server, which verifies client assertions and software
// statements. It knows how things are spelled and which key can check what. What a
// token must say, and whose keys count, is for its callers to know. Errors are
// worded to follow the name of what they are about.
package jose

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/lestrrat-go/jwx/v2/jwa"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Algorithm names a signature algorithm (RFC 7518 §3.1, RFC 8037 §3.1).
type Algorithm = jwa.SignatureAlgorithm

// The algorithms that can be verified. none and HMAC are not among them.
const (
	ES256 = jwa.ES256
	ES384 = jwa.ES384
	ES512 = jwa.ES512
	EdDSA = jwa.EdDSA
	RS256 = jwa.RS256
	RS384 = jwa.RS384
	RS512 = jwa.RS512
	PS256 = jwa.PS256
	PS384 = jwa.PS384
	PS512 = jwa.PS512
)

// What is wrong with a JWT.
var (
	// ErrNotJWS tells something else, such as an opaque token: it has not three
	// segments (five would be a JWE), or the first is no JOSE header.
	ErrNotJWS    = errors.New("is not a signed JWT in compact form, with an alg")
	ErrSegment   = errors.New("has a part that is not base64url without padding")
	ErrClaims    = errors.New("has claims that are not a JSON object with unique members")
	ErrExtension = errors.New("has an extension in its header that is not supported")
	ErrKeyID     = errors.New("has a kid that is not a string")
)

// JWS is a JWT signed in compact form (RFC 7515 §3.1), taken apart. Nothing in it
// is proven.
type JWS struct {
	// Header and Claims stand in memory of the JWS: they are not to outlive it.
	Header, Claims strictjson.Object
	// Signed is what Signature is over.
	Signed    string
	Signature []byte
	// most tokens fit here, and so need no allocation of their own
	headerArray [8]strictjson.Member
	claimsArray [24]strictjson.Member
}

// Split takes raw apart into j.
func (j *JWS) Split(raw string) error {
	head, rest, ok := strings.Cut(raw, ".")
	payload, signature, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || strings.Contains(signature, ".") {
		return ErrNotJWS
	}
	buf := make([]byte, 0, base64.RawURLEncoding.DecodedLen(len(raw)))
	headerJSON, buf, err := decodeSegment(buf, head)
	if err != nil {
		return ErrNotJWS
	}
	if j.Header, err = strictjson.ReadObject(headerJSON, j.headerArray[:0], strictjson.Small); err != nil || !j.Header.Has("alg") {
		return ErrNotJWS
	}
	claimsJSON, buf, err := decodeSegment(buf, payload)
	if err != nil {
		return err
	}
	if j.Signature, _, err = decodeSegment(buf, signature); err != nil {
		return err
	}
	if j.Claims, err = strictjson.ReadObject(claimsJSON, j.claimsArray[:0], strictjson.Small); err != nil {
		return ErrClaims
	}
	j.Signed = raw[:len(head)+1+len(payload)]
	return nil
}

// Algorithm returns alg when it is one of those allowed.
func (j *JWS) Algorithm(allowed []Algorithm) (Algorithm, bool) {
	name := j.Header.Get("alg")
	for _, alg := range allowed {
		if strictjson.IsString(name, string(alg)) {
			return alg, true
		}
	}
	return "", false
}

// KeyID returns kid, "" when there is none. It refuses what RFC 7515 §4.1.11 tells
// to refuse: an extension that is marked critical; we know none. Members that point
// at keys (jwk, jku, x5c, x5u) are used by nobody (RFC 8725 §3.5).
func (j *JWS) KeyID() (string, error) {
	if j.Header.Has("crit") || j.Header.Has("b64") || j.Header.Has("zip") {
		return "", ErrExtension
	}
	kid, ok := j.Header.Str("kid")
	if j.Header.Has("kid") && !ok {
		return "", ErrKeyID
	}
	return kid, nil
}

// base64URL is strict, so that a token has one spelling only.
var base64URL = base64.RawURLEncoding.Strict()

// decodeSegment decodes a segment that is not empty behind what buf holds, and
// returns it and the rest of buf.
func decodeSegment(buf []byte, s string) (segment, rest []byte, err error) {
	if s == "" || strings.ContainsAny(s, "\r\n") { // which Decode would leave out
		return nil, nil, ErrSegment
	}
	from := len(buf)
	if buf, err = base64URL.AppendDecode(buf, []byte(s)); err != nil {
		return nil, nil, ErrSegment
	}
	return buf[from:len(buf):len(buf)], buf, nil
}
