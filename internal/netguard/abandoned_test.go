package netguard_test

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestCI06_NothingOutlivesItsRequest: a host that accepts and then never says a
// word of TLS keeps neither the request nor the connection. net/http dials
// outside the request's context, so the end of the request alone closes nothing.
func TestCI06_NothingOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	hungUp := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer func() { _ = conn.Close() }()
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err = io.Copy(io.Discard, conn) // nil at the end of the connection
		}
		hungUp <- err
	}()
	dns := &testkit.Resolver{}
	dns.Set("silent.example", []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	host := net.JoinHostPort("silent.example", port)
	c := newClient(t, netguard.Options{AllowHosts: []string{host}, Resolver: dns, Timeout: 200 * time.Millisecond})
	if _, err := c.Get(t.Context(), "https://"+host+"/client.json", netguard.GetOptions{}); err == nil {
		t.Fatal("Get succeeded without TLS")
	}
	if err := <-hungUp; err != nil {
		t.Errorf("the connection outlived its request: %v", err)
	}
}
