package resourceserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

func TestChallenge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	t.Run("JW-01 M1 no token", func(t *testing.T) {
		w := f.get("")
		expect401(t, f, w, "")
		want := `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="notes:read"`
		if got := w.Header().Get("WWW-Authenticate"); got != want {
			t.Errorf("challenge = %q, want %q", got, want)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control = %q", got)
		}
	})
	t.Run("M1 M5 every method", func(t *testing.T) {
		for _, m := range []string{"GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS"} {
			expect401(t, f, f.call(httptest.NewRequest(m, testResource, nil), ""), "")
		}
	})
	t.Run("JW-29 every path", func(t *testing.T) {
		for _, p := range []string{"/mcp/", "//mcp", "/MCP", "/mcp%2f", "/./mcp", "/", "/.well-known/", "/.well-known/oauth-protected-resource"} {
			expect401(t, f, f.call(httptest.NewRequest("GET", "https://mcp.example.com"+p, nil), ""), "")
		}
	})
	for _, tt := range []struct{ name, header, wantError string }{
		{"JW-02 Basic", "Basic YTpi", ""},
		{"JW-02 Bearer alone", "Bearer", "invalid_token"},
		{"JW-02 Bearer and space", "Bearer ", "invalid_token"},
		{"JW-02 two tokens", "Bearer  a b", "invalid_token"},
		{"JW-02 comma", "bearer,x", ""},
		{"JW-02 quoted", `Bearer "a"`, "invalid_token"},
		{"JW-02 not ASCII", "Bearer ä", "invalid_token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", testResource, nil)
			r.Header.Set("Authorization", tt.header)
			expect401(t, f, f.call(r, ""), tt.wantError)
		})
	}
	t.Run("JW-02 two headers", func(t *testing.T) {
		r := httptest.NewRequest("GET", testResource, nil)
		r.Header["Authorization"] = []string{"Bearer " + f.token(t, "notes:read"), "Bearer x"}
		w := f.call(r, "")
		if w.Code != http.StatusBadRequest || f.servedCount() != 0 || !strings.Contains(w.Body.String(), "invalid_request") {
			t.Errorf("status = %d: %s", w.Code, w.Body)
		}
	})
	t.Run("JW-03 token in query and body", func(t *testing.T) {
		token := f.token(t, "notes:read")
		expect401(t, f, f.call(httptest.NewRequest("GET", testResource+"?access_token="+token, nil), ""), "")
		r := httptest.NewRequest("POST", testResource, strings.NewReader("access_token="+token))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		expect401(t, f, f.call(r, ""), "")
	})
}

func TestM2_BrowserClients(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := httptest.NewRequest("OPTIONS", testResource, nil)
	r.Header.Set("Origin", "https://inspector.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	w := f.call(r, "")
	if w.Code != http.StatusNoContent || f.servedCount() != 0 {
		t.Errorf("JW-28 preflight: status = %d, handler ran %d times", w.Code, f.servedCount())
	}
	for _, h := range []string{"Authorization", "MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID"} {
		if !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), h) {
			t.Errorf("preflight does not allow %s", h)
		}
	}
	w = f.get("")
	if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Access-Control-Allow-Credentials") != "" ||
		!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("401 headers = %v", w.Header())
	}
	plain := httptest.NewRequest("OPTIONS", testResource, nil)
	expect401(t, f, f.call(plain, ""), "") // JW-28: not a preflight
}

func TestM3_Document(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, resource, url string
		paths, not          []string
		atRoot              bool
	}{
		{"M3 path form", "https://mcp.example.com/mcp", "https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
			[]string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource/mcp/"},
			[]string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/other"}, false},
		{"M3 root form", "https://mcp.example.com", "https://mcp.example.com/.well-known/oauth-protected-resource",
			[]string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/"},
			[]string{"/.well-known/oauth-protected-resource/mcp"}, false},
		{"M3 root form by option", "https://mcp.example.com/mcp", "https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
			[]string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(o *resourceserver.Options) { o.Resource, o.MetadataAtRoot = tt.resource, tt.atRoot })
			if got := f.server.MetadataURL(); got != tt.url {
				t.Errorf("MetadataURL = %q, want %q", got, tt.url)
			}
			for _, p := range tt.paths {
				w := f.call(httptest.NewRequest("GET", p, nil), "")
				var got map[string]any
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
					t.Fatalf("%s: status %d: %v", p, w.Code, err)
				}
				// M4: the first authorization server is the one to use, and the
				// scopes are the minimal ones.
				want := map[string]any{"resource": tt.resource, "authorization_servers": []any{f.issuer.URL},
					"scopes_supported": []any{"notes:read"}, "bearer_methods_supported": []any{"header"}, "resource_name": "Notes"}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s (-want +got):\n%s", p, d)
				}
				if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Content-Type") != "application/json" {
					t.Errorf("%s: header %v", p, w.Header())
				}
			}
			for _, p := range tt.not {
				if w := f.call(httptest.NewRequest("GET", p, nil), ""); w.Code != http.StatusUnauthorized {
					t.Errorf("%s: status = %d, want 401", p, w.Code)
				}
			}
		})
	}
}

func TestMM02_HostHeader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := httptest.NewRequest("GET", "https://evil.example/mcp", nil)
	r.Header.Set("X-Forwarded-Host", "evil.example")
	expect401(t, f, f.call(r, ""), "")
}

