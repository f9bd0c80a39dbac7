package authclient

import (
	"net/http"
	"net/url"
	"sync"
)

// nonces are the DPoP nonces that servers gave, the last one of each origin (RFC 9449
// §8.2: a nonce is used until the server gives another). Those of authorization servers
// and of the MCP server are kept apart, for each makes its own (§9), also where both
// stand on one origin.
type nonces struct {
	mu sync.Mutex
	by map[string]string
}

func newNonces() *nonces { return &nonces{by: map[string]string{}} }

func (n *nonces) get(u *url.URL) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by[origin(u)]
}

const (
	maxNonce        = 1024 // bytes
	maxNonceOrigins = 64
)

// keep notes the nonce of an answer and reports whether it is another than was sent.
func (n *nonces) keep(u *url.URL, h http.Header, sent string) bool {
	nonce := h.Get("DPoP-Nonce")
	if nonce == "" || len(nonce) > maxNonce || !isVisible(nonce) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.by) >= maxNonceOrigins {
		clear(n.by) // each is given again for the asking
	}
	n.by[origin(u)] = nonce
	return nonce != sent
}
