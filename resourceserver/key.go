package resourceserver

import (
	"errors"
	"fmt"

	"github.com/ostiary-auth/ostiary/internal/jose"
)

// maxKeys bounds a JWK set.
const maxKeys = 100

// parseKeys reads a JWK set (RFC 7517 §5). Keys of no use to us are left out; a
// set that holds a secret or a private key is refused whole, for its publisher
// has lost control of it (JW-22).
func parseKeys(b []byte) ([]*jose.Key, error) {
	list, err := jose.ReadSet(b, maxKeys)
	if err != nil {
		return nil, fmt.Errorf("the JWK set %w", err)
	}
	var keys []*jose.Key
	for _, raw := range list {
		k, err := jose.ReadKey(raw, knownAlgorithms)
		if errors.Is(err, jose.ErrPrivate) || errors.Is(err, jose.ErrKey) {
			return nil, fmt.Errorf("the JWK set has a key that %w", err)
		}
		if err == nil && len(k.Algorithms) > 0 {
			keys = append(keys, k)
		}
	}
	return keys, nil
}
