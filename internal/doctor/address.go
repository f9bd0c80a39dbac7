package doctor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// privateError is a server-named URL that leads to an address nobody outside
// could reach.
type privateError struct {
	host string
	addr netip.Addr
}

// Error names the host and the address.
func (e *privateError) Error() string {
	return fmt.Sprintf("%s is at %s, a private address: it was not asked", e.host, e.addr)
}

// Resolver looks up the addresses of a host; *net.Resolver is one.
type Resolver interface {
	// LookupNetIP is net.Resolver's.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// writtenReach is how far servers may lead that are examined by this host. It is
// read from how the operator wrote it, never from the DNS, which is the examined
// server's own: a private address there must not open the operator's network (C9).
func writtenReach(host string) netguard.Reach {
	if isLoopbackHost(host) {
		return netguard.Loopback
	}
	if a, err := netip.ParseAddr(host); err == nil && netguard.CheckHost(netguard.Public, a.String()) != nil {
		return netguard.Private
	}
	return netguard.Public
}

// reachOf is how far a connection to address, "host:port", may go: what the
// operator named may be private itself.
func (p *prober) reachOf(address string) netguard.Reach {
	if slices.Contains(p.named, strings.ToLower(address)) {
		return netguard.Private
	}
	return p.reach
}

// addresses looks up the host of address, "host:port", and refuses one that is out
// of reach (C9).
func (p *prober) addresses(ctx context.Context, address string) ([]netip.Addr, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := p.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if netguard.CheckHost(p.reachOf(address), a.String()) != nil {
			return nil, &privateError{host: host, addr: a}
		}
	}
	return addrs, nil
}

func (p *prober) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if p.resolver == nil {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	return p.resolver.LookupNetIP(ctx, "ip", host)
}
