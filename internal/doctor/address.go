package doctor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
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

// addresses looks a host up, and refuses a private one that the operator did not
// name while the target is public (C9).
func (p *prober) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs, err := p.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if host == p.target {
		p.targetPrivate = slices.ContainsFunc(addrs, isPrivate)
	}
	if host == p.target || p.targetPrivate || slices.Contains(p.named, host) {
		return addrs, nil
	}
	if i := slices.IndexFunc(addrs, isPrivate); i >= 0 {
		return nil, &privateError{host: host, addr: addrs[i]}
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

// sharedAddresses are those of carriers' networks (RFC 6598).
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() || sharedAddresses.Contains(a)
}
