package doctor

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The names of the set-up; nobody's DNS knows them.
const (
	serverHost = "mcp.example.com"
	issuerHost = "id.example.com"
)

// nginx is what a fault may change of the configuration.
type nginx struct {
	// server and issuer are directives of the two server blocks; a location there
	// wins over the proxied one.
	server, issuer string
	// serverProxy and issuerProxy are directives of the proxied locations.
	serverProxy, issuerProxy string
	// certificate changes the MCP server's certificate.
	certificate func(leaf *x509.Certificate)
	// withoutIntermediate sends the leaf alone.
	withoutIntermediate bool
	// http are directives outside of both server blocks.
	http string
	// from is the address that requests seem to come from.
	from string
}

// configuration of nginx: a folder, its ports, both backends, and what a fault changes.
const configuration = `daemon off; worker_processes 1;
pid %[1]s/nginx.pid; error_log stderr warn;
events {}
http {
	access_log off; server_tokens off; default_type text/plain;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	proxy_http_version 1.1; proxy_set_header Accept-Encoding "";
	sub_filter_types application/json; sub_filter_once off;
	map $http_authorization $invalid { "" ""; default ', error="invalid_token"'; }
	proxy_set_header X-Forwarded-For %[10]s;
	%[11]s
	server {
		listen 127.0.0.1:%[2]d ssl; listen 127.0.0.1:%[3]d; server_name mcp.example.com;
		ssl_certificate %[1]s/server.pem; ssl_certificate_key %[1]s/server.key;
		%[6]s
		location / { proxy_pass http://%[4]s; proxy_set_header Host $host; proxy_set_header X-Forwarded-For %[10]s; %[7]s
		}
	}
	server {
		listen 127.0.0.1:%[2]d ssl; server_name id.example.com;
		ssl_certificate %[1]s/issuer.pem; ssl_certificate_key %[1]s/issuer.key;
		%[8]s
		location / { proxy_pass http://%[5]s; proxy_set_header Host $host; proxy_set_header X-Forwarded-For %[10]s; %[9]s
		}
	}
}
`

// running is an nginx of one test.
type running struct{ tls, plain int }

// start starts nginx in front of an MCP server and an issuer, given as host:port.
func (n nginx) start(t *testing.T, ca *authority, server, issuer string) running {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Fatal("nginx is missing: test/setup.sh installs it")
		}
	}
	dir := t.TempDir()
	ca.write(t, filepath.Join(dir, "server"), serverHost, n.certificate, n.withoutIntermediate)
	ca.write(t, filepath.Join(dir, "issuer"), issuerHost, nil, false)
	tls, plain := listen(t), listen(t)
	r := running{tls: port(tls), plain: port(plain)}
	text := fmt.Sprintf(configuration, dir, r.tls, r.plain, server, issuer, n.server, n.serverProxy, n.issuer, n.issuerProxy, n.from, n.http)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(program, "-p", dir, "-c", file, "-e", "stderr")
	cmd.Stdout, cmd.Stderr = &out, &out
	// nginx inherits listeners by this variable, so that nobody takes its ports
	cmd.ExtraFiles, cmd.Env = []*os.File{tls, plain}, append(os.Environ(), "NGINX=3;4;")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = tls.Close(), plain.Close() // nginx has them; a closed one is what is wanted
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); <-ended }) // its master ends the worker
	r.await(t, ended, &out, text)
	return r
}

// await returns when nginx answers.
func (r running) await(t *testing.T, ended chan error, out *bytes.Buffer, text string) {
	t.Helper()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Head(fmt.Sprintf("http://127.0.0.1:%d/", r.plain))
	if err == nil {
		_ = resp.Body.Close()
		return
	}
	select {
	case end := <-ended:
		ended <- end
		t.Fatalf("nginx ended: %v\n%s\n%s", end, out, text)
	case <-time.After(time.Minute):
		t.Fatalf("nginx does not answer: %v", err)
	}
}

// listen opens a listener on a port that the system chooses.
func listen(t *testing.T) *os.File {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func port(f *os.File) int {
	l, err := net.FileListener(f)
	if err != nil {
		panic(err) // it is one that was just opened
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// authority is a root with an intermediate, as public ones are.
type authority struct {
	root, intermediate *x509.Certificate
	key                *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	rootKey, key := newKey(t), newKey(t)
	root, intermediate := template(1, "Example Root"), template(2, "Example Intermediate")
	for _, c := range []*x509.Certificate{root, intermediate} {
		c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign
	}
	a := &authority{key: key}
	a.root = sign(t, root, root, rootKey, rootKey)
	a.intermediate = sign(t, intermediate, a.root, key, rootKey)
	return a
}

// pool trusts the root.
func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.root)
	return p
}

// write writes name.pem and name.key.
func (a *authority) write(t *testing.T, name, host string, change func(*x509.Certificate), leafAlone bool) {
	t.Helper()
	key := newKey(t)
	leaf := template(3, host)
	leaf.DNSNames, leaf.ExtKeyUsage = []string{host}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if change != nil {
		change(leaf)
	}
	chain := []*x509.Certificate{sign(t, leaf, a.intermediate, key, a.key), a.intermediate}
	if leafAlone {
		chain = chain[:1]
	}
	var b strings.Builder
	for _, c := range chain {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{name + ".pem": b.String(), name + ".key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(60 * 24 * time.Hour)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, c, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// proxied writes what a directive "PROXY" stands for: on to the backend, with the
// Host header or, as nginx does by itself, with the backend's address in its place.
func proxied(directives, backend, from string) string {
	pass := "proxy_pass http://" + backend + "; proxy_set_header X-Forwarded-For " + from + ";"
	return strings.NewReplacer("PROXY;", pass+" proxy_set_header Host $host;", "PROXY WITHOUT HOST;", pass).Replace(directives)
}
