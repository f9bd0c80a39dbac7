package resourceserver_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// A handler behind Protect is reached with a valid token only; everybody else
// learns where to get one.
func Example() {
	rs, err := resourceserver.New(resourceserver.Options{
		Issuer:   "https://login.example.com",
		Resource: "https://mcp.example.com/mcp",
		Scopes:   []string{"notes:read"},
		Operations: map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "list_notes"}: {"notes:read"},
			{Method: "tools/call", Name: "add_note"}:   {"notes:write"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := rs.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := resourceserver.TokenFromContext(r.Context())
		fmt.Fprintln(w, "hello", token.Subject)
	}))

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output:
	// 401 Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="notes:read"
}

// One scope may cover others, and a prefix stands for the resources of a
// template. A client that lacks something is asked for all of it at once.
func ExampleServer_Protect() {
	rs, err := resourceserver.New(resourceserver.Options{
		Issuer:   "https://login.example.com",
		Resource: "https://mcp.example.com/mcp",
		Implies:  map[string][]string{"notes": {"notes:read", "notes:write"}},
		Operations: map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "add_note"}:                  {"notes:write"},
			{Method: "resources/read", Prefix: "notes://public/"}:     {},
			{Method: "resources/read", Prefix: "notes://personal/"}:   {"notes:read"},
			{Method: "resources/read", Name: "notes://personal/keys"}: {"notes:read", "keys"},
		},
		FilterLists: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", rs.Protect(http.NotFoundHandler()))
	mux.Handle("/.well-known/oauth-protected-resource/mcp", rs.Metadata())
	fmt.Println(rs.MetadataURL())
	// Output:
	// https://mcp.example.com/.well-known/oauth-protected-resource/mcp
}

// RequireScopes protects handlers that are not MCP: everything of a page needs
// the same scopes.
func ExampleServer_RequireScopes() {
	rs, err := resourceserver.New(resourceserver.Options{
		Issuer:   "https://login.example.com",
		Resource: "https://api.example.com",
		Scopes:   []string{"reports"},
	})
	if err != nil {
		log.Fatal(err)
	}
	reports := rs.RequireScopes("reports", "export")(http.NotFoundHandler())
	w := httptest.NewRecorder()
	rs.Protect(reports).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://api.example.com/reports", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output:
	// 401 Bearer resource_metadata="https://api.example.com/.well-known/oauth-protected-resource", scope="reports"
}
