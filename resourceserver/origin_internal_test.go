package resourceserver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// namedAddr is the address of a listener that is not net's own.
type namedAddr string

func (namedAddr) Network() string  { return "tcp" }
func (a namedAddr) String() string { return string(a) }

func TestJW27_ArrivedOnLoopback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		addr any
		want bool
	}{
		{"IPv4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9), Port: 80}, true},
		{"IPv6", &net.TCPAddr{IP: net.IPv6loopback, Port: 80}, true},
		{"IPv4 in IPv6", &net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1"), Port: 80}, true},
		{"elsewhere", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, false},
		{"another listener's", namedAddr("127.0.0.1:80"), true},
		{"another listener's, in IPv6", namedAddr("[::ffff:127.0.0.1]:80"), true},
		{"another listener's, elsewhere", namedAddr("192.0.2.1:80"), false},
		{"a unix socket", &net.UnixAddr{Name: "/run/127.0.0.1:80", Net: "unix"}, false},
		{"none", nil, false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.addr))
		if got := arrivedOnLoopback(r); got != tt.want {
			t.Errorf("JW-27 %s: arrivedOnLoopback = %v, want %v", tt.name, got, tt.want)
		}
	}
}
