package keys

import (
	"context"
	"net/http"

	"github.com/ostiary-auth/ostiary/metadata"
)

// Handler serves the set's public keys, GET /jwks.json: cacheable for
// JWKSMaxAge, with an entity tag, readable by pages of any origin (A7, MM-03).
// It answers every method itself, so mount it without one.
func Handler(s *Set) http.Handler {
	return metadata.JSON(JWKSMaxAge, func(context.Context) (metadata.Body, error) {
		body, etag := s.JWKS()
		if body == nil {
			return metadata.Body{}, ErrNoKey
		}
		return metadata.Body{JSON: body, ETag: etag}, nil
	})
}
