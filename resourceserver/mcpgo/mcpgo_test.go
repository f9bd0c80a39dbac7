package mcpgo_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpgo"
	"github.com/ostiary-auth/ostiary/test/testkit/issuer"
)

const resource = "https://mcp.example.com/mcp"

// whoami answers with the subject of its request's token.
func whoami(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token, ok := resourceserver.TokenFromContext(ctx)
	if !ok {
		return mcp.NewToolResultError("no token"), nil
	}
	return mcp.NewToolResultText(r.Params.Name + " for " + token.Subject), nil
}

// newMCPServer has a tool of each kind.
func newMCPServer(options ...server.ServerOption) *server.MCPServer {
	s := server.NewMCPServer("test", "1", options...)
	s.AddTool(mcp.NewTool("read", mcpgo.Scopes("notes:read")), whoami)
	s.AddTool(mcp.NewTool("move", mcpgo.Scopes("notes:read", "notes:write")), whoami)
	s.AddTool(mcp.NewTool("open", mcpgo.Scopes()), whoami)
	s.AddTool(mcp.NewTool("forgotten"), whoami)
	return s
}

func TestOperations(t *testing.T) {
	t.Parallel()
	want := map[resourceserver.Operation][]string{
		{Method: "tools/call", Name: "read"}: {"notes:read"},
		{Method: "tools/call", Name: "move"}: {"notes:read", "notes:write"},
		{Method: "tools/call", Name: "open"}: {},
	}
	if diff := cmp.Diff(want, mcpgo.Operations(newMCPServer())); diff != "" {
		t.Error(diff)
	}
	if got := mcpgo.Operations(server.NewMCPServer("empty", "1")); got == nil || len(got) != 0 {
		t.Errorf("no tools: %v, want an empty table, since a nil one opens everything", got)
	}
}

func TestScopesKeepsMeta(t *testing.T) {
	t.Parallel()
	meta := &mcp.Meta{ProgressToken: "p", AdditionalFields: map[string]any{"kept": true}}
	tool := mcp.NewTool("read", func(t *mcp.Tool) { t.Meta = meta }, mcpgo.Scopes("a"), mcpgo.Scopes("b"))
	if tool.Meta.ProgressToken != "p" || tool.Meta.AdditionalFields["kept"] != true {
		t.Errorf("_meta = %+v", tool.Meta)
	}
	if len(meta.AdditionalFields) != 1 {
		t.Errorf("somebody else's _meta was changed: %+v", meta)
	}
	s := server.NewMCPServer("test", "1")
	s.AddTool(tool, whoami)
	if got := slices.Collect(maps.Values(mcpgo.Operations(s))); len(got) != 1 || !slices.Equal(got[0], []string{"b"}) {
		t.Errorf("scopes = %v, want those said last", got)
	}
}

// serve protects s and returns its URL.
func serve(t *testing.T, i *issuer.Issuer, s *server.MCPServer) string {
	t.Helper()
	rs, err := resourceserver.New(resourceserver.Options{Issuer: i.URL, Resource: resource,
		Operations: mcpgo.Operations(s), FilterLists: true})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(rs.Protect(server.NewStreamableHTTPServer(s)))
	t.Cleanup(srv.Close)
	return srv.URL
}

// connect begins a session with mcp-go's own client.
func connect(t *testing.T, url, token string) *client.Client {
	t.Helper()
	c, err := client.NewStreamableHttpClient(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-11-25"
	hello.Params.ClientInfo = mcp.Implementation{Name: "client", Version: "1"}
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServer(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	url := serve(t, i, newMCPServer())
	for _, tt := range []struct {
		scope string
		opens []string
	}{
		{"", []string{"open"}},
		{"notes:read", []string{"open", "read"}},
		{"notes:write", []string{"open"}},
		{"notes:read notes:write", []string{"move", "open", "read"}},
	} {
		t.Run("SC-09 "+tt.scope, func(t *testing.T) {
			t.Parallel()
			c := connect(t, url, i.Token(t, resource, "u_1", tt.scope))
			list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			slices.Sort(names)
			if !slices.Equal(names, tt.opens) {
				t.Errorf("tools/list = %v, want %v", names, tt.opens)
			}
			for _, name := range []string{"read", "move", "open", "forgotten"} {
				var call mcp.CallToolRequest
				call.Params.Name = name
				result, err := c.CallTool(t.Context(), call)
				if served := err == nil; served != slices.Contains(tt.opens, name) {
					t.Errorf("%s was served: %t (%v)", name, served, err)
				}
				if err == nil && result.Content[0].(mcp.TextContent).Text != name+" for u_1" {
					t.Errorf("%s = %+v", name, result)
				}
			}
		})
	}
}

// JW-25: a session id means nothing to anybody else.
func TestJW25_SessionOfSomebodyElse(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	url := serve(t, i, newMCPServer())
	session := connect(t, url, i.Token(t, resource, "u_1", "notes:read")).GetTransport().GetSessionId()
	if session == "" {
		t.Fatal("there is no session")
	}
	for subject, want := range map[string]int{"u_1": http.StatusOK, "u_2": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + i.Token(t, resource, subject, "notes:read"),
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s %s, want %d", subject, resp.Status, body, want)
		}
	}
}

// Prompts and resources find the token as tools do.
func TestTokenOfPromptsAndResources(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	s := server.NewMCPServer("test", "1")
	var subjects []string
	note := func(ctx context.Context) {
		token, _ := resourceserver.TokenFromContext(ctx)
		subjects = append(subjects, token.Subject)
	}
	s.AddPrompt(mcp.NewPrompt("p"), func(ctx context.Context, _ mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		note(ctx)
		return &mcp.GetPromptResult{}, nil
	})
	s.AddResource(mcp.NewResource("notes://r", "r"), func(ctx context.Context, _ mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		note(ctx)
		return nil, nil
	})
	rs, err := resourceserver.New(resourceserver.Options{Issuer: i.URL, Resource: resource})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(rs.Protect(server.NewStreamableHTTPServer(s)))
	t.Cleanup(srv.Close)
	c := connect(t, srv.URL, i.Token(t, resource, "u_1", ""))
	var prompt mcp.GetPromptRequest
	prompt.Params.Name = "p"
	var read mcp.ReadResourceRequest
	read.Params.URI = "notes://r"
	_, promptErr := c.GetPrompt(t.Context(), prompt)
	_, readErr := c.ReadResource(t.Context(), read)
	if promptErr != nil || readErr != nil || !slices.Equal(subjects, []string{"u_1", "u_1"}) {
		t.Errorf("subjects = %v (%v, %v)", subjects, promptErr, readErr)
	}
}

func TestRequireToken(t *testing.T) {
	t.Parallel()
	s := newMCPServer(server.WithToolHandlerMiddleware(mcpgo.RequireToken))
	inProcess, err := client.NewInProcessClient(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inProcess.Close() })
	if err := inProcess.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := inProcess.Initialize(t.Context(), mcp.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	i := issuer.New(t)
	var call mcp.CallToolRequest
	call.Params.Name = "read"
	if result, err := inProcess.CallTool(t.Context(), call); err == nil {
		t.Errorf("a call without a token was served: %+v", result)
	}
	if _, err := connect(t, serve(t, i, s), i.Token(t, resource, "u_1", "notes:read")).CallTool(t.Context(), call); err != nil {
		t.Errorf("a call with a token was not: %v", err)
	}
}
