package doctor

import (
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/doctor"
)

// TestReplay: each client walks in its own order, stops where it would, and only
// what it notices counts.
func TestReplay(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	elsewhere := nginx{serverProxy: `proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer resource_metadata="https://mcp.example.com/nothing"$invalid' always;`,
		server: `location = /nothing { return 404; }`}
	noGet := nginx{server: `set $asked "$request_method$uri"; if ($asked = GET/files) { return 405; }`}
	slash := nginx{serverProxy: rewrite(`"https://id.example.com"`, `"https://id.example.com/"`)}
	noPKCE := nginx{issuerProxy: rewrite(`"code_challenge_methods_supported":["S256"],`, ``)}
	plainPKCE := nginx{issuerProxy: rewrite(`"code_challenge_methods_supported":["S256"]`, `"code_challenge_methods_supported":["plain"]`)}
	noPlace := nginx{server: `location /.well-known/oauth-protected-resource { proxy_pass http://127.0.0.1:1; }`}
	limited := nginx{issuer: `location /.well-known/ { default_type application/json; return 429 "{}"; }`}
	parent := nginx{serverProxy: rewrite(`https://mcp.example.com/files"`, `https://mcp.example.com"`)}
	redirected := nginx{issuer: `location = /.well-known/oauth-authorization-server { return 302 /elsewhere; }`}
	for _, tt := range []struct {
		name, client string
		nginx
		// stops is in the last step, "" when the client registers; broken is whether
		// something counts.
		stops  string
		broken bool
	}{
		{"the place named is empty", "python-sdk-2", elsewhere, "", true},
		{"the place named is empty", "typescript-sdk-2", elsewhere, `issuer is "https://id.example.com", not "https://mcp.example.com"`, true},
		{"the place named is empty", "cursor", elsewhere, "", true}, // by the metadata at the MCP server's origin
		{"GET is refused", "goose", noGet, "405", true},
		{"GET is refused", "cursor", noGet, "", false},
		{"issuer with a slash", "python-sdk-2", slash, `issuer is "https://id.example.com", not "https://id.example.com/"`, true},
		{"issuer with a slash", "go-sdk", slash, "", true},
		{"issuer with a slash", "cursor", slash, "", false},
		{"no PKCE", "go-sdk", noPKCE, "without S256", true},
		{"no PKCE", "vscode", noPKCE, "", false},
		{"no PKCE", "typescript-sdk-2", noPKCE, "", false},
		{"no PKCE", "rmcp", noPKCE, "", false},
		{"PKCE without S256", "go-sdk", plainPKCE, "without S256", true},
		{"PKCE without S256", "typescript-sdk-2", plainPKCE, "without S256", true},
		{"PKCE without S256", "cursor", plainPKCE, "without S256", true},
		{"PKCE without S256", "python-sdk-2", plainPKCE, "", false},
		{"no place answers", "python-sdk-1", noPlace, "", true},
		{"no place answers", "rmcp", noPlace, "It does not look further", true},
		{"rate limit", "python-sdk-1", limited, "No authorization server metadata", true},
		{"resource is a parent", "vscode", parent, "resource is", true},
		{"resource is a parent", "go-sdk", parent, "resource is", true},
		{"resource is a parent", "rmcp", parent, "", false},
		{"metadata is redirected", "python-sdk-1", redirected, "302. It does not look further", true},
		{"metadata is redirected", "vscode", redirected, "302. It does not look further", true},
	} {
		t.Run(tt.name+", "+tt.client, func(t *testing.T) {
			r := s.examine(t, tt.nginx, func(o *doctor.Options) { o.As = tt.client })
			last := r.Replay[len(r.Replay)-1]
			if (last.State == doctor.Broken) != (tt.stops != "") || !strings.Contains(last.Text, tt.stops) {
				t.Errorf("the last step is %s: %s; want %q", last.State, last.Text, tt.stops)
			}
			if got := r.Broken() > 0; got != tt.broken {
				t.Errorf("%d broken, steps %+v", r.Broken(), r.Replay)
			}
			for _, f := range r.Findings {
				if f.State == doctor.Broken && f.Elsewhere != (len(f.Clients) == 0) {
					t.Errorf("%s: elsewhere %t, clients %v", f.ID, f.Elsewhere, f.Clients)
				}
			}
		})
	}
}
