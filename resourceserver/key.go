package resourceserver

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
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
	public     any
	algorithms []jwa.SignatureAlgorithm
}

func (k key) verify(alg jwa.SignatureAlgorithm, signed, signature []byte) error {
	v, err := jws.NewVerifier(alg)
	if err != nil {
		return err
	}
	return v.Verify(signed, signature, k.public)
}

// parseKeys reads a JWK set (RFC 7517 §5). Keys of no use to us are left out; a
// set that holds a secret or a private key is refused whole, for its publisher
// has lost control of it (JW-22).
func parseKeys(b []byte) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("parse JWK set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("JWK set has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	var keys []key
	for _, raw := range set.Keys {
		m, err := readObject(raw)
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

func parseKey(raw []byte, m object) (key, bool) {
	if use, ok := m.str("use"); ok && use != "sig" {
		return key{}, false
	}
	if m.has("key_ops") && !slices.Contains(m.strs("key_ops"), "verify") {
		return key{}, false
	}
	parsed, err := jwk.ParseKey(raw)
	if err != nil {
		return key{}, false
	}
	var public any
	if err := parsed.Raw(&public); err != nil {
		return key{}, false
	}
	algs := algorithmsOf(public)
	if alg, ok := m.str("alg"); ok {
		algs = slices.DeleteFunc(algs, func(a jwa.SignatureAlgorithm) bool { return a.String() != alg })
	}
	id, _ := m.str("kid")
	return key{id: id, public: public, algorithms: algs}, len(algs) > 0
}

// algorithmsOf returns what a key of this type and size may verify (RFC 7518
// §3: the curve fixes the algorithm; RSA keys have at least 2048 bits).
func algorithmsOf(public any) []jwa.SignatureAlgorithm {
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
