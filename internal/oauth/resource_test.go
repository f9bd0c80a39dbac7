package oauth_test

import (
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestCanonicalResource(t *testing.T) {
	for _, tt := range []struct{ name, raw, want, wantCode string }{
		{name: "A23 as it is", raw: "https://mcp.example/tools", want: "https://mcp.example/tools"},
		{name: "A23 scheme and host in lower case, path not", raw: "HTTPS://MCP.Example/Tools", want: "https://mcp.example/Tools"},
		{name: "A23 default port", raw: "https://mcp.example:443/x", want: "https://mcp.example/x"},
		{name: "A23 another port stays", raw: "https://mcp.example:8443/x", want: "https://mcp.example:8443/x"},
		{name: "A23 http default port", raw: "http://localhost:80/", want: "http://localhost"},
		{name: "A23 empty path and slash are one", raw: "https://mcp.example/", want: "https://mcp.example"},
		{name: "A23 one trailing slash", raw: "https://mcp.example/mcp/", want: "https://mcp.example/mcp"},
		{name: "IPv6", raw: "http://[::1]:9100/mcp", want: "http://[::1]:9100/mcp"},
		{name: "query stays", raw: "https://mcp.example/mcp?tenant=1", want: "https://mcp.example/mcp?tenant=1"},
		{name: "AU-02 empty", raw: "", wantCode: "invalid_target"},
		{name: "AU-02 relative", raw: "/mcp", wantCode: "invalid_target"},
		{name: "AU-02 no scheme", raw: "mcp.example/mcp", wantCode: "invalid_target"},
		{name: "AU-02 fragment", raw: "https://mcp.example/mcp#a", wantCode: "invalid_target"},
		{name: "AU-02 empty fragment, which url.Parse loses", raw: "https://mcp.example/mcp#", wantCode: "invalid_target"},
		{name: "AU-02 userinfo", raw: "https://user@mcp.example/mcp", wantCode: "invalid_target"},
		{name: "AU-02 another scheme", raw: "urn:example:mcp", wantCode: "invalid_target"},
		{name: "AU-02 no host", raw: "https:///mcp", wantCode: "invalid_target"},
		{name: "AU-02 empty port", raw: "https://mcp.example:/mcp", wantCode: "invalid_target"},
		{name: "AU-01 dot segments", raw: "https://mcp.example/a/../mcp", wantCode: "invalid_target"},
		{name: "AU-01 a single dot", raw: "https://mcp.example/./mcp", wantCode: "invalid_target"},
		{name: "AU-01 encoded dot segments", raw: "https://mcp.example/mcp/%2e%2E/admin", wantCode: "invalid_target"},
		{name: "AU-01 behind an encoded slash", raw: "https://mcp.example/mcp/..%2fadmin", wantCode: "invalid_target"},
		{name: "dots in a name are its own", raw: "https://mcp.example/.well..known/...", want: "https://mcp.example/.well..known/..."},
		{name: "AU-02 space", raw: "https://mcp.example/m cp", wantCode: "invalid_target"},
		{name: "AU-02 8 KiB", raw: "https://mcp.example/" + strings.Repeat("a", 8192), wantCode: "invalid_target"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := oauth.CanonicalResource(tt.raw)
			if got != tt.want || oauth.Code(err) != tt.wantCode {
				t.Errorf("CanonicalResource(%q) = %q, %v", tt.raw, got, err)
			}
		})
	}
}

func TestA24_ResourceWithin(t *testing.T) {
	for _, tt := range []struct {
		parent, child string
		want          bool
	}{
		{"https://mcp.example/mcp", "https://mcp.example/mcp", true},
		{"https://mcp.example/mcp", "https://mcp.example/mcp/tools", true},
		{"https://mcp.example", "https://mcp.example/mcp", true},
		{"https://mcp.example/mcp", "https://mcp.example/mcp2", false},
		{"https://mcp.example/mcp/tools", "https://mcp.example/mcp", false},
		{"https://mcp.example", "https://mcp.example.evil.example/mcp", false},
		{"https://mcp.example/mcp?tenant=1", "https://mcp.example/mcp?tenant=1/x", false},
	} {
		if got := oauth.ResourceWithin(tt.parent, tt.child); got != tt.want {
			t.Errorf("ResourceWithin(%q, %q) = %t, want %t", tt.parent, tt.child, got, tt.want)
		}
	}
}

func FuzzResource(f *testing.F) {
	for _, seed := range []string{"https://mcp.example/mcp", "HTTP://LOCALHOST:80//a/./b/..//", "https://[::1]:443/?", "https://a#",
		"https://a/%2e%2e/b", "https://a:0443/", "//a", "https://a\\b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := oauth.CanonicalResource(raw)
		if err != nil {
			if oauth.Code(err) != "invalid_target" {
				t.Fatalf("CanonicalResource(%q): %v", raw, err)
			}
			return
		}
		again, err := oauth.CanonicalResource(got)
		if err != nil {
			t.Fatalf("the canonical form %q of %q is refused: %v", got, raw, err)
		}
		if again != got && !strings.HasSuffix(got, "/") { // one trailing slash goes at a time (A23)
			t.Fatalf("canonical form of %q is not stable: %q, then %q", raw, got, again)
		}
	})
}
