package doctor

import (
	"context"
	"errors"
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

// C9: a URL that a public server names is not asked on an address inside; what the
// operator named is, and all is where that is inside too.
func TestC09_PrivateAddresses(t *testing.T) {
	t.Parallel()
	u, asked := counting(t, func(http.ResponseWriter, *http.Request) {})
	port := u[strings.LastIndex(u, ":"):]
	dns := addresses{"public.example": "198.51.100.1", "inside.example": "127.0.0.1"}
	for _, tt := range []struct {
		name, target, url string
		want              bool
	}{
		{"named by a public server", "https://public.example", "http://inside.example" + port, false},
		{"literal", "https://public.example", "http://127.0.0.1" + port, false},
		{"literal in IPv6", "https://public.example", "http://[::ffff:127.0.0.1]" + port, false},
		{"a cloud's metadata", "https://public.example", "http://169.254.169.254", false},
		{"named by the operator", "http://inside.example" + port, "http://inside.example" + port, true},
		{"named by a server inside", "http://inside.example" + port, "http://127.0.0.1" + port, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := asked.Load()
			p := probeOf(t, tt.target, Options{Resolver: dns})
			if _, err := p.addresses(t.Context(), p.target); err != nil {
				t.Fatal(err)
			}
			e := p.ask(t.Context(), get(tt.url))
			var private *privateError
			if errors.As(e.err, &private) == tt.want || (asked.Load() > before) != tt.want {
				t.Errorf("asked: %t, want %t; %v", asked.Load() > before, tt.want, e.err)
			}
		})
	}
}

func TestIsPrivate(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{"10.0.0.1": true, "192.168.1.1": true, "172.16.0.1": true, "127.0.0.1": true, "169.254.169.254": true,
		"100.64.0.1": true, "0.0.0.0": true, "::1": true, "fe80::1": true, "fd00::1": true, "::ffff:10.0.0.1": true, "224.0.0.1": true,
		"8.8.8.8": false, "2606:4700::1": false, "100.128.0.1": false} {
		if got := isPrivate(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %t", addr, got)
		}
	}
}
