package netguard_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// short bounds requests that are meant to run into the limit.
const short = 250 * time.Millisecond

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// CI-21: nothing of us or of the person goes along.
func TestCI21_RequestSaysNothing(t *testing.T) {
	t.Parallel()
	var seen []*http.Request
	host := testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r)
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		w.Header().Set("ETag", `"v1"`)
		_, _ = io.WriteString(w, "hello")
	}))
	c := testkit.Outbound(t, host)
	o := netguard.GetOptions{Accept: "application/json", IfNoneMatch: `"v0"`, IfModifiedSince: "Sat, 21 Nov 2026 12:00:00 GMT"}
	for range 2 {
		res, err := c.Get(t.Context(), host.URL+"/client?v=1", o)
		if err != nil || res.Status != 200 || string(res.Body) != "hello" || res.Header.Get("ETag") != `"v1"` {
			t.Fatalf("Get = %+v, %v", res, err)
		}
	}
	for _, r := range seen {
		want := http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"ostiary"},
			"If-None-Match": {`"v0"`}, "If-Modified-Since": {"Sat, 21 Nov 2026 12:00:00 GMT"}, "Connection": {"close"}}
		if diff := cmp.Diff(want, r.Header); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
		if r.Method != "GET" || r.RequestURI != "/client?v=1" || r.Host != host.Host {
			t.Errorf("%s %s at %s", r.Method, r.RequestURI, r.Host)
		}
	}
	if seen[0].RemoteAddr == seen[1].RemoteAddr {
		t.Error("the connection was kept")
	}
}

func TestCI05_RedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := testkit.NewHTTPSHost(t, answer("secret"), "other.example")
	host := testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		http.Redirect(w, r, other.URL, status)
	}))
	c := testkit.Outbound(t, host, other)
	for _, status := range []int{301, 302, 303, 307, 308} {
		res, err := c.Get(t.Context(), fmt.Sprintf("%s/%d", host.URL, status), netguard.GetOptions{})
		if err != nil || res.Status != status || res.Body != nil {
			t.Errorf("%d: %+v, %v; want the redirect itself", status, res, err)
		}
	}
	if n := other.Requests(); n > 0 {
		t.Errorf("the target was asked %d times", n)
	}
}

func TestCI07_OnlyStatus200HasABody(t *testing.T) {
	t.Parallel()
	host := testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
		if status > 205 && status != 304 {
			_, _ = io.WriteString(w, "{}")
		}
	}))
	c := testkit.Outbound(t, host)
	for _, status := range []int{204, 206, 304, 404, 500, 503} {
		res, err := c.Get(t.Context(), fmt.Sprintf("%s/%d", host.URL, status), netguard.GetOptions{})
		if err != nil || res.Status != status || res.Body != nil {
			t.Errorf("%d: %+v, %v", status, res, err)
		}
	}
}

func TestCI06_Limits(t *testing.T) {
	t.Parallel()
	const limit = 1000
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat("a", 100))
		}
	}
	stop := func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // or the answer would end well, and might still be read
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    error  // nil: any
		text    string // in the error
		ok      bool
	}{
		{name: "the most", handler: answer(strings.Repeat("a", limit)), ok: true},
		{name: "one byte more", handler: answer(strings.Repeat("a", limit+1)), want: netguard.ErrTooLarge, text: "1001 bytes"},
		{name: "said to be 1 GiB", want: netguard.ErrTooLarge, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1073741824")
		}},
		{name: "chunks without end", want: netguard.ErrTooLarge, handler: endless},
		{name: "a body that stops", want: context.DeadlineExceeded, handler: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			stop(w, r)
		}},
		{name: "no answer", want: context.DeadlineExceeded, handler: stop},
		{name: "less than said", want: io.ErrUnexpectedEOF, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "a")
		}},
		{name: "gzip although not asked for", text: "Content-Encoding", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, 1<<20))
			_ = z.Close()
		}},
		{name: "1 MiB of headers", text: "header", handler: func(w http.ResponseWriter, _ *http.Request) {
			for i := range 1024 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("a", 1024))
			}
		}},
		{name: "early hints without end", handler: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.WriteHeader(http.StatusEarlyHints)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host := testkit.NewHTTPSHost(t, tt.handler)
			o := testkit.OutboundOptions(host)
			if tt.want == context.DeadlineExceeded {
				o.Timeout = short
			}
			res, err := newClient(t, o).Get(t.Context(), host.URL, netguard.GetOptions{MaxBytes: limit})
			if tt.ok {
				if err != nil || len(res.Body) != limit {
					t.Errorf("Get = %v, want %d bytes", err, limit)
				}
				return
			}
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("Get = %v, want %v %q", err, tt.want, tt.text)
			}
			if errors.Is(err, netguard.ErrRefused) {
				t.Errorf("Get = %v, which is not a refusal of ours", err)
			}
		})
	}
}

// CI-06: a host that accepts connections and never shakes hands.
func TestCI06_SilentTLS(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := newClient(t, netguard.Options{AllowHosts: []string{l.Addr().String()}, Timeout: short})
	begin := time.Now()
	if _, err := c.Get(t.Context(), "https://"+l.Addr().String(), netguard.GetOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get = %v, want the time limit", err)
	}
	if took := time.Since(begin); took > 20*short {
		t.Errorf("Get took %s, the limit is %s", took, short)
	}
}

