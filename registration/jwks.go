package registration

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Bounds of a client's JWK set.
const (
	maxJWKS       = 32 << 10 // bytes
	maxClientKeys = 20
	minKeyBits    = 2048
	maxKeyBits    = 8192 // more would let anybody spend our CPU at /token
)

// assertionAlgorithms sign client assertions: asymmetric and current. none and
// HS256 are in no list (CA-08).
var assertionAlgorithms = [...]jwa.SignatureAlgorithm{jwa.ES256, jwa.EdDSA, jwa.PS256, jwa.RS256}

// AssertionAlgorithms returns the signature algorithms that client assertions
// may have, for the metadata (RFC 8414 §2).
func AssertionAlgorithms() []string {
	names := make([]string, 0, len(assertionAlgorithms))
	for _, alg := range assertionAlgorithms {
		names = append(names, alg.String())
	}
	return names
}

// clientKey is one public key of a client and the algorithms it may check: the
// key decides, never the assertion (RFC 8725 §3.1).
type clientKey struct {
	id         string
	public     any
	algorithms []jwa.SignatureAlgorithm
}

func (k clientKey) verify(alg jwa.SignatureAlgorithm, signed, signature []byte) error {
	v, err := jws.NewVerifier(alg)
	if err != nil {
		return err
	}
	return v.Verify(signed, signature, k.public)
}

// clientKeys are the keys of a JWK set that are of use.
type clientKeys []clientKey

// find returns the one key that kid and alg name. Without kid there must be
// only one that can have signed: we never try one after the other.
func (ks clientKeys) find(kid string, alg jwa.SignatureAlgorithm) (clientKey, bool) {
	var fit []clientKey
	for _, k := range ks {
		if (kid == "" || k.id == kid) && slices.Contains(k.algorithms, alg) {
			fit = append(fit, k)
		}
	}
	if len(fit) != 1 {
		return clientKey{}, false
	}
	return fit[0], true
}

// canSign reports whether a key of the set can sign with alg.
func (ks clientKeys) canSign(alg string) bool {
	return slices.ContainsFunc(ks, func(k clientKey) bool { return slices.Contains(k.algorithms, jwa.SignatureAlgorithm(alg)) })
}

// parseJWKS reads a JWK set (RFC 7517 §5). Keys of other types and for other
// uses are left out. What its publisher must mend makes the whole set
// invalid_client_metadata: a private or shared key, a weak one, a kid twice, no
// key of use.
func parseJWKS(doc []byte) (clientKeys, error) {
	if len(doc) > maxJWKS {
		return nil, oauth.InvalidClientMetadata("jwks is larger than %d bytes", maxJWKS)
	}
	set, err := readObject(doc)
	if err != nil {
		return nil, oauth.InvalidClientMetadata("jwks must be a JSON object with unique members").With(err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(set["keys"], &list); err != nil || len(list) == 0 || len(list) > maxClientKeys {
		return nil, oauth.InvalidClientMetadata("jwks must have a list keys of 1 to %d keys (RFC 7517 section 5)", maxClientKeys).With(err)
	}
	var keys clientKeys
	ids := map[string]bool{}
	for i, raw := range list {
		k, err := parseKey(raw)
		if err != nil {
			return nil, oauth.InvalidClientMetadata("jwks: keys[%d] %v", i, err)
		}
		if ids[k.id] {
			return nil, oauth.InvalidClientMetadata("jwks: keys[%d] has the kid of another key", i)
		}
		if ids[k.id] = k.id != ""; len(k.algorithms) > 0 {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, oauth.InvalidClientMetadata("jwks has no key that can sign with %s", strings.Join(AssertionAlgorithms(), ", "))
	}
	return keys, nil
}

// parseKey reads one JWK. A key of no use to us has no algorithms.
func parseKey(raw []byte) (clientKey, error) {
	m, err := readObject(raw)
	if err != nil {
		return clientKey{}, errors.New("is not a JSON object with unique members")
	}
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if m.has(private) {
			return clientKey{}, errors.New("is a private or shared key: publish public keys only, and replace this one")
		}
	}
	var k clientKey
	var kty, use, alg string
	var ops []string
	if err := errors.Join(m.string("kid", &k.id, maxWord), m.string("kty", &kty, maxWord), m.string("use", &use, maxWord),
		m.string("alg", &alg, maxWord), m.stringList("key_ops", &ops, oauth.InvalidClientMetadata)); err != nil {
		return clientKey{}, errors.New("has a kid, kty, use, alg or key_ops of the wrong type or length")
	}
	switch {
	case kty == "oct":
		return clientKey{}, errors.New("is a shared key: private_key_jwt needs public keys")
	case use != "" && use != "sig", m.has("key_ops") && !slices.Contains(ops, "verify"):
		return k, nil
	}
	if k.public, k.algorithms, err = m.publicKey(kty); err != nil {
		return clientKey{}, err
	}
	if alg != "" {
		k.algorithms = slices.DeleteFunc(k.algorithms, func(a jwa.SignatureAlgorithm) bool { return a.String() != alg })
	}
	return k, nil
}

// publicKey makes the key of a JWK and says what it may check (RFC 7518 §3, RFC
// 8037 §3.1). A type or curve that we do not use has no algorithms.
func (m members) publicKey(kty string) (any, []jwa.SignatureAlgorithm, error) {
	var crv string
	if err := m.string("crv", &crv, maxWord); err != nil {
		return nil, nil, errors.New("has a crv that is not a string")
	}
	if kty != "RSA" && (kty != "EC" || crv != "P-256") && (kty != "OKP" || crv != "Ed25519") {
		return nil, nil, nil
	}
	public, err := m.rawKey()
	if err != nil {
		return nil, nil, errors.New("is not a valid public key")
	}
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		if _, err := p.ECDH(); err != nil { // not a point of the curve
			return nil, nil, errors.New("is not a valid public key")
		}
		return p, []jwa.SignatureAlgorithm{jwa.ES256}, nil
	case ed25519.PublicKey:
		if len(p) != ed25519.PublicKeySize { // Verify would panic
			return nil, nil, errors.New("is not a valid public key")
		}
		return p, []jwa.SignatureAlgorithm{jwa.EdDSA}, nil
	case *rsa.PublicKey:
		if bits := p.N.BitLen(); bits < minKeyBits || bits > maxKeyBits {
			return nil, nil, errors.New("is an RSA key of fewer than 2048 or more than 8192 bits")
		}
		if p.E < 3 || p.E > 1<<31-1 || p.E%2 == 0 {
			return nil, nil, errors.New("is not a valid public key")
		}
		return p, []jwa.SignatureAlgorithm{jwa.PS256, jwa.RS256}, nil
	}
	return nil, nil, nil
}

// rawKey hands only the members that make the key to the parser, by their exact
// names, so that nothing else in a JWK is interpreted.
func (m members) rawKey() (public any, err error) {
	bare := members{}
	for _, name := range []string{"kty", "crv", "x", "y", "n", "e"} {
		if raw, ok := m[name]; ok {
			bare[name] = raw
		}
	}
	b, err := json.Marshal(bare)
	if err != nil {
		return nil, err
	}
	parsed, err := jwk.ParseKey(b)
	if err != nil {
		return nil, err
	}
	err = parsed.Raw(&public)
	return public, err
}
