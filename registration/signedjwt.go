package registration

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lestrrat-go/jwx/v2/jwa"
)

// signedJWT is a JWS in compact form (RFC 7515 §7.1) of which nothing is proven
// yet: a client's assertion or a software statement.
type signedJWT struct {
	alg               jwa.SignatureAlgorithm
	keyID             string
	typ               string // in lower case, without "application/"
	claims            members
	signed, signature []byte
}

// readSignedJWT parses a JWT of at most limit bytes. An error is worded to follow
// the name of the parameter that has it.
func readSignedJWT(raw string, limit int) (*signedJWT, error) {
	if len(raw) > limit {
		return nil, fmt.Errorf("is larger than %d bytes", limit)
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 { // five would be a JWE
		return nil, errors.New("is not a signed JWT in compact form")
	}
	var decoded [3][]byte
	for i, part := range parts {
		b, err := decodeSegment(part)
		if err != nil || len(b) == 0 {
			return nil, errors.New("is not three parts in base64url without padding")
		}
		decoded[i] = b
	}
	j := &signedJWT{signed: []byte(raw[:len(parts[0])+1+len(parts[1])]), signature: decoded[2]}
	if err := j.readHeader(decoded[0]); err != nil {
		return nil, err
	}
	var err error
	if j.claims, err = readObject(decoded[1]); err != nil {
		return nil, errors.New("has claims that are not a JSON object with unique members")
	}
	return j, nil
}

// readHeader applies RFC 7515 §4.1 and RFC 8725 §3. Members that point at keys
// (jwk, jku, x5c, x5u) are never used: we know the keys of whoever may sign.
func (j *signedJWT) readHeader(b []byte) error {
	h, err := readObject(b)
	if err != nil {
		return errors.New("has a header that is not a JSON object with unique members")
	}
	var alg string
	if err := errors.Join(h.string("alg", &alg, maxWord), h.string("typ", &j.typ, maxWord), h.string("kid", &j.keyID, maxWord)); err != nil {
		return errors.New("has an alg, typ or kid in its header that is no string or too long")
	}
	if j.alg = jwa.SignatureAlgorithm(alg); !slices.Contains(assertionAlgorithms[:], j.alg) {
		return fmt.Errorf("has an alg that is none of %s", strings.Join(AssertionAlgorithms(), ", "))
	}
	// RFC 7515 §4.1.11: an extension marked critical that we do not know; we know none
	if h.has("crit") || h.has("b64") || h.has("zip") {
		return errors.New("has an extension in its header that is not supported")
	}
	j.typ = strings.TrimPrefix(strings.ToLower(j.typ), "application/") // RFC 7515 §4.1.9
	return nil
}

// decodeSegment is strict: no line break and no stray bits, so that a JWT has one
// spelling only.
func decodeSegment(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("line break in base64url")
	}
	return base64.RawURLEncoding.Strict().DecodeString(s)
}
