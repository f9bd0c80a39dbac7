package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// HTTPSHost is a foreign https host on loopback: a client's, with its metadata
// document and keys. It has a name, a certificate from an authority of its own
// and a DNS that knows it alone. Outbound allows exactly this host; the guard
// stays on for all else.
type HTTPSHost struct {
	// URL is https://name:port, without a path.
	URL string
	// Host is name:port, as outbound_allow_hosts takes it.
	Host string
	// RootCAs trust the host's certificate.
	RootCAs *x509.CertPool
	// Resolver answers the host's names with 127.0.0.1, others not at all.
	Resolver *Resolver

	port     string
	names    []string
	ca       *x509.Certificate
	requests atomic.Int64
}

// NewHTTPSHost starts a host whose name is names[0], without names client.example;
// the certificate and the DNS know all of them.
func NewHTTPSHost(t testing.TB, h http.Handler, names ...string) *HTTPSHost {
	t.Helper()
	return newHTTPSHost(t, h, time.Now().Add(time.Hour), names)
}

// NewExpiredHTTPSHost is NewHTTPSHost with a certificate that has expired.
func NewExpiredHTTPSHost(t testing.TB, h http.Handler, names ...string) *HTTPSHost {
	t.Helper()
	return newHTTPSHost(t, h, time.Now().Add(-time.Minute), names)
}

func newHTTPSHost(t testing.TB, h http.Handler, expires time.Time, names []string) *HTTPSHost {
	t.Helper()
	if len(names) == 0 {
		names = []string{"client.example"}
	}
	host := &HTTPSHost{RootCAs: x509.NewCertPool(), Resolver: &Resolver{}, names: names}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host.requests.Add(1)
		h.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that hangs up is what many tests want
	server.TLS = &tls.Config{Certificates: []tls.Certificate{host.certify(t, expires)}}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		host.Resolver.Set(name, []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	}
	host.RootCAs.AddCert(host.ca)
	host.port, host.Host = port, net.JoinHostPort(names[0], port)
	host.URL = "https://" + host.Host
	return host
}

// CAFile writes the certificate of the host's authority to a file that
// SSL_CERT_FILE may name, for programs that shall trust the host.
func (h *HTTPSHost) CAFile(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.ca.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Authority returns the certificate of the host's authority.
func (h *HTTPSHost) Authority() *x509.Certificate { return h.ca }

// Requests returns how many requests the host has seen.
func (h *HTTPSHost) Requests() int { return int(h.requests.Load()) }

// Outbound returns a client that may ask the hosts. Public ones it may ask too,
// but its DNS knows none.
func Outbound(t testing.TB, hosts ...*HTTPSHost) *netguard.Client {
	t.Helper()
	c, err := netguard.New(OutboundOptions(hosts...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// OutboundOptions returns Outbound's options, for a test that changes them.
func OutboundOptions(hosts ...*HTTPSHost) netguard.Options {
	o := netguard.Options{RootCAs: x509.NewCertPool(), Timeout: time.Minute} // a busy machine is not what tests are about
	var dns resolvers
	for _, h := range hosts {
		for _, name := range h.names {
			o.AllowHosts = append(o.AllowHosts, net.JoinHostPort(name, h.port))
		}
		o.RootCAs.AddCert(h.ca)
		dns = append(dns, h.Resolver)
	}
	o.Resolver = dns
	return o
}

// certify makes an authority and a certificate of the host's names.
func (h *HTTPSHost) certify(t testing.TB, expires time.Time) tls.Certificate {
	t.Helper()
	template := func(serial int64) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: h.names[0]},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true}
	}
	ca, caKey := template(1), newKey(t)
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign
	h.ca = sign(t, ca, ca, caKey, caKey)
	leaf, key := template(2), newKey(t)
	leaf.NotAfter, leaf.DNSNames = expires, h.names
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return tls.Certificate{Certificate: [][]byte{sign(t, leaf, h.ca, key, caKey).Raw}, PrivateKey: key}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
