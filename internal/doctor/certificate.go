package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"time"
)

// tls makes a handshake of its own, which ends well whatever the certificate, and
// then says what is wrong with it.
func (p place) tls(ctx context.Context, x *examination) Outcome {
	if p.shared(x) {
		return sameAsServer
	}
	if p.url(x).Scheme != "https" {
		return ok("no TLS on a loopback host")
	}
	state, err := x.handshake(ctx, p.url(x))
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		return broken("what answers on this port speaks no TLS").fix("Serve https on this port, or give the URL of the port that does.")
	case err != nil:
		return broken("the TLS handshake fails: %s", plainError(err)).
			fix("Offer TLS 1.2 or 1.3 with a common cipher suite on this port.")
	}
	if err := x.verify(state, p.url(x).Hostname()); err != nil {
		return chainOutcome(state, err)
	}
	return ok("%s, issued by %s", tls.VersionName(state.Version), state.PeerCertificates[0].Issuer.CommonName)
}

func (x *examination) handshake(ctx context.Context, u *url.URL) (*tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := x.probe.connect(ctx, "tcp", hostPort(u))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	// nothing is sent over this connection; verify judges what it shows
	client := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err := client.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := client.ConnectionState()
	return &state, nil
}

func (x *examination) verify(state *tls.ConnectionState, host string) error {
	o := x509.VerifyOptions{DNSName: host, Roots: x.o.RootCAs, CurrentTime: x.o.Now(), Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(o)
	return err
}

func chainOutcome(state *tls.ConnectionState, err error) Outcome {
	leaf := state.PeerCertificates[0]
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		return broken("the certificate is for %s", strings.Join(leaf.DNSNames, ", ")).
			fix("Install a certificate that has this host among its names, or use one of its names in the URL.")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return broken("the certificate was good from %s to %s", leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339)).
			fix("Renew the certificate and reload the server that holds it.")
	case errors.As(err, &unknown) && leaf.Issuer.String() == leaf.Subject.String():
		return broken("the certificate is self-signed").fix("Install one of an authority that clients know.")
	case errors.As(err, &unknown) && len(state.PeerCertificates) == 1:
		return broken("only the leaf is sent, issued by %s: its intermediate is missing (browsers fetch it, programs do not), or that authority is a private one",
			leaf.Issuer.CommonName)
	case errors.As(err, &unknown):
		return broken("no trusted authority has issued it; the last one sent is %s", state.PeerCertificates[len(state.PeerCertificates)-1].Issuer.CommonName)
	}
	return broken("%s", plainError(err))
}

func (p place) expiry(ctx context.Context, x *examination) Outcome {
	e := p.first(ctx, x)
	switch {
	case p.shared(x):
		return sameAsServer
	case e.err != nil:
		return broken("%s", plainError(e.err)).on(e)
	case e.tls == nil:
		return ok("no TLS on a loopback host")
	}
	until := e.tls.PeerCertificates[0].NotAfter
	if until.Sub(x.o.Now()) < certificateSoon {
		return warn("the certificate expires on %s", until.UTC().Format(time.RFC3339))
	}
	return ok("until %s", until.UTC().Format(time.DateOnly))
}
