package authclient

import (
	"net/url"
	"testing"
)

// TestTK12_PathsThatClimb: the token stays below the server's path, however the way out
// is written.
func TestTK12_PathsThatClimb(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Server: "https://h.example/tenant/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]bool{
		"https://h.example/tenant/mcp":                          true,
		"https://h.example:443/tenant/mcp/x?y=/../":             true,
		"https://h.example/tenant/mcp/a..b/...;c/100%25/%2525x": true,
		"https://h.example/tenant/mcp/../../evil":               false,
		"https://h.example/tenant/mcp/%2e%2e/%2E%2e/evil":       false,
		"https://h.example/tenant/mcp/..%2f..%2fevil":           false,
		"https://h.example/tenant/mcp/..%5c..%5cevil":           false,
		"https://h.example/tenant/mcp/..;/..;x=y/evil":          false,
		"https://h.example/tenant/mcp/..%3b/evil":               false,
		"https://h.example/tenant/mcp/%252e%252e/evil":          false,
		"https://h.example/tenant/mcp/%25252e%25252e%25252f":    false,
		"https://h.example/tenant/mcp/%2525252525252525":        false,
		"http://h.example/tenant/mcp":                           false,
		"https://h.example/tenant/mcpx":                         false,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.bears(u); got != want {
			t.Errorf("bears(%s) = %t", raw, got)
		}
	}
}
