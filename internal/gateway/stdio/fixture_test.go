//go:build unix

package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/gateway/stdio"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

const (
	issuer   = "https://login.example.com"
	resource = "https://mcp.example.com/mcp"
)

// fixture is a bridge behind the middleware, with an issuer of its own.
type fixture struct {
	t      *testing.T
	bridge *stdio.Bridge
	url    string
	key    *ecdsa.PrivateKey
	log    *logged

	mu    sync.Mutex
	ahead time.Duration
}

func newFixture(t *testing.T, mode []string, change ...func(*stdio.Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, log: &logged{}}
	var err error
	if f.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	o := stdio.Options{Command: append([]string{os.Args[0], asChild}, mode...), Env: []string{raceOptions}, Now: f.now, Log: slog.New(slog.NewJSONHandler(f.log, nil))}
	for _, c := range change {
		c(&o)
	}
	if f.bridge, err = stdio.New(o); err != nil {
		t.Fatal(err)
	}
	rs, err := resourceserver.New(resourceserver.Options{Issuers: []resourceserver.Issuer{{Identifier: issuer, JWKS: f.keys()}}, Resource: resource, Now: f.now})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(rs.Protect(f.bridge))
	srv.Start()
	f.url = srv.URL
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.bridge.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		srv.CloseClientConnections()
		srv.Close()
	})
	return f
}

func (f *fixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Add(f.ahead)
}

func (f *fixture) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead += d
}

func (f *fixture) keys() []byte {
	point, err := f.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		f.t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"k","x":%q,"y":%q}]}`, b64(point[1:33]), b64(point[33:]))
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token is one of subject's, valid for ten minutes.
func (f *fixture) token(subject string) string {
	f.t.Helper()
	claims, err := json.Marshal(map[string]any{"iss": issuer, "aud": resource, "sub": subject, "client_id": "c_1", "jti": rand.Text(),
		"iat": f.now().Unix(), "exp": f.now().Add(10 * time.Minute).Unix(), "scope": "x"})
	if err != nil {
		f.t.Fatal(err)
	}
	signed := b64([]byte(`{"typ":"at+jwt","alg":"ES256","kid":"k"}`)) + "." + b64(claims)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, f.key, digest[:])
	if err != nil {
		f.t.Fatal(err)
	}
	return signed + "." + b64(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// client speaks the transport by hand, with the token of one subject.
type client struct {
	f       *fixture
	token   string
	session string
	version string
}

// begin opens a session of subject.
func (f *fixture) begin(subject string) *client {
	f.t.Helper()
	c := &client{f: f, token: f.token(subject), version: "2025-11-25"}
	resp := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	body := read(f.t, resp)
	if c.session = resp.Header.Get("Mcp-Session-Id"); resp.StatusCode != http.StatusOK || c.session == "" {
		f.t.Fatalf("initialize = %s, %s", resp.Status, body)
	}
	return c
}

func (c *client) request(ctx context.Context, method, body string) *http.Request {
	c.f.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.f.url, strings.NewReader(body))
	if err != nil {
		c.f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", c.version)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return req
}

func (c *client) do(req *http.Request) *http.Response {
	c.f.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.f.t.Fatal(err)
	}
	c.f.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (c *client) send(method, body string) *http.Response {
	return c.do(c.request(c.f.t.Context(), method, body))
}

func (c *client) post(body string) *http.Response { return c.send(http.MethodPost, body) }

// listen opens the GET stream.
func (c *client) listen() *http.Response {
	c.f.t.Helper()
	resp := c.send(http.MethodGet, "")
	if resp.StatusCode != http.StatusOK {
		c.f.t.Fatalf("GET = %s", resp.Status)
	}
	return resp
}

// call returns the result of method.
func (c *client) call(method, text string) json.RawMessage {
	c.f.t.Helper()
	params, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		c.f.t.Fatal(err)
	}
	m := only(c.f.t, c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)))
	if m.Error != nil {
		c.f.t.Fatalf("%s = %+v", method, m.Error)
	}
	return m.Result
}

// answered is a message that a client got.
type answered struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// messages reads all messages of an answer, whether it is a stream or not.
func messages(t *testing.T, resp *http.Response) []answered {
	t.Helper()
	var list []answered
	for raw := range strings.SplitSeq(events(resp, read(t, resp)), "\n") {
		if raw == "" {
			continue
		}
		var m answered
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatalf("%s: %q is not JSON: %v", resp.Status, raw, err)
		}
		list = append(list, m)
	}
	return list
}

func events(resp *http.Response, body string) string {
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		return body
	}
	var data []string
	for line := range strings.SplitSeq(body, "\n") {
		if rest, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, rest)
		}
	}
	return strings.Join(data, "\n")
}

func only(t *testing.T, resp *http.Response) answered {
	t.Helper()
	list := messages(t, resp)
	if len(list) == 0 {
		t.Fatalf("%s: no message", resp.Status)
	}
	return list[len(list)-1]
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// next waits for the next message of a stream.
func next(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream has ended: %v", err)
		}
		if rest, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(rest)
		}
	}
}

// logged collects the log, and lets tests wait for a line.
type logged struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// await returns the log once it has part.
func (l *logged) await(t *testing.T, part string) string {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		l.mu.Lock()
		text := l.b.String()
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if strings.Contains(text, part) {
			return text
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("the log never had %q:\n%s", part, text)
		}
	}
}

// lifeline listens for processes that connect, and knows when they are dead.
func lifeline(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// process is one that has connected, and is alive as long as the connection is.
type process struct {
	net.Conn
	in  *bufio.Reader
	pid string
}

// alive waits for a process to connect.
func alive(t *testing.T, l net.Listener) *process {
	t.Helper()
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	p := &process{Conn: c, in: bufio.NewReader(c)}
	p.pid = p.says(t)
	return p
}

func (p *process) says(t *testing.T) string {
	t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil {
		t.Fatalf("the process is gone: %v", err)
	}
	return strings.TrimSpace(line)
}

// dead waits until that process is gone.
func dead(t *testing.T, p *process) {
	t.Helper()
	if _, err := p.in.ReadByte(); err == nil || os.IsTimeout(err) {
		t.Fatalf("the process is still alive: %v", err)
	}
}
