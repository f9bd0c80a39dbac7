package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/internal/gateway"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// bearer adds a token to a client's requests.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// The official SDK's client and server speak through the gateway in both
// generations of the protocol; the server knows nothing of it.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version       string
		stateless, js bool
	}{{"2025-03-26", false, false}, {"2025-11-25", false, false}, {"2025-11-25", true, true}, {"2026-07-28", true, false}, {"2026-07-28", true, true}} {
		name := tt.version + map[bool]string{true: " stateless"}[tt.stateless] + map[bool]string{true: " JSON", false: " events"}[tt.js]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
			for _, tool := range []string{"list_notes", "add_note"} {
				mcp.AddTool(server, &mcp.Tool{Name: tool}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
					_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Extra.Header.Get("X-Ostiary-Subject")}}}, nil, nil
				})
			}
			upstream := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
				&mcp.StreamableHTTPOptions{Stateless: tt.stateless, JSONResponse: tt.js}))
			t.Cleanup(upstream.Close)
			f := newFixture(t, func(_ *fixture, o *gateway.Options) {
				o.Upstream, o.Identity = upstream.URL, gateway.IdentityHeaders
				o.ResourceServer.Operations = map[resourceserver.Operation][]string{
					{Method: "tools/call", Name: "list_notes"}: {"notes:read"}, {Method: "tools/call", Name: "add_note"}: {"notes:write"}}
				o.ResourceServer.FilterLists = true
			})
			progress := make(chan float64, 1)
			client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress }})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: f.front.URL + "/mcp",
				HTTPClient: &http.Client{Transport: bearer{f.token(t)}}}, &mcp.ClientSessionOptions{ProtocolVersion: tt.version})
			must(t, err)
			t.Cleanup(func() { _ = session.Close() })
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "list_notes" {
				t.Fatalf("tools = %+v, %v; want list_notes alone", tools, err)
			}
			params := &mcp.CallToolParams{Name: "list_notes"}
			params.SetProgressToken("p")
			result, err := session.CallTool(t.Context(), params)
			if err != nil || result.Content[0].(*mcp.TextContent).Text != "u_1" {
				t.Fatalf("list_notes = %+v, %v", result, err)
			}
			if !tt.js {
				if got := <-progress; got != 1 {
					t.Errorf("progress = %v", got)
				}
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_note"}); err == nil {
				t.Error("SC-09 a tool was called whose scope the token lacks")
			}
			if id := session.ID(); strings.Contains(id, ".") == tt.stateless {
				t.Errorf("session id = %q", id)
			}
		})
	}
}
