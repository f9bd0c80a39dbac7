package resourceserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

const testHeaderMismatch = -32020 // HeaderMismatch of MCP 2026-07-28

// rpcError reads the JSON-RPC error of an answer.
func rpcError(t *testing.T, w *httptest.ResponseRecorder) (code int, id any) {
	t.Helper()
	var got struct {
		JSONRPC string `json:"jsonrpc"`
		ID      any    `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.JSONRPC != "2.0" || got.Error.Message == "" {
		t.Fatalf("not a JSON-RPC error: %v %s", err, w.Body)
	}
	return got.Error.Code, got.ID
}

func newToolsFixture(t *testing.T, change ...func(*resourceserver.Options)) *fixture {
	t.Helper()
	return newFixture(t, append([]func(*resourceserver.Options){func(o *resourceserver.Options) {
		o.Operations = map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "list_notes"}:       {"notes:read"},
			{Method: "tools/call", Name: "日本"}:               {"notes:read"},
			{Method: "tools/call", Name: "add_note"}:         {"notes:write"},
			{Method: "resources/read", Prefix: "notes://a/"}: {"notes:read"},
			{Method: "tasks/get"}:                            {"notes:read"},
		}
	}}, change...)...)
}

func TestHeaderMismatch(t *testing.T) {
	t.Parallel()
	f := newToolsFixture(t)
	token := f.token(t, "notes:read")
	const (
		tool     = `{"jsonrpc":"2.0","id":"x1","method":"tools/call","params":{"name":"list_notes"}}`
		list     = `{"jsonrpc":"2.0","id":"x1","method":"tools/list"}`
		answer   = `{"jsonrpc":"2.0","id":"x1","result":{}}`
		nonASCII = `{"jsonrpc":"2.0","id":"x1","method":"tools/call","params":{"name":"日本"}}`
		task     = `{"jsonrpc":"2.0","id":"x1","method":"tasks/get","params":{"taskId":"t-1"}}`
		// the revision that the message itself says it is of
		versioned = `{"jsonrpc":"2.0","id":"x1","method":"tools/call","params":{"name":"list_notes","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		resource  = `{"jsonrpc":"2.0","id":"x1","method":"resources/read","params":{"uri":"notes://a/1"}}`
	)
	for _, tt := range []struct {
		name, body, version string
		method, tool        []string
		want                int // JSON-RPC error code; 0 means served
	}{
		{"both agree", tool, "2026-07-28", []string{"tools/call"}, []string{"list_notes"}, 0},
		{"white space around", tool, "2026-07-28", []string{" tools/call\t"}, []string{"list_notes"}, 0},
		{"URI", resource, "2026-07-28", []string{"resources/read"}, []string{"notes://a/1"}, 0},
		{"encoded name", nonASCII, "2026-07-28", []string{"tools/call"}, []string{"=?base64?5pel5pys?="}, 0},
		{"encoded though ASCII", tool, "2026-07-28", []string{"tools/call"}, []string{"=?base64?bGlzdF9ub3Rlcw==?="}, 0},
		{"no name where none is", list, "2026-07-28", []string{"tools/list"}, nil, 0},
		{"name of a task", task, "2026-07-28", []string{"tasks/get"}, []string{"t-1"}, 0},
		{"older revision without headers", tool, "2025-11-25", nil, nil, 0},
		{"no revision", tool, "", nil, nil, 0},
		{"older revision with headers that agree", tool, "2025-11-25", []string{"tools/call"}, []string{"list_notes"}, 0},
		{"answer to the server", answer, "2025-11-25", nil, nil, 0},
		{"batch of 2025-03-26", "[" + tool + "," + list + "]", "2025-03-26", nil, nil, 0},
		{"revision in the body", versioned, "2026-07-28", []string{"tools/call"}, []string{"list_notes"}, 0},
		{"revision in the body, another in the header", versioned, "2025-11-25", []string{"tools/call"}, []string{"list_notes"}, testHeaderMismatch},
		{"revision in the body, a later one in the header", versioned, "2027-01-01", []string{"tools/call"}, []string{"list_notes"}, testHeaderMismatch},
		{"revision in the body alone", versioned, "", nil, nil, testHeaderMismatch},
		{"revision in a batch", "[" + versioned + "]", "2025-03-26", nil, nil, testHeaderMismatch},
		{"Mcp-Name with a space within", tool, "2026-07-28", []string{"tools/call"}, []string{"list_ notes"}, testHeaderMismatch},
		{"Mcp-Name in another case", tool, "2026-07-28", []string{"tools/call"}, []string{"List_Notes"}, testHeaderMismatch},
		{"Mcp-Name a list", tool, "2026-07-28", []string{"tools/call"}, []string{"list_notes, add_note"}, testHeaderMismatch},
		{"Mcp-Method a list", tool, "2026-07-28", []string{"tools/call, ping"}, []string{"list_notes"}, testHeaderMismatch},
		{"encoded name of another tool", tool, "2026-07-28", []string{"tools/call"}, []string{"=?base64?YWRkX25vdGU=?="}, testHeaderMismatch},
		{"encoding without padding", tool, "2026-07-28", []string{"tools/call"}, []string{"=?base64?bGlzdF9ub3Rlcw?="}, testHeaderMismatch},
		{"encoding with trailing bits", tool, "2026-07-28", []string{"tools/call"}, []string{"=?base64?bGlzdF9ub3Rlcx==?="}, testHeaderMismatch},
		{"encoding in capitals", tool, "2026-07-28", []string{"tools/call"}, []string{"=?BASE64?bGlzdF9ub3Rlcw==?="}, testHeaderMismatch},
		{"encoding twice", tool, "2026-07-28", []string{"tools/call"}, []string{"=?base64?PT9iYXNlNjQ/YkdsemRGOXViM1JsY3c9PT89?="}, testHeaderMismatch},
		{"encoding of nothing", tool, "2026-07-28", []string{"tools/call"}, []string{"=?base64??="}, testHeaderMismatch},
		{"encoded method", tool, "2026-07-28", []string{"=?base64?dG9vbHMvY2FsbA==?="}, []string{"list_notes"}, testHeaderMismatch},
		{"not UTF-8 as it is", tool, "2026-07-28", []string{"tools/call"}, []string{"\xff"}, testHeaderMismatch},
		{"Mcp-Method missing", tool, "2026-07-28", nil, []string{"list_notes"}, testHeaderMismatch},
		{"Mcp-Name missing", tool, "2026-07-28", []string{"tools/call"}, nil, testHeaderMismatch},
		{"later revision, both missing", tool, "2027-01-01", nil, nil, testHeaderMismatch},
		{"Mcp-Method disagrees", tool, "2026-07-28", []string{"ping"}, []string{"list_notes"}, testHeaderMismatch},
		{"Mcp-Method in another case", tool, "2026-07-28", []string{"Tools/Call"}, []string{"list_notes"}, testHeaderMismatch},
		{"Mcp-Name disagrees", tool, "2026-07-28", []string{"tools/call"}, []string{"add_note"}, testHeaderMismatch},
		{"Mcp-Name empty", tool, "2026-07-28", []string{"tools/call"}, []string{""}, testHeaderMismatch},
		{"Mcp-Method twice", tool, "2026-07-28", []string{"tools/call", "tools/call"}, []string{"list_notes"}, testHeaderMismatch},
		{"Mcp-Name twice", tool, "2026-07-28", []string{"tools/call"}, []string{"list_notes", "add_note"}, testHeaderMismatch},
		{"Mcp-Method disagrees in an older revision", tool, "2025-11-25", []string{"ping"}, nil, testHeaderMismatch},
		{"Mcp-Name disagrees without a revision", tool, "", nil, []string{"add_note"}, testHeaderMismatch},
		{"Mcp-Name that the body does not have", list, "2026-07-28", []string{"tools/list"}, []string{"x"}, testHeaderMismatch},
		{"encoding not closed", nonASCII, "2026-07-28", []string{"tools/call"}, []string{"=?base64?5pel5pys"}, testHeaderMismatch},
		{"encoding not base64", nonASCII, "2026-07-28", []string{"tools/call"}, []string{"=?base64?*?="}, testHeaderMismatch},
		{"encoding not UTF-8", nonASCII, "2026-07-28", []string{"tools/call"}, []string{"=?base64?/w==?="}, testHeaderMismatch},
		{"headers with a batch", "[" + tool + "]", "", []string{"tools/call"}, nil, testHeaderMismatch},
		{"batch after 2025-03-26", "[" + tool + "]", "2026-07-28", nil, nil, testHeaderMismatch},
		{"headers with an answer", answer, "", []string{"ping"}, nil, testHeaderMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", testResource, strings.NewReader(tt.body))
			if tt.version != "" {
				r.Header.Set("MCP-Protocol-Version", tt.version)
			}
			r.Header["Mcp-Method"], r.Header["Mcp-Name"] = tt.method, tt.tool
			before := f.servedCount()
			w := f.call(r, token)
			if ran := f.servedCount() - before; (ran == 1) != (tt.want == 0) {
				t.Fatalf("the handler ran %d times: %d %s", ran, w.Code, w.Body)
			}
			if tt.want == 0 {
				return
			}
			code, id := rpcError(t, w)
			wantID := any("x1")
			if w.Code != http.StatusBadRequest || code != tt.want || id != wantID {
				t.Errorf("status %d, error %d, id %v; want 400, %d, %v", w.Code, code, id, tt.want, wantID)
			}
		})
	}
	t.Run("revision twice", func(t *testing.T) {
		r := httptest.NewRequest("POST", testResource, strings.NewReader(tool))
		r.Header["Mcp-Protocol-Version"] = []string{"2025-03-26", "2026-07-28"}
		if code, _ := rpcError(t, f.call(r, token)); code != testHeaderMismatch {
			t.Errorf("error %d, want %d", code, testHeaderMismatch)
		}
	})
}

// What was checked is what the handler reads, however it came.
func TestSC09_Body(t *testing.T) {
	t.Parallel()
	f := newToolsFixture(t, func(o *resourceserver.Options) { o.MaxBody = 1 << 10 })
	token := f.token(t, "notes:read")
	const tool = `{ "jsonrpc":"2.0", "id":1,"method":"tools\/call","params":{"name":"list_notes","arguments":{"b":1,"a":1.0} }} `
	t.Run("SC-09 chunked, byte for byte", func(t *testing.T) {
		r := httptest.NewRequest("POST", testResource, io.MultiReader(strings.NewReader(tool[:20]), strings.NewReader(tool[20:])))
		r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
		w := f.call(r, token)
		if w.Code != http.StatusOK {
			t.Fatalf("status = %d: %s", w.Code, w.Body)
		}
		served := f.served[len(f.served)-1]
		got, err := io.ReadAll(served.Body)
		if err != nil || string(got) != tool || served.ContentLength != int64(len(tool)) || served.TransferEncoding != nil {
			t.Errorf("the handler reads %q (%d, %v), %v", got, served.ContentLength, served.TransferEncoding, err)
		}
	})
	for _, tt := range []struct {
		name, method, body string
		change             func(*http.Request)
		want               int
	}{
		{"chunked and too large", "POST", tool + strings.Repeat(" ", 2<<10), func(r *http.Request) { r.ContentLength = -1 }, 413},
		{"identity encoding", "POST", tool, func(r *http.Request) { r.Header.Set("Content-Encoding", "identity") }, 400},
		{"empty encoding", "POST", tool, func(r *http.Request) { r.Header.Set("Content-Encoding", "") }, 400},
		{"UTF-7", "POST", tool, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-7") }, 400},
		{"two types", "POST", tool, func(r *http.Request) { r.Header["Content-Type"] = []string{"application/json", "text/x"} }, 400},
		{"UTF-8", "POST", tool, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=UTF-8") }, 200},
		{"PUT is read too", "PUT", strings.Replace(tool, "list_notes", "add_note", 1), nil, 403},
		{"unknown method is read too", "PROPFIND", strings.Replace(tool, "list_notes", "add_note", 1), nil, 403},
		{"GET with a body", "GET", tool, nil, 400},
		{"DELETE with a chunked body", "DELETE", tool, func(r *http.Request) { r.ContentLength = -1 }, 400},
		{"DELETE without", "DELETE", "", nil, 200},
	} {
		t.Run("SC-09 "+tt.name, func(t *testing.T) {
			var body io.Reader
			if tt.body != "" {
				body = strings.NewReader(tt.body)
			}
			r := httptest.NewRequest(tt.method, testResource, body)
			if tt.change != nil {
				tt.change(r)
			}
			before := f.servedCount()
			if w := f.call(r, token); w.Code != tt.want || (f.servedCount() > before) != (tt.want == 200) {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}

func TestM6_ChallengeOfABatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) {
		o.Implies = map[string][]string{"notes": {"notes:read", "notes:write"}}
		o.Operations = map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "add"}:  {"notes:write"},
			{Method: "tools/call", Name: "drop"}: {"notes:drop", "notes:write"},
			{Method: "tools/call", Name: "sync"}: {"sync"},
		}
	})
	tool := func(name string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"}}`
	}
	for _, tt := range []struct{ name, scope, body, want string }{
		{"all that the batch needs, once", "notes:read", "[" + tool("add") + "," + tool("drop") + "," + tool("sync") + "]",
			"notes:read notes:write notes:drop sync"},
		{"what a broad scope covers is not asked for", "notes", "[" + tool("add") + "," + tool("drop") + "]", "notes notes:drop"},
		{"covered", "notes", tool("add"), ""},
	} {
		t.Run("M6 "+tt.name, func(t *testing.T) {
			w := f.call(httptest.NewRequest("POST", testResource, strings.NewReader(tt.body)), f.token(t, tt.scope))
			if tt.want == "" {
				if w.Code != http.StatusOK {
					t.Errorf("status = %d: %s", w.Code, w.Body)
				}
				return
			}
			c := w.Result().Header.Values("WWW-Authenticate")
			if w.Code != http.StatusForbidden || len(c) != 1 || !strings.Contains(c[0], `scope="`+tt.want+`", error="insufficient_scope"`) {
				t.Errorf("status = %d, challenges %q, want scope %q", w.Code, c, tt.want)
			}
		})
	}
	t.Run("M6 what nobody may do has no challenge", func(t *testing.T) {
		w := f.call(httptest.NewRequest("POST", testResource, strings.NewReader(tool("other"))), f.token(t, "notes"))
		if w.Code != http.StatusForbidden || w.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("status = %d, challenge %q", w.Code, w.Header().Get("WWW-Authenticate"))
		}
	})
	t.Run("M6 RequireScopes", func(t *testing.T) {
		h := f.server.Protect(f.server.RequireScopes("notes:write", "sync")(http.NotFoundHandler()))
		r := httptest.NewRequest("GET", testResource, nil)
		r.Header.Set("Authorization", "Bearer "+f.token(t, "notes"))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if c := w.Header().Get("WWW-Authenticate"); w.Code != http.StatusForbidden || !strings.Contains(c, `scope="notes sync"`) {
			t.Errorf("status = %d, challenge %q", w.Code, c)
		}
	})
}
