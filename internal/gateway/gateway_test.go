package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/gateway"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

func TestForward(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Mine", "kept")
		reply(w, map[string]any{"jsonrpc": "2.0", "id": 7})
	})
	body := "\n " + call + " \r\n"
	res := f.post(t, body, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-11-25",
		"Mcp-Param-User_Id", "7", "Traceparent", "00-1", "User-Agent", "tester")
	if res.StatusCode != http.StatusOK || res.Header.Get("X-Mine") != "kept" || !strings.Contains(text(t, res), `"id":7`) {
		t.Errorf("answer = %d %v", res.StatusCode, res.Header)
	}
	got := f.only(t)
	if got.body != body || got.URL.String() != "/inner" || got.Method != http.MethodPost {
		t.Errorf("upstream got %s %s %q, want POST /inner with the body byte for byte", got.Method, got.URL, got.body)
	}
	if "http://"+got.Host != f.upstream.URL {
		t.Errorf("Host = %q, want the upstream's", got.Host)
	}
	if got.ContentLength != int64(len(body)) || got.TransferEncoding != nil {
		t.Errorf("framing: length %d, %v; want one known length", got.ContentLength, got.TransferEncoding)
	}
	for name, want := range map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25",
		"Content-Type": "application/json", "Mcp-Param-User_id": "7", "Traceparent": "00-1", "User-Agent": "tester"} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
}

// The door is resourceserver's; these cases show that it stands in front here.
func TestDoor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tt := range []struct {
		name, authorization string
		want                int
	}{
		{"M1 no token", "", http.StatusUnauthorized},
		{"AU-07 token for another server", "Bearer " + f.token(t, map[string]any{"aud": "https://other.example/mcp"}), http.StatusUnauthorized},
		{"AU-09 token for the issuer alone", "Bearer " + f.token(t, map[string]any{"aud": f.issuer.URL}), http.StatusUnauthorized},
		{"AU-09 token for the client alone", "Bearer " + f.token(t, map[string]any{"aud": "c_1"}), http.StatusUnauthorized},
		{"expired", "Bearer " + f.token(t, map[string]any{"exp": f.clock().Unix() - 1}), http.StatusUnauthorized},
		{"good", "Bearer " + f.token(t), http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(f.requests())
			res := f.do(t, http.MethodPost, "/mcp", call, "Authorization", tt.authorization)
			if res.StatusCode != tt.want {
				t.Errorf("status = %d, want %d", res.StatusCode, tt.want)
			}
			challenge := res.Header.Values("Www-Authenticate")
			if tt.want == http.StatusUnauthorized && (len(challenge) != 1 || len(f.requests()) != before) {
				t.Errorf("challenges %q, %d requests reached the upstream", challenge, len(f.requests())-before)
			}
		})
	}
}

// A key that the issuer removed opens nothing once the keys were read again.
func TestMM04_RemovedKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.ResourceServer.KeyRetry = 1 })
	f.set(f.clock())
	f.issuer.add(t, "k2")
	old, next := f.issuer.sign(t, "k1", f.claims()), f.issuer.sign(t, "k2", f.claims())
	status := func(token string) int {
		return f.do(t, http.MethodPost, "/mcp", call, "Authorization", "Bearer "+token).StatusCode
	}
	if a, b := status(old), status(next); a != http.StatusOK || b != http.StatusOK {
		t.Fatalf("while both are published: %d and %d", a, b)
	}
	f.issuer.remove("k1")
	f.set(f.clock().Add(5 * time.Minute)) // the default of KeyRefresh
	f.do(t, http.MethodPost, "/mcp", call, "Authorization", "Bearer "+f.issuer.sign(t, "k2", f.claims(map[string]any{"sub": "u_2"})))
	for range 1000 { // the keys are read beside the requests
		if status(old) == http.StatusUnauthorized {
			break
		}
	}
	if a, b := status(old), status(next); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("after the removal: %d and %d, want 401 and 200", a, b)
	}
}

func TestSC09_Operations(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *fixture, o *gateway.Options) {
		o.ResourceServer.Operations = map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "list_notes"}: {"notes:read"},
			{Method: "tools/call", Name: "add_note"}:   {"notes:read", "notes:write"},
		}
	})
	for _, tt := range []struct {
		name, body string
		want       int
	}{
		{"enough", call, http.StatusOK},
		{"SC-09 lacking scope", strings.Replace(call, "list_notes", "add_note", 1), http.StatusForbidden},
		{"not in the table", strings.Replace(call, "list_notes", "other", 1), http.StatusForbidden},
		{"Method beside method", strings.Replace(call, `"method"`, `"Method":"ping","method"`, 1), http.StatusBadRequest},
		{"method twice", strings.Replace(call, `"method"`, `"method":"ping","method"`, 1), http.StatusBadRequest},
		{"Name beside name", strings.Replace(call, `"name"`, `"Name":"add_note","name"`, 1), http.StatusBadRequest},
		{"two messages", call + call, http.StatusBadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(f.requests())
			res := f.post(t, tt.body)
			if res.StatusCode != tt.want {
				t.Fatalf("status = %d, want %d: %s", res.StatusCode, tt.want, text(t, res))
			}
			reached := len(f.requests()) - before
			if (tt.want == http.StatusOK) != (reached == 1) {
				t.Errorf("%d requests reached the upstream", reached)
			}
			if strings.HasPrefix(tt.name, "SC-09") && !strings.Contains(res.Header.Get("Www-Authenticate"), `scope="notes:read notes:write"`) {
				t.Errorf("challenge = %q, want all scopes", res.Header.Get("Www-Authenticate"))
			}
		})
	}
}

