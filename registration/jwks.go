package registration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Bounds of a client's JWK set.
const (
	maxJWKS       = 32 << 10 // bytes
	maxClientKeys = 20
)

// assertionAlgorithms sign client assertions: asymmetric and current. none and
// HS256 are in no list (CA-08).
var assertionAlgorithms = [...]jose.Algorithm{jose.ES256, jose.EdDSA, jose.PS256, jose.RS256}

// AssertionAlgorithms returns the signature algorithms that client assertions
// may have, for the metadata (RFC 8414 §2).
func AssertionAlgorithms() []string {
	names := make([]string, 0, len(assertionAlgorithms))
	for _, alg := range assertionAlgorithms {
		names = append(names, alg.String())
	}
	return names
}

// clientKeys are the keys of a JWK set that are of use.
type clientKeys []*jose.Key

// canSign reports whether a key of the set can sign with alg.
func (ks clientKeys) canSign(alg string) bool {
	return slices.ContainsFunc(ks, func(k *jose.Key) bool { return slices.Contains(k.Algorithms, jose.Algorithm(alg)) })
}

// parseJWKS reads a JWK set (RFC 7517 §5). Keys of other types and for other
// uses are left out. What its publisher must mend makes the whole set
// invalid_client_metadata: a private or shared key, a weak one, a kid twice, no
// key of use.
func parseJWKS(doc []byte) (clientKeys, error) {
	if len(doc) > maxJWKS {
		return nil, oauth.InvalidClientMetadata("jwks is larger than %d bytes", maxJWKS)
	}
	list, err := jose.ReadSet(doc, maxClientKeys)
	if err != nil || len(list) == 0 {
		return nil, oauth.InvalidClientMetadata("jwks must be a JSON object with unique members and a list keys of 1 to %d keys (RFC 7517 section 5)", maxClientKeys).With(err)
	}
	var keys clientKeys
	ids := map[string]bool{}
	for i, raw := range list {
		k, err := parseKey(raw)
		if err != nil {
			return nil, oauth.InvalidClientMetadata("jwks: keys[%d] %v", i, err)
		}
		if ids[k.ID] {
			return nil, oauth.InvalidClientMetadata("jwks: keys[%d] has the kid of another key", i)
		}
		if ids[k.ID] = k.ID != ""; len(k.Algorithms) > 0 {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, oauth.InvalidClientMetadata("jwks has no key that can sign with %s", strings.Join(AssertionAlgorithms(), ", "))
	}
	return keys, nil
}

// parseKey reads one JWK. A key of no use to us has no algorithms.
func parseKey(raw []byte) (*jose.Key, error) {
	k, err := jose.ReadKey(raw, assertionAlgorithms[:])
	if err == nil && (len(k.ID) > maxWord || strings.ContainsRune(k.ID, 0)) {
		err = fmt.Errorf("has a kid that is longer than %d bytes or has a null character", maxWord)
	}
	return k, err
}
