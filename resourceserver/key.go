package resourceserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
)

// maxKeys bounds a JWK set.
const maxKeys = 100

// key is one public key and the algorithms it may verify: the key decides,
// never the token (RFC 8725 §3.1, JW-07).
type key struct {
	id         string
	public     publicKey
	algorithms []jwa.SignatureAlgorithm
}

// publicKey is what all public keys of the standard library are.
type publicKey interface {
	Equal(x crypto.PublicKey) bool
}

// equal reports whether both are the same key for the same use.
func (k *key) equal(other *key) bool {
	return k.id == other.id && slices.Equal(k.algorithms, other.algorithms) && k.public.Equal(other.public)
}

// verify checks a signature (RFC 7515 §5.2). ECDSA, which most issuers use, goes
// straight to the standard library: jwx makes a tenth more of it.
func (k *key) verify(alg jwa.SignatureAlgorithm, signed string, signature []byte) error {
	if p, ok := k.public.(*ecdsa.PublicKey); ok {
		return verifyECDSA(p, alg, signed, signature)
	}
	v, err := jws.NewVerifier(alg)
	if err != nil {
		return err
	}
	return v.Verify([]byte(signed), signature, k.public)
}

// verifyECDSA expects R and S side by side, each as long as the curve's order
// (RFC 7518 §3.4); find has matched alg and curve.
func verifyECDSA(p *ecdsa.PublicKey, alg jwa.SignatureAlgorithm, signed string, signature []byte) error {
	size := (p.Curve.Params().BitSize + 7) / 8
	if len(signature) != 2*size {
		return errors.New("the signature is not as long as the curve asks for")
	}
	var r, s big.Int
	r.SetBytes(signature[:size])
	s.SetBytes(signature[size:])
	if !ecdsa.Verify(p, hashOf(alg, signed), &r, &s) {
		return errors.New("the signature does not verify")
	}
	return nil
}

func hashOf(alg jwa.SignatureAlgorithm, signed string) []byte {
	switch alg {
	case jwa.ES384:
		d := sha512.Sum384([]byte(signed))
		return d[:]
	case jwa.ES512:
		d := sha512.Sum512([]byte(signed))
		return d[:]
	}
	d := sha256.Sum256([]byte(signed))
	return d[:]
}

// parseKeys reads a JWK set (RFC 7517 §5). Keys of no use to us are left out; a
// set that holds a secret or a private key is refused whole, for its publisher
// has lost control of it (JW-22).
func parseKeys(b []byte) ([]*key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("parse JWK set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("JWK set has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	var keys []*key
	for _, raw := range set.Keys {
		m, err := readClaimSet(raw, nil)
		if err != nil {
			return nil, errors.New("JWK set has a key that is not a JSON object with unique members")
		}
		if m.has("d") || m.has("k") {
			return nil, errors.New("JWK set holds a private or symmetric key")
		}
		if k, ok := parseKey(raw, m); ok {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

func parseKey(text []byte, m claimSet) (*key, bool) {
	if use, ok := m.str("use"); ok && use != "sig" {
		return nil, false
	}
	if m.has("key_ops") && !slices.Contains(m.strs("key_ops"), "verify") {
		return nil, false
	}
	parsed, err := jwk.ParseKey(text)
	if err != nil {
		return nil, false
	}
	var raw any
	if err := parsed.Raw(&raw); err != nil {
		return nil, false
	}
	public := publicOf(raw)
	algs := algorithmsOf(public)
	if alg, ok := m.str("alg"); ok {
		algs = slices.DeleteFunc(algs, func(a jwa.SignatureAlgorithm) bool { return a.String() != alg })
	}
	id, _ := m.str("kid")
	return &key{id: id, public: public, algorithms: algs}, len(algs) > 0
}

// publicOf returns raw as a public key of a kind that can verify, or nil.
func publicOf(raw any) publicKey {
	switch p := raw.(type) {
	case *ecdsa.PublicKey:
		return p
	case ed25519.PublicKey:
		return p
	case *rsa.PublicKey:
		return p
	}
	return nil
}

// algorithmsOf returns what a key of this type and size may verify (RFC 7518
// §3: the curve fixes the algorithm; RSA keys have at least 2048 bits).
func algorithmsOf(public publicKey) []jwa.SignatureAlgorithm {
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		switch p.Curve.Params().Name {
		case "P-256":
			return []jwa.SignatureAlgorithm{jwa.ES256}
		case "P-384":
			return []jwa.SignatureAlgorithm{jwa.ES384}
		case "P-521":
			return []jwa.SignatureAlgorithm{jwa.ES512}
		}
	case ed25519.PublicKey:
		if len(p) == ed25519.PublicKeySize { // Verify panics on another length
			return []jwa.SignatureAlgorithm{jwa.EdDSA}
		}
	case *rsa.PublicKey:
		if p.N.BitLen() >= 2048 {
			return []jwa.SignatureAlgorithm{jwa.RS256, jwa.RS384, jwa.RS512, jwa.PS256, jwa.PS384, jwa.PS512}
		}
	}
	return nil
}
