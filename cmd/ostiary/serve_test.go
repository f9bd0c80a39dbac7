package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
)

// lockedBuffer may be written by the server while the test reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
	eol chan struct{} // a value after each write
}

func newLockedBuffer() *lockedBuffer { return &lockedBuffer{eol: make(chan struct{}, 1)} }

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.eol <- struct{}{}:
	default: // nobody has looked for a while
	}
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// await returns the first group of re as soon as it was written.
func (b *lockedBuffer) await(t *testing.T, re string) string {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		if m := regexp.MustCompile(re).FindStringSubmatch(b.String()); m != nil {
			return m[1]
		}
		select {
		case <-b.eol:
		case <-deadline:
			t.Fatalf("%s was not written; output:\n%s", re, b)
		}
	}
}

// running is a serve in this process.
type running struct {
	out, err *lockedBuffer
	stop     func() int // interrupts and returns the exit code
}

// start runs ostiary serve with ports of its own choice in a new state directory.
func start(t *testing.T, environ ...string) *running {
	t.Helper()
	r := &running{out: newLockedBuffer(), err: newLockedBuffer()}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	environ = append([]string{"OSTIARY_STATE_DIR=" + filepath.Join(t.TempDir(), "state")}, environ...)
	c := newCLI(environ, strings.NewReader(""), r.out, r.err)
	go func() {
		code <- c.run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"})
	}()
	r.stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { r.stop() })
	return r
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// A first start needs nothing, tells where it is, and ends cleanly.
func TestServe(t *testing.T) {
	t.Parallel()
	r := start(t)
	admin := r.out.await(t, `health +(http://\S+)/healthz\n`)
	if link := r.out.await(t, `(http://localhost:8414/setup\S+)\n`); strings.Contains(r.err.String(), link) {
		t.Error("the set-up link is in the log")
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/metrics": "go_goroutines"} {
		if status, body := get(t, http.DefaultClient, admin+path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("GET %s = %d %.100q, want %q", path, status, body, want)
		}
	}
	if status, _ := get(t, http.DefaultClient, admin+"/debug/pprof/"); status != 404 {
		t.Errorf("pprof answers %d without --debug-pprof", status)
	}
	if code := r.stop(); code != exitDone {
		t.Errorf("exit code %d after an interrupt, want 0; log:\n%s", code, r.err)
	}
}

// D4: both loopback addresses lead to us, so no other program answers for localhost.
func TestD04_BothLoopbackAddresses(t *testing.T) {
	t.Parallel()
	r := start(t)
	port := r.out.await(t, `listening +127\.0\.0\.1:(\d+)`)
	if hasAddress("::1") {
		r.out.await(t, `listening +127\.0\.0\.1:\d+, (\[::1\]:`+port+`)\n`)
	}
}

func TestD04_TakenPortIsRefused(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			if !hasAddress(host) {
				t.Logf("this machine has no %s", host)
				return
			}
			taken, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = taken.Close() }()
			port := taken.Addr().(*net.TCPAddr).Port
			cfg := config.Default()
			cfg.Listen = fmt.Sprintf("127.0.0.1:%d", port)
			cfg.AdminListen = "127.0.0.1:0"
			l, err := listen(cfg)
			if err == nil {
				l.close()
			}
			if err == nil || !strings.Contains(err.Error(), "is taken by another program") {
				t.Errorf("listen = %v, want a refusal", err)
			}
		})
	}
}

func TestListenAdminSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "admin.sock")
	first, err := listenAdmin("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenAdmin("unix:" + path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second listener = %v, want a refusal", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) // as after kill -9
	_ = first.Close()
	second, err := listenAdmin("unix:" + path)
	if err != nil {
		t.Fatalf("a stale socket stops the start: %v", err)
	}
	_ = second.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenAdmin("unix:" + path); err == nil {
		t.Error("a file that is no socket was removed")
	}
}

