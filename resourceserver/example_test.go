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
