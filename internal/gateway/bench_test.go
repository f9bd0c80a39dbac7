package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/gateway"
)

// benchAnswer is of the size that list_tools of a small server has.
var benchAnswer = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat("note ", 400) + `"}]}}`

// BenchmarkDirect is client and upstream without a proxy: what is left of the
// others without it is theirs.
func BenchmarkDirect(b *testing.B) {
	f := benchFixture(b)
	benchProxy(b, f, f.upstream.Config.Handler)
}

// BenchmarkPlainProxy is httputil.ReverseProxy as its documentation has it, with as
// many idle connections as the gateway keeps: the default of two would have it open
// new ones. Everything goes over sockets: client, proxy, upstream.
func BenchmarkPlainProxy(b *testing.B) { benchPlain(b, nil) }

// BenchmarkPooledProxy is the same with a BufferPool, as the gateway has one.
func BenchmarkPooledProxy(b *testing.B) { benchPlain(b, &pool{}) }

func benchPlain(b *testing.B, buffers httputil.BufferPool) {
	b.Helper()
	f := benchFixture(b)
	target, err := url.Parse(f.upstream.URL + "/inner")
	must(b, err)
	benchProxy(b, f, &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = target, "" },
		Transport:  &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256},
		BufferPool: buffers,
	})
}

type pool struct{ sync.Pool }

func (p *pool) Get() []byte {
	if b, ok := p.Pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (p *pool) Put(b []byte) { p.Pool.Put(&b) }

// BenchmarkGateway does all that a gateway does, with a token that was seen.
func BenchmarkGateway(b *testing.B) {
	f := benchFixture(b)
	benchProxy(b, f, f.gateway)
}

// BenchmarkGatewayNoIdentity leaves out the identity.
func BenchmarkGatewayNoIdentity(b *testing.B) {
	f := benchFixture(b, func(_ *fixture, o *gateway.Options) { o.Identity = gateway.IdentityNone })
	benchProxy(b, f, f.gateway)
}

func benchFixture(b *testing.B, change ...func(*fixture, *gateway.Options)) *fixture {
	b.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, benchAnswer)
	}))
	b.Cleanup(upstream.Close)
	change = append(change, func(f *fixture, o *gateway.Options) {
		f.upstream = upstream
		o.Upstream, o.Log = upstream.URL+"/inner", nil
		o.Now = time.Now
	})
	return newFixture(b, change...)
}

// benchProxy calls over eight connections at a time, and reports processor time
// beside ns/op: other programs on the machine disturb it less.
func benchProxy(b *testing.B, f *fixture, proxy http.Handler) {
	b.Helper()
	front := httptest.NewServer(proxy)
	b.Cleanup(front.Close)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	authorization := "Bearer " + f.token(b)
	once := func() {
		r, err := http.NewRequest(http.MethodPost, front.URL+"/mcp", strings.NewReader(call))
		if err != nil {
			b.Error(err)
			return
		}
		for name, value := range map[string]string{"Authorization": authorization, "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25", "User-Agent": "bench"} {
			r.Header.Set(name, value)
		}
		res, err := client.Do(r)
		if err != nil {
			b.Error(err)
			return
		}
		n, _ := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK || int(n) != len(benchAnswer) {
			b.Errorf("status %d, %d bytes", res.StatusCode, n)
		}
	}
	for range 100 {
		once()
	}
	b.ReportAllocs()
	b.SetParallelism(8)
	before := processorTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			once()
		}
	})
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
