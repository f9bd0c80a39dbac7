package registration

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/jose"
)

// signedJWT is a JWT of which nothing is proven yet: a client's assertion or a
// software statement.
type signedJWT struct {
	alg       jose.Algorithm
	keyID     string
	typ       string // in lower case, without "application/"
	claims    members
	signed    string
	signature []byte
}

// readSignedJWT parses a JWT of at most limit bytes and applies RFC 7515 §4.1 and
// RFC 8725 §3 to its header. An error is worded to follow the name of the parameter
// that has it.
func readSignedJWT(raw string, limit int) (*signedJWT, error) {
	if len(raw) > limit {
		return nil, fmt.Errorf("is larger than %d bytes", limit)
	}
	var jws jose.JWS
	if err := jws.Split(raw); err != nil {
		return nil, err
	}
	alg, ok := jws.Algorithm(assertionAlgorithms[:])
	if !ok {
		return nil, fmt.Errorf("has an alg that is none of %s", strings.Join(AssertionAlgorithms(), ", "))
	}
	keyID, err := jws.KeyID()
	if err != nil {
		return nil, err
	}
	typ, ok := jws.Header.Str("typ")
	if jws.Header.Has("typ") && !ok || len(typ) > maxWord || len(keyID) > maxWord {
		return nil, errors.New("has a typ or kid in its header that is no string or too long")
	}
	j := &signedJWT{alg: alg, keyID: keyID, signed: jws.Signed, signature: jws.Signature, claims: membersOf(jws.Claims)}
	j.typ = strings.TrimPrefix(strings.ToLower(typ), "application/") // RFC 7515 §4.1.9
	return j, nil
}
