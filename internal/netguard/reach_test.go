package netguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

// reachHost is a DNS of one answer.
type reachHost []netip.Addr

func (h reachHost) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return h, nil }

func TestC9_ReachOfDialer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	loopback, private := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.255.255.1")
	for _, tt := range []struct {
		name  string
		reach Reach
		addrs reachHost
		ok    bool
	}{
		{name: "public reach, loopback", reach: Public, addrs: reachHost{loopback}},
		{name: "loopback reach, loopback", reach: Loopback, addrs: reachHost{loopback}, ok: true},
		{name: "loopback reach, private", reach: Loopback, addrs: reachHost{private}},
		{name: "loopback reach, loopback beside private", reach: Loopback, addrs: reachHost{loopback, private}},
		{name: "private reach, loopback", reach: Private, addrs: reachHost{loopback}, ok: true},
		{name: "private reach, link-local", reach: Private, addrs: reachHost{netip.MustParseAddr("169.254.169.254")}},
		{name: "private reach, cloud metadata", reach: Private, addrs: reachHost{netip.MustParseAddr("fd00:ec2::254")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn, err := NewDialer(tt.reach, tt.addrs)(t.Context(), "tcp", net.JoinHostPort("host.example", port))
			if err == nil {
				_ = conn.Close()
			}
			if (err == nil) != tt.ok || !tt.ok && !errors.Is(err, ErrRefused) {
				t.Errorf("dial: %v", err)
			}
		})
	}
}

func TestC9_CheckHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		host string
		from Reach // the first reach that permits it; 3: none
	}{
		{"as.example", Public}, {"8.8.8.8", Public}, {"2606:4700::1111", Public},
		{"localhost", Loopback}, {"LOCALHOST", Loopback}, {"x.localhost", Loopback}, {"127.0.0.1", Loopback}, {"::1", Loopback},
		{"::ffff:127.0.0.1", Loopback}, {"10.0.0.1", Private}, {"fd12::1", Private}, {"192.168.1.1", Private},
		{"169.254.169.254", 3}, {"fe80::1", 3}, {"100.100.100.200", 3}, {"0.0.0.0", 3}, {"2130706433", 3}, {"0x7f.1", 3}, {"127.1", 3}, {"-flag", 3},
		{"intranet", Private}, {"printer.local", Private}, {"vault.internal", Private}, {"nas.home.arpa", Private},
		{"metadata.google.internal", 3}, {"METADATA.google.internal", 3}, {"metadata", 3}, {"instance-data", 3}, {"internal.example", Public},
	} {
		for reach := Public; reach <= Private; reach++ {
			err := CheckHost(reach, tt.host)
			if (err == nil) != (reach >= tt.from) || err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("CheckHost(%d, %q) = %v", reach, tt.host, err)
			}
		}
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"localhost": true, "127.8.8.8": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.example": false, "10.0.0.1": false, "127.0.0.1.example": false} {
		if got := IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %t", host, got)
		}
	}
}
