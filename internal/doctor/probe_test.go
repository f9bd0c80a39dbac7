package doctor

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// probeOf is a prober for an examination of target.
func probeOf(t *testing.T, target string, o Options) *prober {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	o.Now = time.Now
	return newProber(o, u)
}

// counting is a server that counts what it is asked.
func counting(t *testing.T, h http.HandlerFunc) (string, *atomic.Int32) {
	t.Helper()
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		h(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, &n
}

func TestProbeFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	away, asked := counting(t, func(http.ResponseWriter, *http.Request) {})
	u, _ := counting(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, away, http.StatusFound) })
	e := probeOf(t, u, Options{}).ask(t.Context(), get(u))
	if to, redirected := e.redirects(); !redirected || to != away {
		t.Errorf("redirect to %q, %v", to, e.err)
	}
	if asked.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

func TestProbeBounds(t *testing.T) {
	t.Parallel()
	u, asked := counting(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxBody+1)) })
	p := probeOf(t, u, Options{})
	e := p.ask(t.Context(), get(u))
	if e.err == nil || !strings.Contains(e.err.Error(), "larger than") {
		t.Errorf("a large body: %v", e.err)
	}
	if again := p.ask(t.Context(), get(u)); again != e || asked.Load() != 1 {
		t.Errorf("the same was asked %d times", asked.Load())
	}
	p.sent = maxRequests
	if e := p.send(t.Context(), get(u)); !errors.Is(e.err, errTooMany) || asked.Load() != 1 {
		t.Errorf("one request too many: %v", e.err)
	}
}

// C9: what a server sends is bounded before its body too.
func TestC09_LargeHeader(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]bool{maxHeader / 2: true, 2 * maxHeader: false} {
		u, _ := counting(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", strings.Repeat("x", size)) })
		if e := probeOf(t, u, Options{}).ask(t.Context(), get(u)); (e.err == nil) != want || len(e.header.Get("Server")) > maxHeader {
			t.Errorf("%d bytes: %v", size, e.err)
		}
	}
}

func TestC08_OnlyWebURLs(t *testing.T) {
	t.Parallel()
	p := probeOf(t, "https://a.example", Options{})
	for _, raw := range []string{"file:///etc/passwd", "javascript:alert(1)", "a:$(calc)", "-flag", "https://", "//a.example", "https://user@a.example", "gopher://a.example"} {
		if e := p.send(t.Context(), get(raw)); e.err == nil || e.status != 0 {
			t.Errorf("%s was asked: %v", raw, e.status)
		}
	}
}

// addresses is a DNS of a test.
type addresses map[string]string

func (a addresses) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if addr, found := a[host]; found {
		return []netip.Addr{netip.MustParseAddr(addr)}, nil
	}
	return nil, errors.New("no such host")
}

// C9: a URL that a server names is not asked on an address inside, unless the
// operator wrote such an address or allowed them; what the operator named is.
func TestC09_PrivateAddresses(t *testing.T) {
	t.Parallel()
	u, asked := counting(t, func(http.ResponseWriter, *http.Request) {})
	port := u[strings.LastIndex(u, ":"):]
	dns := addresses{"public.example": "8.8.8.8", "inside.example": "127.0.0.1", "localhost": "127.0.0.1"}
	for _, tt := range []struct {
		name, target, url string
		allow             bool
		want              bool
	}{
		{name: "named by a public server", target: "https://public.example", url: "http://inside.example" + port},
		{name: "literal", target: "https://public.example", url: "http://127.0.0.1" + port},
		{name: "literal in IPv6", target: "https://public.example", url: "http://[::ffff:127.0.0.1]" + port},
		{name: "a cloud's metadata", target: "https://public.example", url: "http://169.254.169.254"},
		{name: "a cloud's metadata, allowed", target: "https://public.example", url: "http://169.254.169.254", allow: true},
		{name: "a cloud's metadata by the operator", target: "http://169.254.169.254", url: "http://169.254.169.254"},
		{name: "named by the operator", target: "http://inside.example" + port, url: "http://inside.example" + port, want: true},
		{name: "named by the operator, another port", target: "http://inside.example:1", url: "http://inside.example" + port},
		{name: "named by a server whose DNS leads inside", target: "http://inside.example" + port, url: "http://127.0.0.1" + port},
		{name: "named by a server whose DNS leads inside, allowed", target: "http://inside.example" + port, url: "http://127.0.0.1" + port, allow: true, want: true},
		{name: "named by a loopback host", target: "http://localhost:1", url: "http://127.0.0.1" + port, want: true},
		{name: "named by a private address", target: "http://10.0.0.1", url: "http://inside.example" + port, want: true},
		{name: "a private address named by a loopback host", target: "http://localhost:1", url: "http://10.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := asked.Load()
			p := probeOf(t, tt.target, Options{Resolver: dns, AllowPrivate: tt.allow})
			_, _ = p.addresses(t.Context(), p.named[0]) // what was looked up before changes nothing
			e := p.ask(t.Context(), get(tt.url))
			var private *privateError
			if errors.As(e.err, &private) == tt.want || (asked.Load() > before) != tt.want {
				t.Errorf("asked: %t, want %t; %v", asked.Load() > before, tt.want, e.err)
			}
		})
	}
}

