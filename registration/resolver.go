package registration

import (
	"context"
	"errors"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/store"
)

// ErrClientURL reports a client_id that is an https URL: a Client ID Metadata
// Document, which part 2 fetches. Until then the person gets a page that says so.
var ErrClientURL = errors.New("client_id is a URL: client metadata documents are not supported yet")

// maxClientID bounds a client_id, in bytes.
const maxClientID = 256

// Resolver finds the client that a client_id names. It is safe for concurrent use.
type Resolver struct {
	// Clients are the registered ones.
	Clients interface {
		GetClient(ctx context.Context, id string) (Client, error)
	}
}

// Resolve returns the client, which may be disabled; store.ErrNotFound for none
// and for what can be no client_id; ErrClientURL for an https URL.
func (r *Resolver) Resolve(ctx context.Context, clientID string) (*Client, error) {
	if strings.HasPrefix(clientID, "https://") {
		return nil, ErrClientURL
	}
	if !IsClientID(clientID) {
		// never asked of the database: a NUL would be an error there (ST-07)
		return nil, store.ErrNotFound
	}
	c, err := r.Clients.GetClient(ctx, clientID)
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// IsClientID reports whether s has the form of a registered client_id: 1 to 256
// characters of [A-Za-z0-9._-] (A16). No resource identifier or issuer has it,
// since both contain "://", so that no access token's audience can be mistaken
// for a client (D7).
func IsClientID(s string) bool {
	if s == "" || len(s) > maxClientID {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !isAlnum(r) && r != '-' && r != '_' && r != '.' }) < 0
}
