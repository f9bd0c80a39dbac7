//go:build unix

package stdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer adds a token to a client's requests.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// connect is the official SDK's client, through Protect and the bridge.
func (f *fixture) connect(t *testing.T, subject, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, o)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: f.url,
		HTTPClient: &http.Client{Transport: bearer{f.token(subject)}}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func text(t *testing.T, r *mcp.CallToolResult, err error) string {
	t.Helper()
	if err != nil || len(r.Content) == 0 {
		t.Fatalf("result = %+v, %v", r, err)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// TestGoSDK speaks every revision from the official SDK's client to its stdio
// server.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, []string{"sdk"})
			var mu sync.Mutex
			progress := 0
			heard, changed := make(chan struct{}, 10), make(chan struct{}, 10)
			session := f.connect(t, "u_1", version, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					progress++
					heard <- struct{}{}
				},
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept"}, nil
				}})
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Fatalf("revision = %s, want %s", got, version)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 5 {
				t.Fatalf("tools = %+v, %v", tools, err)
			}
			call := func(ctx context.Context, tool string) (*mcp.CallToolResult, error) {
				p := &mcp.CallToolParams{Name: tool, Arguments: map[string]string{"name": "Ann"}}
				p.SetProgressToken("p-1")
				return session.CallTool(ctx, p)
			}
			r, err := call(t.Context(), "greet")
			if got := text(t, r, err); got != "hello Ann of u_1" {
				t.Errorf("greet = %q", got)
			}
			r, err = call(t.Context(), "work")
			text(t, r, err)
			for range 3 {
				<-heard
			}
			if version < "2026-07-28" { // since then servers ask in their results
				r, err = call(t.Context(), "ask")
				if got := text(t, r, err); got != "you said accept" {
					t.Errorf("ask = %q", got)
				}
			}
			r, err = call(t.Context(), "grow")
			text(t, r, err)
			<-changed
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-heard
				cancel()
			}()
			if _, err := call(ctx, "wait"); err == nil {
				t.Error("a cancelled call was answered")
			}
			f.log.await(t, "cancelled as asked")
			if (session.ID() == "") != (version >= "2026-07-28") {
				t.Errorf("session id = %q", session.ID())
			}
			if err := session.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if version < "2026-07-28" {
				f.log.await(t, "its client has ended the session")
			}
		})
	}
}

// modern is a client of 2026-07-28 by hand.
func (f *fixture) modern(subject string) *client {
	return &client{f: f, token: f.token(subject), version: "2026-07-28"}
}

// ask makes a request that says its revision twice, as that transport wants.
func (c *client) ask(ctx context.Context, id, method, name, meta string) *http.Request {
	c.f.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"name":%q,"arguments":{"name":"Ann"},"_meta":{%s"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, id, method, name, meta)
	req := c.request(ctx, http.MethodPost, body)
	req.Header.Set("Mcp-Method", method)
	req.Header.Set("Mcp-Name", name)
	return req
}

// Two clients of one subject choose the same ids and progress tokens, and each
// gets its own answers: nothing is mixed up in the child they share.
func TestSharedChildKeepsIDsApart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"sdk"})
	c := f.modern("u_1")
	ctx, cancel := context.WithCancel(t.Context())
	waiting := bufio.NewReader(c.do(c.ask(ctx, `"same"`, "tools/call", "wait", `"progressToken":"token",`)).Body)
	if got := next(t, waiting); !strings.Contains(got, `"progressToken":"token"`) {
		t.Fatalf("progress = %s", got)
	}
	list := messages(t, c.do(c.ask(t.Context(), `"same"`, "tools/call", "work", `"progressToken":"token",`)))
	if len(list) != 4 || string(list[3].ID) != `"same"` || list[3].Error != nil {
		t.Fatalf("messages = %+v", list)
	}
	for _, m := range list[:3] {
		var p struct{ ProgressToken string }
		if err := json.Unmarshal(m.Params, &p); err != nil || p.ProgressToken != "token" {
			t.Errorf("progress = %s", m.Params)
		}
	}
	if n := f.bridge.Children(); n != 1 {
		t.Errorf("%d children, want one", n)
	}
	cancel() // closing the stream cancels the request
	f.log.await(t, "cancelled as asked")
	if resp := f.modern("u_2").do(f.modern("u_2").ask(t.Context(), "1", "tools/call", "greet", "")); !strings.Contains(read(t, resp), "of u_2") || f.bridge.Children() != 2 {
		t.Errorf("another subject = %s, %d children; want a child of its own", resp.Status, f.bridge.Children())
	}
}

