package resourceserver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
)

// bearer adds a token to a client's requests.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestGoSDK speaks both generations of the protocol with the official SDK's
// client and server: lists show what the token may call, and the session id
// means nothing to anybody else.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version       string
		stateless, js bool
	}{
		{"2025-03-26", false, false}, {"2025-06-18", false, true}, {"2025-11-25", false, false}, {"2025-11-25", true, true},
		{"2026-07-28", true, false}, {"2026-07-28", true, true},
	} {
		name := tt.version + map[bool]string{true: " stateless"}[tt.stateless] + map[bool]string{true: " JSON", false: " events"}[tt.js]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := listFixture(t)
			now := time.Now()
			f.advance(now.Sub(f.clock())) // streams end by the real clock
			server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
			for _, tool := range []string{"list_notes", "add_note"} {
				mcp.AddTool(server, &mcp.Tool{Name: tool}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
					token, _ := resourceserver.TokenFromContext(ctx)
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{
						Text: tool + " for " + token.Subject + " by " + r.Extra.Header.Get("MCP-Protocol-Version")}}}, nil, nil
				})
			}
			srv := httptest.NewServer(f.server.Protect(mcpsdk.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
				&mcp.StreamableHTTPOptions{Stateless: tt.stateless, JSONResponse: tt.js}))))
			t.Cleanup(srv.Close)
			b := bearer{token: f.token(t, "notes:read")}
			client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: &http.Client{Transport: b}},
				&mcp.ClientSessionOptions{ProtocolVersion: tt.version})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = session.Close() })
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "list_notes" {
				t.Fatalf("tools = %+v, %v; want list_notes alone", tools, err)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_notes"})
			if err != nil || result.Content[0].(*mcp.TextContent).Text != "list_notes for u_1 by "+tt.version {
				t.Fatalf("list_notes = %+v, %v", result, err)
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_note"}); err == nil {
				t.Error("SC-09 a tool was called whose scope the token lacks")
			}
			id := session.ID()
			if wantID := !tt.stateless; strings.Contains(id, ".") != wantID {
				t.Fatalf("session id = %q, want one with a tag: %v", id, wantID)
			}
			if id != "" {
				checkSessionOf(t, f, srv.URL, id, tt.version)
			}
		})
	}
}

// checkSessionOf tries the session of a client with another subject's token (JW-25).
func checkSessionOf(t *testing.T, f *fixture, url string, id, version string) {
	t.Helper()
	c := f.issuer.claims(testResource, f.clock(), "notes:read")
	c["sub"] = "u_2"
	stolen := f.issuer.sign(t, header("ES256", "ec-1"), c)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		var body io.Reader
		if method == http.MethodPost {
			body = strings.NewReader(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
		}
		req, err := http.NewRequest(method, url, body)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
			"Mcp-Session-Id": id, "MCP-Protocol-Version": version, "Authorization": "Bearer " + stolen} {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("JW-25 %s with another subject's token: status = %s, want 404", method, resp.Status)
		}
	}
}