func TestRequiredScopes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.RequiredScopes = []string{"mcp"} })
	if got := f.post(t, call).StatusCode; got != http.StatusForbidden {
		t.Errorf("without the scope: %d, want 403", got)
	}
	res := f.do(t, http.MethodPost, "/mcp", call, "Authorization", "Bearer "+f.token(t, map[string]any{"scope": "mcp"}))
	if res.StatusCode != http.StatusOK || len(f.requests()) != 1 {
		t.Errorf("with it: %d, %d requests", res.StatusCode, len(f.requests()))
	}
}

// Only the resource's own path is served, in its own spelling.
func TestJW29_Paths(t *testing.T) {
	t.Parallel()
	for _, prefix := range []bool{false, true} {
		f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.Prefix = prefix })
		for _, tt := range []struct {
			path, upstream string
			below          bool // served with Prefix
		}{
			{path: "/mcp", upstream: "/inner"},
			{path: "/mcp?cursor=a&access_token=t", upstream: "/inner?cursor=a"},
			{path: "/mcp/", upstream: "/inner", below: true},
			{path: "/mcp/a%20b/c", upstream: "/inner/a%20b/c", below: true},
			{path: "/"}, {path: "/MCP"}, {path: "//mcp"}, {path: "/./mcp"}, {path: "/x/../mcp"}, {path: "/%6dcp"}, {path: "/mcp%2f"},
			{path: "/mcp/../secret"}, {path: "/mcp/%2e%2e/secret"}, {path: "/mcp/..%2fsecret"}, {path: "/mcp/a//b"}, {path: "/mcp/a%5cb"},
			{path: "/mcp/..;/secret"}, {path: "/mcpx"}, {path: "/inner"}, {path: "/.well-known/oauth-authorization-server/x"},
			{path: "/.well-known/openid-configuration"},
		} {
			before := len(f.requests())
			r, err := http.NewRequest(http.MethodPost, f.front.URL, strings.NewReader(call))
			must(t, err)
			path, query, _ := strings.Cut(tt.path, "?")
			r.URL.Opaque, r.URL.RawQuery = "//"+r.URL.Host+path, query // as it is, not cleaned
			r.Header.Set("Authorization", "Bearer "+f.token(t))
			res, err := noRedirects.Do(r)
			must(t, err)
			_ = res.Body.Close()
			served := tt.upstream != "" && (prefix || !tt.below)
			list := f.requests()[before:]
			if !served && (res.StatusCode != http.StatusNotFound || len(list) > 0) {
				t.Errorf("prefix %t, %s: %d, %d requests reached the upstream; want 404 and none", prefix, tt.path, res.StatusCode, len(list))
			}
			if served && (len(list) != 1 || list[0].URL.String() != tt.upstream) {
				t.Errorf("prefix %t, %s: %d, upstream got %v; want %s", prefix, tt.path, res.StatusCode, list, tt.upstream)
			}
		}
	}
}