func TestSC09_InsufficientScope(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) {
		o.Operations = map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "list_notes"}: {"notes:read"},
			{Method: "tools/call", Name: "add_note"}:   {"notes:write", "notes:index"},
			{Method: "prompts/get"}:                    {"notes:read"},
		}
	})
	post := func(body, token string) *httptest.ResponseRecorder {
		return f.call(httptest.NewRequest("POST", testResource, strings.NewReader(body)), token)
	}
	callTool := func(name string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{"Name":"x"}}}`
	}
	read := f.token(t, "notes:read")
	t.Run("SC-09 M6 one complete challenge", func(t *testing.T) {
		w := post(callTool("add_note"), read)
		want := `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", ` +
			`scope="notes:read notes:write notes:index", error="insufficient_scope", ` +
			`error_description="the token lacks a scope that this operation needs"`
		if got := w.Header().Values("WWW-Authenticate"); w.Code != http.StatusForbidden || len(got) != 1 || got[0] != want {
			t.Errorf("status = %d, challenge %q, want %q", w.Code, got, want)
		}
		if f.servedCount() != 0 {
			t.Error("the handler ran")
		}
	})
	for _, tt := range []struct {
		name, body string
		want       int
	}{
		{"tool allowed", callTool("list_notes"), 200},
		{"method without table entry", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, 200},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 200},
		{"response to the server", `{"jsonrpc":"2.0","id":1,"result":{}}`, 200},
		{"entry for a whole method", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}`, 200},
		{"tool that is not in the table", callTool("drop_notes"), 403},
		{"resource that is not in the table", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}`, 403},
		{"batch with one too many", "[" + callTool("list_notes") + "," + callTool("add_note") + "]", 403},
		{"batch allowed", "[" + callTool("list_notes") + "]", 200},
		{"Method beside method", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"add_note"}}`, 400},
		{"method twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"add_note"}}`, 400},
		{"name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_notes","name":"add_note"}}`, 400},
		{"Name beside name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_notes","Name":"add_note"}}`, 400},
		{"tool without a name", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 400},
		{"data after the message", callTool("list_notes") + callTool("add_note"), 400},
		{"not UTF-8", "{\"method\":\"\xff\"}", 400},
		{"empty batch", "[]", 400},
		{"nothing", "", 400},
	} {
		t.Run("SC-09 "+tt.name, func(t *testing.T) {
			before := f.servedCount()
			w := post(tt.body, read)
			if w.Code != tt.want {
				t.Fatalf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			if ran := f.servedCount() - before; (ran == 1) != (tt.want == 200) {
				t.Errorf("the handler ran %d times", ran)
			}
			if tt.want == 200 {
				got, _ := io.ReadAll(f.served[len(f.served)-1].Body)
				if string(got) != tt.body {
					t.Errorf("the handler reads %q, not what was checked", got)
				}
			}
		})
	}
	t.Run("SC-09 encoded body", func(t *testing.T) {
		r := httptest.NewRequest("POST", testResource, strings.NewReader(callTool("list_notes")))
		r.Header.Set("Content-Encoding", "gzip")
		if w := f.call(r, read); w.Code != http.StatusBadRequest {
			t.Errorf("status = %d, want 400", w.Code)
		}
	})
	t.Run("SC-09 body too large", func(t *testing.T) {
		w := post(`{"method":"ping","params":{"x":"`+strings.Repeat("a", 5<<20)+`"}}`, read)
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("status = %d, want 413", w.Code)
		}
	})
}

func TestRequireScopesWithoutProtect(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.handler = f.server.RequireScopes("notes:read")(http.NotFoundHandler())
	expect401(t, f, f.get(f.token(t, "notes:read")), "")
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*resourceserver.Options)
		want   string
	}{
		{"JW-32 no issuer", func(o *resourceserver.Options) { o.Issuer = "" }, "Issuer"},
		{"JW-32 no resource", func(o *resourceserver.Options) { o.Resource = "" }, "Resource"},
		{"JW-32 empty algorithms", func(o *resourceserver.Options) { o.Algorithms = []string{} }, "Algorithms"},
		{"JW-05 algorithm none", func(o *resourceserver.Options) { o.Algorithms = []string{"none"} }, "none"},
		{"JW-07 HMAC", func(o *resourceserver.Options) { o.Algorithms = []string{"HS256"} }, "HS256"},
		{"http issuer", func(o *resourceserver.Options) { o.Issuer = "http://login.example.com" }, "https"},
		{"issuer with a query", func(o *resourceserver.Options) { o.Issuer = "https://a.example/?x=1" }, "query"},
		{"resource with a fragment", func(o *resourceserver.Options) { o.Resource = "https://a.example/#x" }, "fragment"},
		{"JW-16 skew of two minutes", func(o *resourceserver.Options) { o.ClockSkew = 120e9 }, "minute"},
		{"JW-30 scope with a quote", func(o *resourceserver.Options) { o.Scopes = []string{`a"b`} }, "scope"},
		{"JW-30 scope with CRLF", func(o *resourceserver.Options) { o.DefaultScopes = []string{"a\r\nX: y"} }, "scope"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := resourceserver.Options{Issuer: "https://login.example.com", Resource: testResource}
			tt.change(&o)
			if _, err := resourceserver.New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want an error about %s", err, tt.want)
			}
		})
	}
}