// What names no request goes to the only one there is; a subscription is none that
// anything but its own changes is for.
func TestLogBesideSubscription(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"modern"})
	f.bridge.SetTimes(time.Millisecond, time.Minute) // the stream begins with a comment
	c := f.modern("u_1")
	listening := c.do(c.ask(t.Context(), "1", "subscriptions/listen", "x", ""))
	if listening.StatusCode != http.StatusOK {
		t.Fatalf("subscriptions/listen = %s", listening.Status)
	}
	if got := next(t, bufio.NewReader(c.do(c.ask(t.Context(), "2", "hang", "x", "")).Body)); !strings.Contains(got, "hanging") {
		t.Errorf("the request got %s", got)
	}
}

func TestModernRequestsAreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"sdk"})
	c := f.modern("u_1")
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
		status int
		code   int
	}{
		{name: "fine", status: 200},
		{name: "MM-04 another method", change: func(r *http.Request) { r.Header.Set("Mcp-Method", "tools/list") }, status: 400, code: -32020},
		{name: "MM-04 no method", change: func(r *http.Request) { r.Header.Del("Mcp-Method") }, status: 400, code: -32020},
		{name: "MM-04 another name", change: func(r *http.Request) { r.Header.Set("Mcp-Name", "wait") }, status: 400, code: -32020},
		{name: "the name encoded", change: func(r *http.Request) { r.Header.Set("Mcp-Name", "=?base64?Z3JlZXQ=?=") }, status: 200},
		{name: "another version", change: func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "2027-01-01") }, status: 400, code: -32020},
		{name: "GET", change: func(r *http.Request) { r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0 }, status: 405, code: -32600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := c.ask(t.Context(), "1", "tools/call", "greet", "")
			if tt.change != nil {
				tt.change(req)
			}
			resp := c.do(req)
			m := only(t, resp)
			code := 0
			if m.Error != nil {
				code = m.Error.Code
			}
			if resp.StatusCode != tt.status || code != tt.code {
				t.Errorf("answer = %s, %+v; want %d and code %d", resp.Status, m.Error, tt.status, tt.code)
			}
		})
	}
	t.Run("an unknown method is 404", func(t *testing.T) {
		if resp := c.do(c.ask(t.Context(), "1", "no/such", "x", "")); resp.StatusCode != http.StatusNotFound || only(t, resp).Error.Code != -32601 {
			t.Errorf("status = %s", resp.Status)
		}
	})
}

// A server that knows initialize alone says so, and the SDK's client begins again
// with it.
func TestServerOfOlderRevision(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mode string
		children   int
	}{
		{"it refuses", "hand", 1}, // the second time nobody is asked
		{"it is silent", "silent", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, []string{tt.mode})
			if tt.mode == "silent" {
				f.bridge.SetTimes(time.Minute, 50*time.Millisecond)
			}
			c := f.modern("u_1")
			for range 2 {
				resp := c.do(c.ask(t.Context(), "3", "tools/call", "greet", ""))
				m := only(t, resp)
				var data struct{ Supported []string }
				if m.Error != nil {
					_ = json.Unmarshal(m.Error.Data, &data)
				}
				if resp.StatusCode != http.StatusBadRequest || m.Error == nil || m.Error.Code != -32022 || len(data.Supported) != 3 || string(m.ID) != "3" {
					t.Fatalf("answer = %s, %+v", resp.Status, m)
				}
			}
			if n := strings.Count(f.log.String(), "MCP server started"); n != tt.children {
				t.Errorf("%d children were asked, want %d", n, tt.children)
			}
			session := f.connect(t, "u_1", "2026-07-28", nil)
			if got := session.InitializeResult().ProtocolVersion; got != "2025-11-25" || session.ID() == "" {
				t.Errorf("revision = %s, session %q", got, session.ID())
			}
		})
	}
}

// What a shared child must not do, it is told; and its end is not the client's
// loss.
func TestSharedChildDies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"modern"})
	c := f.modern("u_1")
	if m := only(t, c.do(c.ask(t.Context(), "1", "exit", "x", ""))); m.Error == nil || string(m.ID) != "1" {
		t.Errorf("answer = %+v", m)
	}
	f.log.await(t, "exit status 3")
	list := messages(t, c.do(c.ask(t.Context(), "2", "ask", "x", "")))
	if len(list) != 1 || string(list[0].ID) != "2" || list[0].Error != nil {
		t.Errorf("messages = %+v, want the answer alone from a new child", list)
	}
	f.log.await(t, "there are no requests to clients")
}