// D34: the admin listener has no sign-in, so a browser must not reach it.
func TestD34_AdminGuard(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.AllowedHosts = []string{"ostiary.internal"}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "metrics") })
	ready := func(context.Context) error { return errors.New("database does not answer") }
	h := newAdminHandler(cfg, metrics, ready)
	for _, tt := range []struct {
		name, method, path, host string
		header                   [2]string
		want                     int
	}{
		{"health", "GET", "/healthz", "127.0.0.1:8415", [2]string{}, 200},
		{"HEAD", "HEAD", "/healthz", "localhost", [2]string{}, 200},
		{"a name the operator added", "GET", "/metrics", "ostiary.internal:8415", [2]string{}, 200},
		{"not ready", "GET", "/readyz", "[::1]:8415", [2]string{}, 503},
		{"D34 rebound name", "GET", "/metrics", "evil.example:8415", [2]string{}, 421},
		{"D34 POST", "POST", "/healthz", "127.0.0.1:8415", [2]string{}, 405},
		{"D34 cross-site", "GET", "/metrics", "127.0.0.1:8415", [2]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"D34 another origin", "GET", "/metrics", "127.0.0.1:8415", [2]string{"Origin", "https://evil.example"}, 403},
		{"typed by a person", "GET", "/metrics", "127.0.0.1:8415", [2]string{"Sec-Fetch-Site", "none"}, 200},
		{"D34 pprof without its flag", "GET", "/debug/pprof/", "127.0.0.1:8415", [2]string{}, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.Host = tt.host
			if tt.header[0] != "" {
				r.Header.Set(tt.header[0], tt.header[1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.want || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s at %s = %d %v, want %d without CORS", tt.method, tt.path, tt.host, w.Code, w.Header(), tt.want)
			}
		})
	}
}

// A renewed certificate is used without a restart; a broken one is not.
func TestCertificateFollowsItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, certFile, keyFile, 1)
	c := &certificate{certFile: certFile, keyFile: keyFile, log: slog.New(slog.DiscardHandler)}
	if err := c.load(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name   string
		change func()
		want   int64
	}{
		{"unchanged", func() {}, 1},
		{"renewed", func() { writePair(t, certFile, keyFile, 2) }, 2},
		{"broken", func() { writeAt(t, certFile, []byte("nothing"), 3) }, 2},
		{"missing", func() { _ = os.Remove(certFile) }, 2},
	} {
		step.change()
		c.checked = time.Time{} // as if the minute had passed
		pair, err := c.get(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil || leaf.SerialNumber.Int64() != step.want {
			t.Errorf("%s: serial %v, %v; want %d", step.name, leaf.SerialNumber, err, step.want)
		}
	}
}

// writePair writes a self-signed certificate; each serial has a later file time.
func writePair(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"},
		DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeAt(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), serial)
	writeAt(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), serial)
}

func writeAt(t *testing.T, path string, data []byte, minute int64) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000+60*minute, 0)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TLS by itself: the issuer on loopback with a certificate.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, certFile, keyFile, 1)
	r := start(t, "OSTIARY_ISSUER=https://localhost:8414", "OSTIARY_TLS_CERT="+certFile, "OSTIARY_TLS_KEY="+keyFile)
	port := r.out.await(t, `listening +127\.0\.0\.1:(\d+)`)
	pool := x509.NewCertPool()
	data, err := os.ReadFile(certFile)
	if err != nil || !pool.AppendCertsFromPEM(data) {
		t.Fatal("no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest("GET", "https://127.0.0.1:"+port+"/.well-known/oauth-authorization-server", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "localhost:8414"
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("metadata = %s over %s, want 200 over HTTP/2", res.Status, res.Proto)
	}
}

func TestMetadataURL(t *testing.T) {
	t.Parallel()
	for issuer, want := range map[string]string{
		"https://auth.example.com":     "https://auth.example.com/.well-known/oauth-authorization-server",
		"https://auth.example.com/mcp": "https://auth.example.com/.well-known/oauth-authorization-server/mcp",
	} {
		cfg := config.Default()
		cfg.Issuer = issuer
		if got := metadataURL(cfg); got != want {
			t.Errorf("metadataURL of %s = %s, want %s", issuer, got, want)
		}
	}
}