func TestCI12_Certificates(t *testing.T) {
	t.Parallel()
	host := testkit.NewHTTPSHost(t, answer("hello"))
	expired := testkit.NewExpiredHTTPSHost(t, answer("hello"))
	unknown := testkit.OutboundOptions(host)
	unknown.RootCAs = x509.NewCertPool()
	wrongName := testkit.OutboundOptions(host)
	other := strings.Replace(host.Host, "client.example", "other.example", 1)
	wrongName.AllowHosts = []string{other}
	host.Resolver.Set("other.example", []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	for _, tt := range []struct {
		name string
		o    netguard.Options
		url  string
		want any
	}{
		{"unknown authority", unknown, host.URL, new(x509.UnknownAuthorityError)},
		{"wrong name", wrongName, "https://" + other, new(x509.HostnameError)},
		{"expired", testkit.OutboundOptions(expired), expired.URL, new(x509.CertificateInvalidError)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := newClient(t, tt.o).Get(t.Context(), tt.url, netguard.GetOptions{}); err == nil || !errors.As(err, tt.want) {
				t.Errorf("Get = %v, want %T", err, tt.want)
			}
		})
	}
	if host.Requests()+expired.Requests() > 0 {
		t.Error("a host with a bad certificate got a request")
	}
}

// A foreign name that leads to a private address, and an allowed one that leads
// to the cloud's metadata, are refused by the whole client.
func TestCI03_NamesOfPrivateAddresses(t *testing.T) {
	t.Parallel()
	dns := &testkit.Resolver{}
	dns.Set("app.example", []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	dns.Set("mixed.example", []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.0.0.1")})
	dns.Set("allowed.example", []netip.Addr{netip.MustParseAddr("169.254.169.254")})
	c := newClient(t, netguard.Options{Resolver: dns, AllowHosts: []string{"allowed.example"}})
	for _, name := range []string{"app.example", "mixed.example", "allowed.example"} {
		_, err := c.Get(t.Context(), "https://"+name+"/", netguard.GetOptions{})
		if !errors.Is(err, netguard.ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", name, err)
		}
	}
	_, err := c.Get(t.Context(), "https://unknown.example/", netguard.GetOptions{})
	var notFound *net.DNSError
	if !errors.As(err, &notFound) || errors.Is(err, netguard.ErrRefused) {
		t.Errorf("unknown.example: %v, want the DNS's error", err)
	}
	asked := dns.Asked()
	if _, err := c.Get(t.Context(), "https://metadata.google.internal/", netguard.GetOptions{}); !errors.Is(err, netguard.ErrRefused) {
		t.Errorf("metadata.google.internal: %v", err)
	}
	if !slices.Equal(asked, dns.Asked()) {
		t.Errorf("a refused name was looked up: %v", dns.Asked())
	}
}

// TestCI12_EnvironmentProxy is not parallel: it sets the environment, before any
// request of this process.
func TestCI12_EnvironmentProxy(t *testing.T) {
	var used atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { used.Store(true) }))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	host := testkit.NewHTTPSHost(t, answer("hello"))
	res, err := testkit.Outbound(t, host).Get(t.Context(), host.URL, netguard.GetOptions{})
	if err != nil || string(res.Body) != "hello" || used.Load() {
		t.Errorf("Get = %v, %v; over the environment's proxy: %t", res, err, used.Load())
	}
}

// connectProxy is an HTTP proxy that leads every CONNECT to one address.
type connectProxy struct {
	to    string
	asked chan string
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	p.asked <- fmt.Sprint(r.Method, " ", r.RequestURI, " ", user, ":", password)
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = far.Close() }()
	w.WriteHeader(http.StatusOK)
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = near.Close() }()
	go func(from *bufio.Reader) { _, _ = io.Copy(far, from) }(buffered.Reader)
	_, _ = io.Copy(near, far)
}

func TestConfiguredProxy(t *testing.T) {
	t.Parallel()
	public := testkit.NewHTTPSHost(t, answer("public"), "app.example")
	private := testkit.NewHTTPSHost(t, answer("private"), "app.corp.example")
	_, port, _ := net.SplitHostPort(public.Host)
	p := &connectProxy{to: "127.0.0.1:" + port, asked: make(chan string, 8)}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)

	dns := &testkit.Resolver{}
	dns.Set("app.corp.example", []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	o := testkit.OutboundOptions(public, private)
	o.AllowHosts, o.Resolver = []string{private.Host}, dns
	o.Proxy = strings.Replace(server.URL, "http://", "http://user:secret@", 1)
	c := newClient(t, o)

	if res, err := c.Get(t.Context(), "https://app.example/client", netguard.GetOptions{}); err != nil || string(res.Body) != "public" {
		t.Fatalf("over the proxy: %v, %v", res, err)
	}
	if got, want := <-p.asked, "CONNECT app.example:443 user:secret"; got != want {
		t.Errorf("the proxy heard %q, want %q", got, want)
	}
	if res, err := c.Get(t.Context(), private.URL, netguard.GetOptions{}); err != nil || string(res.Body) != "private" {
		t.Errorf("allowed host: %v, %v", res, err)
	}
	for _, raw := range []string{"https://10.0.0.1/", "https://app.example:22/", "https://metadata.google.internal/"} {
		if _, err := c.Get(t.Context(), raw, netguard.GetOptions{}); !errors.Is(err, netguard.ErrRefused) {
			t.Errorf("%s over the proxy: %v, want ErrRefused", raw, err)
		}
	}
	if len(p.asked) > 0 {
		t.Errorf("the proxy was asked for %s", <-p.asked)
	}
	if got := dns.Asked(); !maps.Equal(map[string]bool{"app.corp.example": true}, set(got)) {
		t.Errorf("we looked up %v, want only the host that is not the proxy's", got)
	}
}

func set(list []string) map[string]bool {
	m := map[string]bool{}
	for _, s := range list {
		m[s] = true
	}
	return m
}
