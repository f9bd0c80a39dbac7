package netguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"code.dny.dev/ssrf"
)

// answers is a DNS that gives each look-up the next answer.
type answers struct {
	list  [][]string
	asked int
}

func (a *answers) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	var addrs []netip.Addr
	for _, s := range a.list[min(a.asked, len(a.list)-1)] {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	a.asked++
	return addrs, nil
}

var errUnreachable = errors.New("unreachable")

// dialWith returns a dialer that connects to nothing, and what it tried.
func dialWith(dns Resolver, guard *ssrf.Guardian) (*dialer, *[]string) {
	var tried []string
	d := newDialer(dns, guard)
	d.connect = func(_ context.Context, _, address string) (net.Conn, error) {
		tried = append(tried, address)
		return nil, errUnreachable
	}
	return d, &tried
}

func TestDialedAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, addrs     string
		public, private bool // whether a foreign host, and an allowed one, may have them
	}{
		{"public", "93.184.216.34", true, true},
		{"public IPv6", "2606:4700::1111", true, true},
		{"both", "2606:4700::1111 93.184.216.34", true, true},
		{"CI-02 loopback", "127.0.0.1", false, true},
		{"CI-02 other loopback", "127.8.8.8", false, true},
		{"CI-02 loopback IPv6", "::1", false, true},
		{"CI-02 10/8", "10.0.0.1", false, true},
		{"CI-02 172.16/12", "172.31.255.254", false, true},
		{"CI-02 192.168/16", "192.168.1.1", false, true},
		{"CI-02 CGNAT", "100.64.0.1", false, true},
		{"CI-02 Alibaba metadata", "100.100.100.200", false, false},
		{"CI-02 AWS metadata IPv6", "fd00:ec2::254", false, false},
		{"CI-02 Google metadata IPv6", "fd20:ce::254", false, false},
		{"CI-02 unique local IPv6", "fd00::1", false, true},
		{"CI-02 metadata", "169.254.169.254", false, false},
		{"CI-02 Azure metadata", "168.63.129.16", false, false},
		{"CI-02 Oracle metadata", "192.0.0.192", false, false},
		{"CI-02 unspecified", "0.0.0.0", false, false},
		{"CI-02 this network", "0.1.2.3", false, false},
		{"CI-02 unspecified IPv6", "::", false, false},
		{"CI-02 documentation", "192.0.2.1", false, false},
		{"CI-02 benchmarking", "198.18.0.1", false, false},
		{"CI-02 multicast", "224.0.0.1", false, false},
		{"CI-02 reserved", "240.0.0.1", false, false},
		{"CI-02 broadcast", "255.255.255.255", false, false},
		{"CI-02 link-local IPv6", "fe80::1", false, false},
		{"CI-02 link-local IPv6 with zone", "fe80::1%eth0", false, false},
		{"CI-02 public with zone", "2606:4700::1111%eth0", false, false},
		{"CI-02 IPv4-mapped private", "::ffff:10.0.0.1", false, true},
		{"CI-02 IPv4-mapped metadata", "::ffff:169.254.169.254", false, false},
		{"CI-02 IPv4-compatible", "::10.0.0.1", false, false},
		{"CI-02 NAT64", "64:ff9b::a00:1", false, false},
		{"CI-02 NAT64 local use", "64:ff9b:1::a00:1", false, false},
		{"CI-02 6to4", "2002:a00:1::1", false, false},
		{"CI-02 Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2", false, false},
		{"CI-02 site-local", "fec0::1", false, false},
		{"CI-02 multicast IPv6", "ff02::1", false, false},
		{"CI-03 private beside public", "93.184.216.34 10.0.0.1", false, true},
		{"CI-03 public before metadata", "2606:4700::1111 93.184.216.34 169.254.169.254", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for guard, want := range map[*ssrf.Guardian]bool{publicOnly(): tt.public, privateToo(): tt.private} {
				d, tried := dialWith(&answers{list: [][]string{strings.Fields(tt.addrs)}}, guard)
				_, err := d.DialContext(t.Context(), "tcp", "app.example:443")
				if refused := errors.Is(err, ErrRefused); refused == want {
					t.Errorf("DialContext = %v, want refused %t", err, !want)
				}
				if passed := len(*tried) > 0; passed != want {
					t.Errorf("connected to %v, want any %t", *tried, want)
				}
			}
		})
	}
}

