package mcpgo_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpgo"
)

// A server on mcp-go whose tools say what they need. Its handler goes to
// http.ListenAndServe.
func Example() {
	s := server.NewMCPServer("notes", "1.0.0")
	s.AddTool(mcp.NewTool("add_note", mcp.WithDescription("Add a note"), mcpgo.Scopes("notes:write")),
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			token, _ := resourceserver.TokenFromContext(ctx)
			return mcp.NewToolResultText("Noted for " + token.Subject), nil
		})
	rs, err := resourceserver.New(resourceserver.Options{
		Issuer: "https://login.example.com", Resource: "https://mcp.example.com/mcp", Scopes: []string{"notes:read"},
		Operations: mcpgo.Operations(s), FilterLists: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := rs.Protect(server.NewStreamableHTTPServer(s))

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	fmt.Println(mcpgo.Operations(s))
	// Output:
	// 401 Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="notes:read"
	// map[{tools/call add_note }:[notes:write]]
}
