package mcpsdk_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
)

// A server on the official SDK. Its handler goes to http.ListenAndServe.
func Example() {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "add_note", Description: "Add a note"},
		func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			token, _ := mcpsdk.Token(req)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Noted for " + token.Subject}}}, nil, nil
		})
	rs, err := resourceserver.New(resourceserver.Options{
		Issuer: "https://login.example.com", Resource: "https://mcp.example.com/mcp", Scopes: []string{"notes:read"},
		Operations: resourceserver.Tools(map[string][]string{"add_note": {"notes:write"}}),
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := rs.Protect(mcpsdk.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)))

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output:
	// 401 Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="notes:read"
}

// A server that stays with the SDK's RequireBearerToken for now has at least its
// tokens checked; Protect does the rest.
func ExampleVerifier() {
	rs, err := resourceserver.New(resourceserver.Options{
		Issuer: "https://login.example.com", Resource: "https://mcp.example.com/mcp", Scopes: []string{"notes:read"},
	})
	if err != nil {
		log.Fatal(err)
	}
	require := auth.RequireBearerToken(mcpsdk.Verifier(rs), &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: rs.MetadataURL(), Scopes: []string{"notes:read"},
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", require(http.NotFoundHandler()))
	mux.Handle("/.well-known/oauth-protected-resource/mcp", rs.Metadata())

	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", nil)
	r.Header.Set("Authorization", "Bearer nonsense")
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output:
	// 401 Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="notes:read"
}
