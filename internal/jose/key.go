package jose

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

	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Bounds of RSA keys: smaller ones can be broken, larger ones let their publisher
// spend our CPU.
const (
	minKeyBits = 2048
	maxKeyBits = 8192
)

// What is wrong with a key or a set of them.
var (
	ErrSet     = errors.New("is not a JSON object with unique members and a list keys")
	ErrKey     = errors.New("is not a JSON object with unique members")
	ErrPrivate = errors.New("is a private or shared (symmetric) key: publish public keys only, and replace this one")
	ErrMember  = errors.New("has a kid, kty, crv, use, alg or key_ops of the wrong type")
	ErrPublic  = errors.New("is not a valid public key")
	ErrSize    = errors.New("is an RSA key of fewer than 2048 or more than 8192 bits")
)

// PublicKey is what all public keys of the standard library are.
type PublicKey interface {
	Equal(x crypto.PublicKey) bool
}

// Key is one public key and the algorithms it may verify: the key decides, never
// the token (RFC 8725 §3.1).
type Key struct {
	ID         string
	Public     PublicKey
	Algorithms []Algorithm
}

// Equal reports whether both are the same key for the same use.
func (k *Key) Equal(other *Key) bool {
	return k.ID == other.ID && slices.Equal(k.Algorithms, other.Algorithms) && k.Public.Equal(other.Public)
}

// Find returns the one key that kid and alg name, else nil. Without kid there must
// be only one that can have signed: they are never tried one after the other.
func Find(keys []*Key, kid string, alg Algorithm) (found *Key) {
	for _, k := range keys {
		if kid != "" && k.ID != kid || !slices.Contains(k.Algorithms, alg) {
			continue
		}
		if found != nil && !found.Equal(k) {
			return nil
		}
		found = k
	}
	return found
}

// Verify checks a signature (RFC 7515 §5.2) with an algorithm of k's. ECDSA, which
// most issuers use, goes straight to the standard library: jwx makes a tenth more
// of it.
func (k *Key) Verify(alg Algorithm, signed string, signature []byte) error {
	if p, ok := k.Public.(*ecdsa.PublicKey); ok {
		return verifyECDSA(p, alg, signed, signature)
	}
	v, err := jws.NewVerifier(alg)
	if err != nil {
		return err
	}
	return v.Verify([]byte(signed), signature, k.Public)
}

// verifyECDSA expects R and S side by side, each as long as the curve's order
// (RFC 7518 §3.4); Find has matched alg and curve.
func verifyECDSA(p *ecdsa.PublicKey, alg Algorithm, signed string, signature []byte) error {
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

func hashOf(alg Algorithm, signed string) []byte {
	switch alg {
	case ES384:
		d := sha512.Sum384([]byte(signed))
		return d[:]
	case ES512:
		d := sha512.Sum512([]byte(signed))
		return d[:]
	}
	d := sha256.Sum256([]byte(signed))
	return d[:]
}

// ReadSet returns the keys of a JWK set (RFC 7517 §5) as they stand, at most limit.
func ReadSet(doc []byte, limit int) ([][]byte, error) {
	set, err := strictjson.ReadObject(doc, nil, strictjson.Small)
	if err != nil {
		return nil, ErrSet
	}
	list, err := strictjson.ReadArray(set.Get("keys"), strictjson.Bounds{Members: limit, Depth: strictjson.Small.Depth})
	if errors.Is(err, strictjson.ErrBounds) {
		return nil, fmt.Errorf("has more than %d keys", limit)
	}
	if err != nil {
		return nil, ErrSet
	}
	keys := make([][]byte, 0, len(list))
	for _, k := range list {
		keys = append(keys, k.Value)
	}
	return keys, nil
}

// ReadKey reads one JWK (RFC 7517 §4). Its algorithms are those of the wanted ones
// that its type, curve and alg allow; a key that has none is of no use to us and is
// not looked at further.
func ReadKey(raw []byte, wanted []Algorithm) (*Key, error) {
	m, err := strictjson.ReadObject(raw, nil, strictjson.Small)
	if err != nil {
		return nil, ErrKey
	}
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if m.Has(private) {
			return nil, ErrPrivate
		}
	}
	var k Key
	var kty, crv, use, alg string
	for name, dest := range map[string]*string{"kid": &k.ID, "kty": &kty, "crv": &crv, "use": &use, "alg": &alg} {
		if !optional(m, name, dest) {
			return nil, ErrMember
		}
	}
	ops := strictjson.Strings(m.Get("key_ops"))
	switch {
	case kty == "oct":
		return nil, ErrPrivate
	case m.Has("key_ops") && ops == nil:
		return nil, ErrMember
	case use != "" && use != "sig", m.Has("key_ops") && !slices.Contains(ops, "verify"):
		return &k, nil
	}
	for _, a := range algorithmsOf(kty, crv) {
		if slices.Contains(wanted, a) && (alg == "" || alg == string(a)) {
			k.Algorithms = append(k.Algorithms, a)
		}
	}
	if len(k.Algorithms) > 0 {
		k.Public, err = publicKey(m)
	}
	return &k, err
}

// optional reads a string that may be absent, or null, which some write for it.
func optional(m strictjson.Object, name string, dest *string) (ok bool) {
	v := m.Get(name)
	if v == nil || string(v) == "null" {
		return true
	}
	*dest, ok = strictjson.String(v)
	return ok
}

// algorithmsOf returns what keys of a type and curve can verify (RFC 7518 §3, RFC
// 8037 §3.1).
func algorithmsOf(kty, crv string) []Algorithm {
	switch {
	case kty == "RSA":
		return []Algorithm{RS256, RS384, RS512, PS256, PS384, PS512}
	case kty == "OKP" && crv == "Ed25519":
		return []Algorithm{EdDSA}
	case kty == "EC" && crv == "P-256":
		return []Algorithm{ES256}
	case kty == "EC" && crv == "P-384":
		return []Algorithm{ES384}
	case kty == "EC" && crv == "P-521":
		return []Algorithm{ES512}
	}
	return nil
}

// publicKey hands only the members that make the key to the parser, by their exact
// names, so that nothing else in a JWK is interpreted, and checks what comes out.
func publicKey(m strictjson.Object) (PublicKey, error) {
	bare := map[string]json.RawMessage{}
	for _, name := range []string{"kty", "crv", "x", "y", "n", "e"} {
		if v := m.Get(name); v != nil {
			bare[name] = v
		}
	}
	b, err := json.Marshal(bare)
	if err != nil {
		return nil, ErrPublic
	}
	parsed, err := jwk.ParseKey(b)
	if err != nil {
		return nil, ErrPublic
	}
	var public any
	if err := parsed.Raw(&public); err != nil {
		return nil, ErrPublic
	}
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		if _, err := p.ECDH(); err == nil { // a point of the curve
			return p, nil
		}
	case ed25519.PublicKey:
		if len(p) == ed25519.PublicKeySize { // Verify panics on another length
			return p, nil
		}
	case *rsa.PublicKey:
		if bits := p.N.BitLen(); bits < minKeyBits || bits > maxKeyBits {
			return nil, ErrSize
		}
		if p.E >= 3 && p.E <= 1<<31-1 && p.E%2 == 1 {
			return p, nil
		}
	}
	return nil, ErrPublic
}
