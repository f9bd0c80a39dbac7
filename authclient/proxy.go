package authclient

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// newOwnTransport returns the transport to the MCP server: any address, for the
// caller has named it. Answers may stream for as long as they like.
func newOwnTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 16,
	}
}

// guarded is the transport to hosts that servers name.
type guarded struct {
	direct  *http.Transport // whose dialer knows addresses
	proxied *http.Transport // which connects to the proxy alone
}

func newForeignTransport(reach netguard.Reach) http.RoundTripper {
	transport := func() *http.Transport {
		return &http.Transport{
			ForceAttemptHTTP2:      true,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	g := guarded{direct: transport(), proxied: transport()}
	g.direct.DialContext = netguard.NewDialer(reach, nil)
	g.proxied.Proxy = http.ProxyFromEnvironment
	return g
}

// RoundTrip implements http.RoundTripper. A proxy looks names up by itself, so which
// addresses are public is its business; the dialer's guard would refuse the proxy.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy != nil {
		return g.proxied.RoundTrip(r)
	}
	return g.direct.RoundTrip(r)
}

// CloseIdleConnections closes those of both.
func (g guarded) CloseIdleConnections() {
	g.direct.CloseIdleConnections()
	g.proxied.CloseIdleConnections()
}
