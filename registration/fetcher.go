package registration

import (
	"context"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// Fetcher gets a URL that a client named; *netguard.Client is one. An address
// that it does not talk to is netguard.ErrRefused, a failure that may pass
// netguard.ErrUnreachable.
type Fetcher interface {
	Get(ctx context.Context, rawURL string, o netguard.GetOptions) (*netguard.Response, error)
}

var _ Fetcher = (*netguard.Client)(nil)
