package netguard

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"code.dny.dev/ssrf"
)

// Reach is how far a Dialer goes.
type Reach int

// Reaches, each with those before it. Link-local addresses, and others where clouds
// keep the machine's credentials, are in none.
const (
	// Public is what IANA's registries call globally reachable.
	Public Reach = iota
	// Loopback is this machine.
	Loopback
	// Private is the private networks.
	Private
)

// NewDialer returns what connects to hosts within reach, on any port, for clients of
// other kinds than Client. It refuses with ErrRefused a host one of whose addresses
// is out of reach. resolver may be nil.
func NewDialer(reach Reach, resolver Resolver) func(ctx context.Context, network, address string) (net.Conn, error) {
	return newDialer(resolver, reach.guard()).DialContext
}

func (r Reach) guard() *ssrf.Guardian {
	p := netip.MustParsePrefix
	switch r {
	case Private:
		return privateToo()
	case Loopback:
		return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(p("127.0.0.0/8")), ssrf.WithAllowedV6Prefixes(p("::1/128")))
	default:
		return ssrf.New(ssrf.WithAnyPort())
	}
}

// CheckHost refuses with ErrRefused a host, an address or a name without a port,
// that is out of reach by how it is written. It asks nobody: it is for who connects
// over a proxy, which looks names up by itself.
func CheckHost(reach Reach, host string) error {
	host, err := normalHost(host)
	if err != nil {
		return err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		d := dialer{guard: reach.guard()}
		if err := d.check(netip.AddrPortFrom(a, 443)); err != nil {
			return refuse("%s: %v", host, err)
		}
		return nil
	}
	switch {
	case slices.Contains(metadataNames[:], host):
		return refuse("the host %q is a cloud's metadata service", host)
	case reach == Private, reach == Loopback && (host == "localhost" || strings.HasSuffix(host, ".localhost")):
		return nil
	}
	return publicName(host)
}

// metadataNames lead to metadataServices and to link-local addresses.
var metadataNames = [...]string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}

// IsLoopback reports whether host is this machine by how it is written: localhost or
// a loopback address.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