func TestCI11_OnlyPort443(t *testing.T) {
	t.Parallel()
	d, tried := dialWith(&answers{list: [][]string{{"93.184.216.34"}}}, publicOnly())
	if _, err := d.DialContext(t.Context(), "tcp", "app.example:8443"); !errors.Is(err, ErrRefused) || len(*tried) > 0 {
		t.Errorf("port 8443: %v, connected to %v", err, *tried)
	}
}

// A name with a hundred addresses makes us knock at four.
func TestDialBoundsAttempts(t *testing.T) {
	t.Parallel()
	d, tried := dialWith(&answers{list: [][]string{{"2606:4700::1", "2606:4700::2", "93.184.216.34", "93.184.216.35", "2606:4700::3"}}}, publicOnly())
	_, err := d.DialContext(t.Context(), "tcp", "app.example:443")
	want := []string{"93.184.216.34:443", "93.184.216.35:443", "[2606:4700::1]:443", "[2606:4700::2]:443"}
	if !errors.Is(err, errUnreachable) || !slices.Equal(*tried, want) {
		t.Errorf("connected to %v, %v; want %v", *tried, err, want)
	}
}

// An address that does not answer costs its part of the time, the last one all.
func TestDialSharesTheTime(t *testing.T) {
	t.Parallel()
	for addrs, want := range map[string]time.Duration{"93.184.216.34": 4 * time.Hour, "93.184.216.34 93.184.216.35": 2 * time.Hour} {
		d, _ := dialWith(&answers{list: [][]string{strings.Fields(addrs)}}, publicOnly())
		var got []time.Duration
		d.connect = func(ctx context.Context, _, _ string) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			got = append(got, time.Until(deadline).Round(time.Hour))
			return nil, errUnreachable
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Hour)
		_, _ = d.DialContext(ctx, "tcp", "app.example:443")
		cancel()
		if len(got) == 0 || got[0] != want || got[len(got)-1] != 4*time.Hour {
			t.Errorf("%s: attempts of %v, want the first of %s and the last of all that is left", addrs, got, want)
		}
	}
}

// TestCI04_Rebinding: the DNS answers a public address, then that of a listener
// of ours. A connection goes to the address that was checked, so the second
// answer is refused and the listener hears nothing.
func TestCI04_Rebinding(t *testing.T) {
	t.Parallel()
	l := listen(t)
	dns := &answers{list: [][]string{{"93.184.216.34"}, {"127.0.0.1"}}}
	var tried []string
	d := newDialer(dns, ssrf.New(ssrf.WithAnyPort())) // any port, so that only the address can be refused
	connect := d.connect
	d.connect = func(ctx context.Context, network, address string) (net.Conn, error) {
		tried = append(tried, address)
		if strings.HasPrefix(address, "93.") {
			return nil, errUnreachable // a test asks nobody outside
		}
		return connect(ctx, network, address)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if _, err := d.DialContext(t.Context(), "tcp", "app.example:"+port); !errors.Is(err, errUnreachable) {
		t.Errorf("first answer: %v", err)
	}
	if dns.asked != 1 || !slices.Equal(tried, []string{"93.184.216.34:" + port}) {
		t.Errorf("%d look-ups, connected to %v; want the one address that was checked", dns.asked, tried)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "app.example:"+port); !errors.Is(err, ErrRefused) || !errors.Is(err, ssrf.ErrProhibitedIP) {
		t.Errorf("second answer: %v, want the address refused", err)
	}
	heardNothing(t, l)
}

// TestCI04_ControlChecksAgain connects past the first check.
func TestCI04_ControlChecksAgain(t *testing.T) {
	t.Parallel()
	l := listen(t)
	d := newDialer(nil, ssrf.New(ssrf.WithAnyPort()))
	if conn, err := d.connect(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, ErrRefused) {
		t.Errorf("connect = %v, %v; want ErrRefused", conn, err)
	}
	heardNothing(t, l)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// heardNothing connects itself and fails unless that is the first connection.
func heardNothing(t *testing.T, l net.Listener) {
	t.Helper()
	ours, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if first.RemoteAddr().String() != ours.LocalAddr().String() {
		t.Errorf("the listener heard from %s", first.RemoteAddr())
	}
}