// MM-05, M3, M9: documents are answered here, and what is not served is 404.
func TestDocuments(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.do(t, http.MethodGet, "/.well-known/oauth-protected-resource/mcp", "")
	if body := text(t, res); res.StatusCode != http.StatusOK || !strings.Contains(body, `"`+testResource+`"`) {
		t.Errorf("metadata = %d %s", res.StatusCode, body)
	}
	if got := f.do(t, http.MethodGet, "/.well-known/oauth-authorization-server", "").StatusCode; got != http.StatusOK {
		t.Errorf("the issuer's document = %d, want 200", got)
	}
	token := "Bearer " + f.token(t)
	if got := f.do(t, http.MethodGet, "/.well-known/oauth-protected-resource", "", "Authorization", token).StatusCode; got != http.StatusNotFound {
		t.Errorf("MM-05 root form of a resource with a path = %d, want 404", got)
	}
	if n := len(f.requests()); n > 0 {
		t.Errorf("%d requests reached the upstream", n)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodDelete: 200, http.MethodPost: 200, http.MethodPut: 405,
		http.MethodPatch: 405, http.MethodOptions: 405, http.MethodTrace: 405, "PROPFIND": 405} {
		before := len(f.requests())
		got := f.do(t, method, "/mcp", "", "Authorization", "Bearer "+f.token(t)).StatusCode
		if got != want || (want == 200) != (len(f.requests()) == before+1) {
			t.Errorf("%s = %d, want %d; %d requests reached the upstream", method, got, want, len(f.requests())-before)
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *fixture, o *gateway.Options) { o.MaxBody = 100 })
	large := strings.Repeat("x", 101)
	if got := f.post(t, large).StatusCode; got != http.StatusRequestEntityTooLarge {
		t.Errorf("announced: %d, want 413", got)
	}
	chunked := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + f.token(t) +
		"\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + large + "\r\n0\r\n\r\n"
	if got := f.raw(t, chunked); len(got) != 1 || got[0] != http.StatusRequestEntityTooLarge {
		t.Errorf("in chunks: %v, want 413", got)
	}
	if got := f.do(t, http.MethodGet, "/mcp", "{}", "Authorization", "Bearer "+f.token(t)).StatusCode; got != http.StatusBadRequest {
		t.Errorf("body of a GET: %d, want 400", got)
	}
	if n := len(f.requests()); n != 0 {
		t.Errorf("%d requests reached the upstream", n)
	}
	if got := f.post(t, large[:100]).StatusCode; got != http.StatusOK {
		t.Errorf("at the limit: %d", got)
	}
}

// M1: who has no token is told so at once, not when an announced body has come.
func TestM1_AnnouncedBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
		conn, err := net.Dial("tcp", f.front.Listener.Addr().String())
		must(t, err)
		must(t, conn.SetDeadline(time.Now().Add(30*time.Second))) // half of what a body may take
		_, err = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n"+expect+"\r\n")
		must(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: response %v, error %v; want 401", expect, res, err)
		}
		_ = conn.Close()
	}
}

// JW-25: a session serves who began it, however its header is spelt.
func TestJW25_Sessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.answers(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Mcp-Session-Id", "s1") })
	id := f.post(t, call).Header.Values("Mcp-Session-Id")
	if len(id) != 1 || id[0] == "s1" {
		t.Fatalf("session ids %q, want one that is sealed", id)
	}
	if got := f.post(t, call, "Mcp-Session-Id", id[0]).StatusCode; got != http.StatusOK || f.requests()[1].Header.Get("Mcp-Session-Id") != "s1" {
		t.Errorf("the owner: %d", got)
	}
	other := "Bearer " + f.token(t, map[string]any{"sub": "u_2"})
	if got := f.do(t, http.MethodPost, "/mcp", call, "Authorization", other, "Mcp-Session-Id", id[0]).StatusCode; got != http.StatusNotFound {
		t.Errorf("another subject: %d, want 404", got)
	}
	f.do(t, http.MethodPost, "/mcp", call, "Authorization", other, "Mcp_Session_Id", "s1")
	for name, v := range f.requests()[2].Header {
		if strings.Contains(strings.ToLower(name), "session") {
			t.Errorf("another spelling passed: %s: %s", name, v)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		change     func(*gateway.Options)
	}{
		{"no upstream", "upstream is required", func(o *gateway.Options) { o.Upstream = "" }},
		{"both", "exclude", func(o *gateway.Options) { o.Next = http.NotFoundHandler() }},
		{"ftp", "not an http or https URL", func(o *gateway.Options) { o.Upstream = "ftp://x/" }},
		{"user", "must have neither", func(o *gateway.Options) { o.Upstream = "http://a:b@127.0.0.1/" }},
		{"query", "must have neither", func(o *gateway.Options) { o.Upstream = "http://127.0.0.1/?a" }},
		{"relative socket", "is not unix:", func(o *gateway.Options) { o.Upstream = "unix:mcp.sock" }},
		{"headers to another host", "loopback address or a unix socket only", func(o *gateway.Options) {
			o.Upstream, o.Identity = "https://10.0.0.1/mcp", gateway.IdentityHeaders
		}},
		{"headers to a name", "loopback address or a unix socket only", func(o *gateway.Options) {
			o.Upstream, o.Identity = "http://localhost.example/mcp", gateway.IdentityHeaders
		}},
		{"unknown identity", "not known", func(o *gateway.Options) { o.Identity = 9 }},
		{"no issuer", "Issuer", func(o *gateway.Options) { o.ResourceServer.Issuer = "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := gateway.Options{Upstream: "http://127.0.0.1:1/mcp",
				ResourceServer: resourceserver.Options{Issuer: "https://login.example.com", Resource: testResource}}
			tt.change(&o)
			if _, err := gateway.New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want %q", err, tt.want)
			}
		})
	}
}
