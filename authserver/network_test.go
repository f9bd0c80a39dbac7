package authserver_test

import (
	"context"
	"crypto/rand"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The addresses of a network's public hosts. At closedAddress nobody listens; at
// silentAddress somebody accepts and says nothing.
const (
	publicAddress = "93.184.216.34"
	closedAddress = "93.184.216.35"
	silentAddress = "93.184.216.36"
)

// network is all that a server can reach: a DNS, hosts at public addresses, and
// one listener at every other address, so that a packet to a private one is
// heard. The guard itself is the product's: nothing is allowed.
type network struct {
	dns     *testkit.Resolver
	private net.Listener

	mu     sync.Mutex
	hosts  map[string]*testkit.HTTPSHost // by address
	dialed []string
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &network{dns: &testkit.Resolver{}, private: l, hosts: map[string]*testkit.HTTPSHost{}}
}

// at gives a host an address, and names in the DNS.
func (n *network) at(address string, h *testkit.HTTPSHost, names ...string) {
	n.hosts[address] = h
	for _, name := range names {
		n.dns.Set(name, addresses(address))
	}
}

func addresses(list ...string) (parsed []netip.Addr) {
	for _, a := range list {
		parsed = append(parsed, netip.MustParseAddr(a))
	}
	return parsed
}

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	host, port, _ := net.SplitHostPort(address)
	to := n.private.Addr().String()
	switch h := n.hosts[host]; {
	case host == closedAddress:
		return nil, &net.OpError{Op: "dial", Net: kind, Err: syscall.ECONNREFUSED}
	case host == silentAddress:
		near, far := net.Pipe()
		context.AfterFunc(ctx, func() { _ = far.Close() })
		return near, nil
	case h != nil && port == "443":
		_, port, _ = net.SplitHostPort(h.Host)
		to = net.JoinHostPort("127.0.0.1", port)
	}
	return (&net.Dialer{}).DialContext(ctx, kind, to)
}

// attempts returns the addresses that were connected to.
func (n *network) attempts() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.dialed...)
}

// heardNothing fails unless all connections went to public hosts: the next one
// that the private listener accepts must be the test's own.
func (n *network) heardNothing(t *testing.T) {
	t.Helper()
	for _, address := range n.attempts() {
		if !strings.HasPrefix(address, "93.184.216.") {
			t.Errorf("connected to %s", address)
		}
	}
	ours, err := net.Dial("tcp4", n.private.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	first, err := n.private.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if first.RemoteAddr().String() != ours.LocalAddr().String() {
		t.Errorf("the private listener heard from %s", first.RemoteAddr())
	}
}

// outbound is the product's client in this network.
func (n *network) outbound(t *testing.T, timeout time.Duration) *netguard.Client {
	t.Helper()
	o := testkit.OutboundOptions(slices.Collect(maps.Values(n.hosts))...)
	o.AllowHosts, o.OwnHosts, o.Resolver, o.Dial, o.Timeout = nil, []string{"id.example.com"}, n.dns, n.dial, timeout
	c, err := netguard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// world is a kit in a network with one client host, which has every document and
// the names that it is made with.
type world struct {
	*site
	*network
}

// eachWorld runs fn on a server on each database. names[0] is where publish puts
// documents.
func eachWorld(t *testing.T, names []string, fn func(t *testing.T, w *world), opts ...testkit.ServerOption) {
	t.Helper()
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) { fn(t, newWorld(t, db, names, opts...)) })
}

func newWorld(t *testing.T, db *sqlstore.Store, names []string, opts ...testkit.ServerOption) *world {
	t.Helper()
	w := &world{site: &site{documents: &documents{docs: map[string]any{}}}, network: newNetwork(t)}
	w.host = testkit.NewHTTPSHost(t, w.documents, names...)
	w.host.URL = "https://" + names[0] // the port is 443, as dial sees it
	w.at(publicAddress, w.host, names...)
	server := testkit.NewServerWithOutbound(t, db, w.outbound(t, time.Minute), opts...)
	w.kit = &kit{Server: server, t: t, ctx: t.Context(), person: server.Person()}
	return w
}

// introduce publishes a document of a client of its own and lets somebody name it,
// so that the server knows it.
func (w *world) introduce(redirects ...string) app {
	w.t.Helper()
	a := w.site.publish("/"+rand.Text()+".json", map[string]any{"redirect_uris": redirects}, redirects...)
	w.open(w.Person(), w.authorizeURL(a, values("prompt", "none"))) // which stores no request
	if _, err := w.DB.GetClient(w.ctx, a.id); err != nil {
		w.t.Fatal(err)
	}
	return a
}