// several is a DNS in which each name has these addresses.
type several map[string][]netip.Addr

func (s several) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return s[host], nil
}

// C9: a server that adds an address inside to its own name opens nothing.
func TestC09_OwnNameOpensNothing(t *testing.T) {
	t.Parallel()
	const own = "mcp.evil.example"
	dns := several{own: {netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.255.255.1")}}
	for _, inside := range []string{"10.0.0.1", "192.168.1.1", "172.16.0.1", "127.0.0.1", "169.254.169.254", "168.63.129.16", "100.64.0.1", "198.18.0.1",
		"0.0.0.0", "0.1.2.3", "240.0.0.1", "224.0.0.1", "::1", "::7f00:1", "fe80::1", "fec0::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"} {
		t.Run(inside, func(t *testing.T) {
			t.Parallel()
			dns := maps.Clone(dns)
			dns["inside.example"] = []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr(inside)}
			p := probeOf(t, "https://"+own+"/mcp", Options{Resolver: dns})
			_, _ = p.addresses(t.Context(), own+":443")
			var private *privateError
			if addrs, err := p.addresses(t.Context(), "inside.example:443"); !errors.As(err, &private) {
				t.Errorf("%v, %v", addrs, err)
			}
			if e := p.send(t.Context(), get("http://inside.example:9/")); !errors.As(e.err, &private) {
				t.Errorf("send: %v", e.err)
			}
		})
	}
}

// says is a server that says this to every connection, and closes it.
func says(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = io.Copy(io.Discard, conn)
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// What does not answer, or not in HTTP, is one finding: neither a certificate, nor
// a clock, nor a firewall.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, says, why string }{
		{"closed", "", "closed before the answer"},
		{"another protocol", "SSH-2.0-OpenSSH_9.9\r\n", "not HTTP: malformed HTTP response"},
		{"a control character", "HTTP/1.1 401 Unauthorized\r\nA\x01: b\r\n\r\n", "not HTTP: malformed"},
		{"a large header", "HTTP/1.1 200 OK\r\nServer: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", "exceeded"},
		{"half an answer", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "closed before the answer"},
		{"TLS on this port", "HTTP/1.1 400 Bad Request\r\nContent-Length: 55\r\n\r\n<html>The plain HTTP request was sent to HTTPS port</ht", "speaks https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"", "/mcp"} {
				r := examine(t, Options{URL: says(t, tt.says) + path})
				if f := finding(t, r, "server-answer"); f.State != Broken || !strings.Contains(f.Why, tt.why) || f.Asked == "" {
					t.Errorf("%+v", f)
				}
				if r.Counts[Broken] != 1 || r.Counts[Warn] != 0 || r.Requests > 8 {
					t.Errorf("%+v, %d requests", r.Counts, r.Requests)
				}
			}
		})
	}
}
