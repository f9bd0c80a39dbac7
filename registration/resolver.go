package registration

import (
	"context"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/store"
)

// maxClientID bounds a client_id that is no URL, in bytes.
const maxClientID = 256

// Resolver finds the client that the client_id of an authorization request
// names. It is safe for concurrent use.
type Resolver struct {
	// Clients are the registered ones.
	Clients interface {
		GetClient(ctx context.Context, id string) (Client, error)
	}
	// Documents resolves client_id values that are URLs; nil refuses them.
	Documents *Documents
}

// Resolve returns the client, which may be disabled; store.ErrNotFound for none
// and for what can be no client_id; *ClientURLError for an https URL that names
// none. It may ask the host of such a URL, so only requests of people belong
// here: every other step reads the row that this left.
func (r *Resolver) Resolve(ctx context.Context, clientID string) (*Client, error) {
	if strings.HasPrefix(clientID, "https://") {
		if r.Documents == nil {
			return nil, &ClientURLError{Problem: ProblemURL, Detail: "this server reads no client metadata documents"}
		}
		return r.Documents.Resolve(ctx, clientID)
	}
	if !isRegisteredID(clientID) {
		// never asked of the database: a NUL would be an error there (ST-07)
		return nil, store.ErrNotFound
	}
	c, err := r.Clients.GetClient(ctx, clientID)
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// IsClientID reports whether s can be a client_id: one that this server gave, 1
// to 256 characters of [A-Za-z0-9._-] (A16), or the URL of a metadata document.
func IsClientID(s string) bool { return isRegisteredID(s) || IsClientURL(s) }

// isRegisteredID reports the form of a client_id that this server gave. No
// resource identifier or issuer has it, since both contain "://", so that no
// access token's audience can be mistaken for a client (D7); Documents refuses
// URLs that are resources.
func isRegisteredID(s string) bool {
	if s == "" || len(s) > maxClientID {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !isAlnum(r) && r != '-' && r != '_' && r != '.' }) < 0
}
