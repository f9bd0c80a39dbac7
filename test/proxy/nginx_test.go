package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// name is the issuer's host in examples/nginx.conf.
const name = "auth.example.com"

// front is nginx with the recommended configuration, and what reaches the Ostiary
// behind it.
type front struct {
	port int

	mu                    sync.Mutex
	seen                  []arrival
	requests, connections int // that reached Ostiary in all
}

// arrival is a request as Ostiary reads it.
type arrival struct {
	method, path, body, host, forwarded string
}

// startNginx runs examples/nginx.conf; kept makes it keep its connection to Ostiary.
func startNginx(t *testing.T, kept bool) *front {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Fatal("nginx is missing: test/setup.sh installs it")
		}
	}
	f := &front{port: launch.FreePort(t)}
	backend := httptest.NewUnstartedServer(f.watch(newOstiary(t)))
	backend.Config.ConnState = f.count
	backend.Start()
	t.Cleanup(backend.Close)
	dir := t.TempDir()
	writeCertificate(t, dir)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(f.configuration(t, dir, backend.URL, kept)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch.Start(t, nil, program, "-p", dir, "-c", file, "-e", "stderr")
	p.Await(t, fmt.Sprintf("http://127.0.0.1:%d/", f.port)) // a 400, since it speaks TLS there
	return f
}

// configuration is the recipe with this test's addresses and files. Each of them must
// be found, so that the recipe cannot drift away from the test.
func (f *front) configuration(t *testing.T, dir, backend string, kept bool) string {
	t.Helper()
	upstream := ""
	if kept {
		upstream = fmt.Sprintf("upstream ostiary { server %s; keepalive 1; }\n", strings.TrimPrefix(backend, "http://"))
		backend = "http://ostiary"
	}
	b, err := os.ReadFile("../../examples/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	recipe := string(b)
	for _, change := range [][2]string{
		{"listen 443 ssl;", fmt.Sprintf("listen 127.0.0.1:%d ssl;", f.port)},
		{"\tlisten [::]:443 ssl;\n", ""},
		{"/etc/letsencrypt/live/auth.example.com/fullchain.pem", dir + "/cert.pem"},
		{"/etc/letsencrypt/live/auth.example.com/privkey.pem", dir + "/key.pem"},
		{"/var/log/nginx/ostiary.log", dir + "/access.log"},
		{"http://127.0.0.1:8414", backend},
	} {
		if strings.Count(recipe, change[0]) != 1 {
			t.Fatalf("examples/nginx.conf has %q not once", change[0])
		}
		recipe = strings.Replace(recipe, change[0], change[1], 1)
	}
	var paths strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		_, _ = fmt.Fprintf(&paths, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	return fmt.Sprintf("daemon off; master_process off; worker_processes 1; pid %s/pid;\nevents {}\nhttp {\n%s%s%s}\n",
		dir, paths.String(), upstream, recipe)
}

func newOstiary(t *testing.T) http.Handler {
	t.Helper()
	return testkit.NewServer(t, testkit.OpenSQLite(t), func(c *config.Config) {
		c.Issuer = "https://" + name
		c.TrustedProxies = []string{"127.0.0.1"}
	}).App.Public()
}

// watch notes each request and numbers its answer.
func (f *front) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		f.mu.Lock()
		f.seen = append(f.seen, arrival{r.Method, r.URL.Path, string(body), r.Host, strings.Join(r.Header.Values("X-Forwarded-For"), "; ")})
		f.requests++
		w.Header().Set("X-Seen", strconv.Itoa(f.requests))
		f.mu.Unlock()
		if err != nil {
			http.Error(w, "a body that ends early", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// count counts connections that carry a request.
func (f *front) count(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.connections++
	}
}

// arrived returns and forgets what Ostiary has seen.
func (f *front) arrived() []arrival {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen = nil
	return seen
}

// dial connects to nginx as a client of the issuer does.
func (f *front) dial(t *testing.T) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", f.port), &tls.Config{InsecureSkipVerify: true, ServerName: name, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
