package keys

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// maxSignature is the encoded length of the longest signature, RS256's.
const maxSignature = (rsaBits/8*8 + 5) / 6

// ErrNoKey reports that no key signs: Ensure was not called.
var ErrNoKey = errors.New("no signing key")

// ErrSignature reports a token that none of the published keys signed, or whose
// header is not one that Sign writes.
var ErrSignature = errors.New("token was not signed by this issuer")

// Sign returns claims, a JSON object, as a compact JWS of the active key with
// the given typ, and the kid (RFC 7515 §7.1).
func (s *Set) Sign(typ string, claims []byte) (compact, kid string, err error) {
	k := s.snapshot.Load().signer(s.o.Now())
	if k == nil {
		return "", "", ErrNoKey
	}
	header := k.header
	if typ != oauth.TypeAccessToken {
		header = protectedHeader(k.Key, typ)
	}
	signer, err := jws.NewSigner(Algorithm(k.Algorithm).jwa())
	if err != nil {
		return "", "", fmt.Errorf("sign token: %w", err)
	}
	// jws.Sign would encode the header anew each time; a third of its work is that.
	b64 := base64.RawURLEncoding
	buf := make([]byte, 0, len(header)+b64.EncodedLen(len(claims))+2+maxSignature)
	buf = append(append(buf, header...), '.')
	buf = b64.AppendEncode(buf, claims)
	sig, err := signer.Sign(buf, k.private)
	if err != nil {
		return "", "", fmt.Errorf("sign token: %w", err)
	}
	buf = b64.AppendEncode(append(buf, '.'), sig)
	return string(buf), k.KID, nil
}

// signer returns the key that signs at now, nil when there is none.
func (s *snapshot) signer(now time.Time) *openKey {
	var active *openKey
	for i := range s.keys {
		k := &s.keys[i]
		if !now.Before(k.ActiveAt) && (active == nil || succeeds(k.Key, active.Key)) {
			active = k
		}
	}
	return active
}

// protectedHeader is the base64url JWS protected header of a key's tokens.
func protectedHeader(k Key, typ string) string {
	b, err := json.Marshal(joseHeader{Algorithm: k.Algorithm, Type: typ, KID: k.KID})
	if err != nil {
		panic("keys: " + err.Error()) // unreachable: three strings
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

type joseHeader struct {
	Algorithm string `json:"alg"`
	Type      string `json:"typ"`
	KID       string `json:"kid"`
}

// Verify returns the claims and the kid of a token that a published key signed
// with exactly this typ; anything else is ErrSignature. It judges no claim:
// /revoke reads whose token it is given, `token inspect` prints it.
func (s *Set) Verify(typ, token string) (claims []byte, kid string, err error) {
	raw, ok := decodeCompact(token)
	if !ok {
		return nil, "", ErrSignature
	}
	var h joseHeader
	if err := json.Unmarshal(raw, &h); err != nil || h.Type != typ {
		return nil, "", ErrSignature
	}
	for _, k := range s.snapshot.Load().keys {
		if k.KID != h.KID || k.Algorithm != h.Algorithm {
			continue
		}
		claims, err := jws.Verify([]byte(token), jws.WithKey(Algorithm(k.Algorithm).jwa(), k.private.Public()), jws.WithCompact())
		if err != nil {
			return nil, "", fmt.Errorf("%w: %w", ErrSignature, err)
		}
		return claims, k.KID, nil
	}
	return nil, "", ErrSignature
}

// decodeCompact returns the header of a JWS in compact serialization (RFC 7515
// §7.1) whose three parts have the one spelling that Sign gives them: decoders skip
// line breaks and stray bits, and one token must not be many strings.
func decodeCompact(token string) (header []byte, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || strings.ContainsAny(token, "\r\n") {
		return nil, false
	}
	for i, part := range parts {
		b, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil {
			return nil, false
		}
		if i == 0 {
			header = b
		}
	}
	return header, true
}
