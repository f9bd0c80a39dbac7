package authclient

import (
	"net/http"
	"net/url"
	"sync"
)

// nonces are the DPoP nonces that servers gave, the last one of each origin (RFC 9449
// §8.2: a nonce is used until the server gives another).
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

// keep notes the nonce of an answer and reports whether it is a new one.
func (n *nonces) keep(u *url.URL, h http.Header) bool {
	nonce := h.Get("DPoP-Nonce")
	if nonce == "" || len(nonce) > 1024 || !isVisible(nonce) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh := n.by[origin(u)] != nonce
	n.by[origin(u)] = nonce
	return fresh
}
