package gateway_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/gateway"
)

// An upstream that does not answer well is 502 or 504, in the form that the client
// asked in, and never 401: a client would sign in again.
func TestBadUpstream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		want   int
		answer http.HandlerFunc
		logged string
	}{
		{"401", 502, status(401, "Www-Authenticate", "Bearer"), "a credential of its own"},
		{"407", 502, status(407), "a credential of its own"},
		{"redirect", 502, status(307, "Location", "/inner/"), "location=/inner/"},
		{"101", 502, switches, "switches protocols"},
		{"no HTTP", 502, hijack("hello\r\n\r\n"), "malformed"},
		{"closes", 502, hijack(""), "EOF"},
		{"huge header", 502, status(200, "X-Large", strings.Repeat("x", 1<<17)), "exceeded"},
		{"500", 500, status(500), ""},
		{"404", 404, status(404), ""},
		{"304", 304, status(304), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.answers(tt.answer)
			res := f.post(t, call)
			body := text(t, res)
			if res.StatusCode != tt.want || res.Header.Get("Www-Authenticate") != "" || res.Header.Get("Location") != "" {
				t.Fatalf("answer = %d %v %s", res.StatusCode, res.Header, body)
			}
			if tt.want != http.StatusBadGateway {
				return
			}
			checkRPC(t, body, "7")
			if strings.Contains(body, f.upstream.Listener.Addr().String()) {
				t.Errorf("the client learns where the upstream is: %s", body)
			}
			if log := f.log.String(); !strings.Contains(log, tt.logged) || !strings.Contains(log, "upstream.failed") {
				t.Errorf("log has no %q: %s", tt.logged, log)
			}
		})
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func hijack(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}
}

func switches(w http.ResponseWriter, r *http.Request) {
	hijack("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")(w, r)
}

// checkRPC wants a JSON-RPC error for the message with this id.
func checkRPC(t *testing.T, body, id string) {
	t.Helper()
	var m struct {
		Version string `json:"jsonrpc"`
		ID      json.RawMessage
		Error   struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if m.Version != "2.0" || string(m.ID) != id || m.Error.Code != -32603 || !strings.Contains(m.Error.Message, "MCP server") {
		t.Errorf("body = %s", body)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.upstream.Close()
	for _, tt := range []struct{ name, method, body, id string }{
		{"call", "POST", call, "7"},
		{"string id", "POST", strings.Replace(call, "7", `"a"`, 1), `"a"`},
		{"notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "null"},
		{"batch", "POST", "[" + call + "]", "null"},
		{"id that is none", "POST", strings.Replace(call, "7", `{"a":1}`, 1), "null"},
		{"no JSON-RPC", "POST", "hello", ""},
		{"GET", "GET", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := f.do(t, tt.method, "/mcp", tt.body, "Authorization", "Bearer "+f.token(t))
			body := text(t, res)
			if res.StatusCode != http.StatusBadGateway || res.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("answer = %d %v", res.StatusCode, res.Header)
			}
			if tt.id != "" {
				checkRPC(t, body, tt.id)
			} else if !strings.Contains(body, `"error":"bad_gateway"`) {
				t.Errorf("body = %s", body)
			}
		})
	}
	if err := f.gateway.Ready(t.Context()); err == nil {
		t.Error("the gateway says that it is ready")
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.Timeout = 20 * time.Millisecond })
	f.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	res := f.post(t, call)
	if res.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("status = %d, want 504", res.StatusCode)
	}
	checkRPC(t, text(t, res), "7")
}

// A connection that the upstream closed meanwhile costs the client nothing where it
// is known in time, and never does a call twice: whether one that was written to
// such a connection was read is not known, and then the client decides.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	done := 0
	for i := range 20 {
		switch got := f.post(t, call).StatusCode; got {
		case http.StatusOK:
			done++
		case http.StatusBadGateway:
		default:
			t.Fatalf("request %d = %d", i, got)
		}
		f.upstream.CloseClientConnections()
	}
	if seen := len(f.requests()); done < 10 || seen < done || seen > 20 {
		t.Errorf("%d of 20 requests were answered, the upstream saw %d", done, seen)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "mcp.sock")
	l, err := net.Listen("unix", socket)
	must(t, err)
	paths := make(chan string, 2)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		paths <- r.Host + r.URL.Path + " " + r.Header.Get("X-Ostiary-Subject")
	}))
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	for upstream, want := range map[string]string{"unix:" + socket: "localhost/ u_1", "unix:" + socket + ":/in/mcp": "localhost/in/mcp u_1"} {
		f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.Upstream, o.Identity = upstream, gateway.IdentityHeaders })
		must(t, f.gateway.Ready(t.Context()))
		if got := f.post(t, call).StatusCode; got != http.StatusOK {
			t.Fatalf("%s: %d", upstream, got)
		}
		if got := <-paths; got != want {
			t.Errorf("%s: upstream got %q, want %q", upstream, got, want)
		}
	}
}

// Neither a token nor an identity is ever logged.
func TestNoTokenInLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token(t)
	f.do(t, http.MethodPost, "/mcp?access_token="+token, call, "Authorization", "Bearer "+token)
	identity := f.only(t).Header.Get("X-Ostiary-Identity")
	f.upstream.Close()
	f.do(t, http.MethodPost, "/mcp?access_token="+token, call, "Authorization", "Bearer "+token)
	f.do(t, http.MethodPost, "/mcp", call, "Authorization", "Bearer "+token+"x")
	log := f.log.String()
	if !strings.Contains(log, "upstream.failed") {
		t.Fatalf("nothing was logged: %s", log)
	}
	for _, secret := range []string{token, identity, token[strings.LastIndex(token, ".")+1:]} {
		if strings.Contains(log, secret) {
			t.Errorf("%.20s… is in the log", secret)
		}
	}
}
