package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Resolver looks up the addresses of a host; *net.Resolver is one.
type Resolver interface {
	// LookupNetIP is net.Resolver's; network is always "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// maxAttempts bounds the addresses of one name that are tried, each for its part
// of the time.
const maxAttempts = 4

// within makes dial end after timeout, and the connection that it returns a
// moment later, when the request that it is for has ended by itself.
// net/http dials outside the request's context, for another request could use
// the connection; here none will, and a host that never finishes its handshake
// would keep a connection of ours for ever (CI-06).
func within(timeout time.Duration, dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		end := time.Now().Add(timeout)
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn, conn.SetDeadline(end.Add(time.Second))
	}
}

// dialer connects to a name by the very addresses that it has looked up and
// checked, so a second answer of the DNS changes nothing (CI-04).
type dialer struct {
	resolver Resolver
	guard    *ssrf.Guardian
	connect  dialFunc
}

// metadataServices are where clouds keep the machine's credentials outside the
// link-local networks: in public and in private ones. Nobody is led there.
var metadataServices = [...]netip.Addr{
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
}

// publicOnly permits what IANA's registries call globally reachable.
func publicOnly() *ssrf.Guardian {
	return ssrf.New(ssrf.WithPorts(443))
}

// privateToo permits loopback and private networks besides, on any port: the
// operator has named host and port. Link-local and the rest stay out.
func privateToo() *ssrf.Guardian {
	p := netip.MustParsePrefix
	return ssrf.New(ssrf.WithAnyPort(),
		ssrf.WithAllowedV4Prefixes(p("127.0.0.0/8"), p("10.0.0.0/8"), p("172.16.0.0/12"), p("192.168.0.0/16"), p("100.64.0.0/10")),
		ssrf.WithAllowedV6Prefixes(p("::1/128"), p("fc00::/7")))
}

func newDialer(resolver Resolver, guard *ssrf.Guardian) *dialer {
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	d := &dialer{resolver: resolver, guard: guard}
	// Control sees the address of the connection itself: a second lock on the door
	d.connect = (&net.Dialer{Control: d.control}).DialContext
	return d
}

// DialContext connects to address, "host:port". It refuses a host one of whose
// addresses is refused: an honest one has no private address beside a public one
// (CI-03).
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	addrs, err := d.lookUp(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if err := d.check(netip.AddrPortFrom(a, uint16(number))); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRefused, host, err)
		}
	}
	return d.connectAny(ctx, network, addrs, uint16(number))
}

func (d *dialer) check(a netip.AddrPort) error {
	if slices.Contains(metadataServices[:], a.Addr()) {
		return fmt.Errorf("%w: %s is a cloud's metadata service", ssrf.ErrProhibitedIP, a.Addr())
	}
	return d.guard.SafeAddrPort(a)
}

// lookUp returns the addresses of host, IPv4 first: they are tried one after
// another, and a route that leads nowhere is more often an IPv6 one.
func (d *dialer) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	list := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		list[i] = a.Unmap() // ::ffff:10.0.0.1 is 10.0.0.1
	}
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return list, nil
}

func (d *dialer) connectAny(ctx context.Context, network string, addrs []netip.Addr, port uint16) (net.Conn, error) {
	var errs []error
	addrs = addrs[:min(len(addrs), maxAttempts)]
	for i, a := range addrs {
		conn, err := d.connectOne(ctx, network, netip.AddrPortFrom(a, port).String(), len(addrs)-i)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// connectOne spends on one address its part of the time that is left.
func (d *dialer) connectOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return d.connect(ctx, network, address)
}

// control is a net.Dialer's, called with the address that is about to be used.
func (d *dialer) control(network, address string, raw syscall.RawConn) error {
	err := d.guard.Safe(network, address, raw)
	if err == nil {
		err = d.check(netip.MustParseAddrPort(address)) // which Safe has parsed
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}
