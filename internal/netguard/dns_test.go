package netguard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"golang.org/x/net/dns/dnsmessage"
)

// zone is a DNS server on loopback, by UDP: for each name its addresses, or the
// name that it is an alias of.
type zone struct {
	aliases   map[string]string
	addresses map[string][]string
}

// resolver starts the server and returns the resolver of the standard library
// that asks it, and nobody else.
func (z zone) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for b := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return // the test has ended
			}
			if reply, err := z.answer(b[:n]); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

// answer follows the chain from the name that is asked for, as resolvers do for
// their clients.
func (z zone) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil, errors.New("not one question")
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	q := m.Questions[0]
	name := q.Name
	add := func(body dnsmessage.ResourceBody) {
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET}, Body: body})
	}
	for z.aliases[name.String()] != "" {
		next := dnsmessage.MustNewName(z.aliases[name.String()])
		add(&dnsmessage.CNAMEResource{CNAME: next})
		name = next
	}
	for _, raw := range z.addresses[name.String()] {
		switch a := netip.MustParseAddr(raw); {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			add(&dnsmessage.AResource{A: a.As4()})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			add(&dnsmessage.AAAAResource{AAAA: a.As16()})
		}
	}
	if len(z.addresses[name.String()]) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	}
	return m.Pack()
}

// A public name may be an alias of a private one, over several steps, or have an
// address of the other family that is private: it is refused, and nobody is
// connected to. The resolver and its messages are real.
func TestCI03_CNAME(t *testing.T) {
	t.Parallel()
	dns := zone{
		aliases: map[string]string{"one.example.": "inside.example.", "three.example.": "two.example.", "two.example.": "one.example.",
			"cloud.example.": "metadata.google.internal.", "home.example.": "localhost.", "good.example.": "cdn.example."},
		addresses: map[string][]string{"inside.example.": {"10.0.0.1"}, "metadata.google.internal.": {"169.254.169.254"}, "localhost.": {"127.0.0.1"},
			"cdn.example.": {"93.184.216.34"}, "mixed.example.": {"93.184.216.34", "192.168.1.1"}, "families.example.": {"93.184.216.34", "fd00::1"}},
	}.resolver(t)
	var mu sync.Mutex
	var tried []string
	unreachable := errors.New("unreachable")
	c := newClient(t, netguard.Options{Resolver: dns, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		tried = append(tried, address)
		return nil, unreachable
	}})
	for _, name := range []string{"one", "two", "three", "cloud", "home", "mixed", "families"} {
		t.Run("CI-03 "+name, func(t *testing.T) {
			if _, err := c.Get(t.Context(), "https://"+name+".example/client.json", netguard.GetOptions{}); !errors.Is(err, netguard.ErrRefused) {
				t.Errorf("Get = %v, want ErrRefused", err)
			}
		})
	}
	if _, err := c.Get(t.Context(), "https://good.example/client.json", netguard.GetOptions{}); !errors.Is(err, unreachable) {
		t.Errorf("an alias of a public name: %v, want it connected to", err)
	}
	if want := []string{"93.184.216.34:443"}; !slices.Equal(tried, want) {
		t.Errorf("connected to %q, want %q", tried, want)
	}
}
