package authclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
)

// demo is an MCP server for the examples, which is its own authorization server and
// whose person allows everything.
func demo() *httptest.Server {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	document := func(pattern string, doc map[string]any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(doc)
		})
	}
	document("GET /.well-known/oauth-protected-resource/mcp", map[string]any{
		"resource": server.URL + "/mcp", "authorization_servers": []string{server.URL}, "scopes_supported": []string{"files:read"}})
	document("GET /.well-known/oauth-authorization-server", map[string]any{
		"issuer": server.URL, "authorization_endpoint": server.URL + "/authorize", "token_endpoint": server.URL + "/token",
		"registration_endpoint": server.URL + "/register", "code_challenge_methods_supported": []string{"S256"}})
	document("POST /register", map[string]any{"client_id": "c1"})
	document("POST /token", map[string]any{"access_token": "demo", "token_type": "Bearer", "expires_in": 600, "scope": "files:read"})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"x"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer demo" {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+server.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, "three files")
	})
	return server
}

// demoBrowser opens a URL as a browser would.
func demoBrowser(ctx context.Context, rawURL string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
