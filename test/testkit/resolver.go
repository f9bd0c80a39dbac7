package testkit

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// Resolver is a DNS whose answers a test gives. It is safe for concurrent use.
type Resolver struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	asked   []string
}

// Set makes each look-up of name take the next answer; the last one stays.
func (r *Resolver) Set(name string, answers ...[]netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = map[string][][]netip.Addr{}
	}
	r.answers[name] = answers
}

// Asked returns every name that was looked up.
func (r *Resolver) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.asked...)
}

// LookupNetIP implements netguard.Resolver; a name that was not set does not exist.
func (r *Resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, host)
	answers := r.answers[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		r.answers[host] = answers[1:]
	}
	return answers[0], nil
}

// resolvers ask one after another until one knows.
type resolvers []*Resolver

// LookupNetIP implements netguard.Resolver.
func (rs resolvers) LookupNetIP(ctx context.Context, network, host string) (addrs []netip.Addr, err error) {
	err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	for _, r := range rs {
		if addrs, err = r.LookupNetIP(ctx, network, host); err == nil {
			return addrs, nil
		}
	}
	return nil, err
}
