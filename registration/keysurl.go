package registration

import (
	"errors"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// ErrKeysURL is in the error of a jwks_uri that no request of ours will ever go
// to, so that a client with it could never authenticate.
var ErrKeysURL = errors.New("jwks_uri is never asked")

// checkKeysURL refuses such a jwks_uri, whoever names it: the client itself, its
// metadata document or the operator. check says what is never asked, nil for
// nothing. Nothing is asked yet (DR-08).
func checkKeysURL(check func(rawURL string) error, uri string) error {
	if uri == "" || check == nil {
		return nil
	}
	if err := check(uri); err != nil {
		return oauth.InvalidClientMetadata("jwks_uri must be on a public host, by its name, on port 443").With(errors.Join(ErrKeysURL, err))
	}
	return nil
}
