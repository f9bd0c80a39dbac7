package metadata

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestA2Paths(t *testing.T) {
	for _, tt := range []struct {
		issuer        string
		oauth, openid []string
	}{
		{
			issuer: "https://as.example",
			oauth:  []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/"},
			openid: []string{"/.well-known/openid-configuration", "/.well-known/openid-configuration/"},
		},
		{
			issuer: "https://as.example/tenant/one",
			oauth: []string{"/.well-known/oauth-authorization-server/tenant/one", "/.well-known/oauth-authorization-server/tenant/one/",
				"/tenant/one/.well-known/oauth-authorization-server", "/tenant/one/.well-known/oauth-authorization-server/"},
			openid: []string{"/.well-known/openid-configuration/tenant/one", "/.well-known/openid-configuration/tenant/one/",
				"/tenant/one/.well-known/openid-configuration", "/tenant/one/.well-known/openid-configuration/"},
		},
	} {
		t.Run(tt.issuer, func(t *testing.T) {
			oauth, err := AuthorizationServerPaths(tt.issuer)
			if diff := cmp.Diff(tt.oauth, oauth); diff != "" || err != nil {
				t.Errorf("AuthorizationServerPaths: %v\n%s", err, diff)
			}
			openid, err := OpenIDConfigurationPaths(tt.issuer)
			if diff := cmp.Diff(tt.openid, openid); diff != "" || err != nil {
				t.Errorf("OpenIDConfigurationPaths: %v\n%s", err, diff)
			}
		})
	}
	if _, err := AuthorizationServerPaths("not a URL"); err == nil {
		t.Error("an issuer that is no URL has paths")
	}
}

// TestClientURLs: the order of MCP's authorization specification, discovery.
func TestClientURLs(t *testing.T) {
	for issuer, want := range map[string][]string{
		"https://as.example": {"https://as.example/.well-known/oauth-authorization-server",
			"https://as.example/.well-known/openid-configuration"},
		"https://as.example/t": {"https://as.example/.well-known/oauth-authorization-server/t",
			"https://as.example/.well-known/openid-configuration/t", "https://as.example/t/.well-known/openid-configuration"},
	} {
		got, err := AuthorizationServerURLs(issuer)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", issuer, err, diff)
		}
	}
}

func TestProtectedResourceURL(t *testing.T) {
	for _, tt := range []struct{ resource, want string }{
		{"https://mcp.example", "https://mcp.example/.well-known/oauth-protected-resource"},
		{"https://mcp.example/", "https://mcp.example/.well-known/oauth-protected-resource"},
		{"https://mcp.example/mcp", "https://mcp.example/.well-known/oauth-protected-resource/mcp"},
		{"https://mcp.example/mcp/", "https://mcp.example/.well-known/oauth-protected-resource/mcp/"},
		{"https://mcp.example/a%2Fb", "https://mcp.example/.well-known/oauth-protected-resource/a%2Fb"},
		{"https://mcp.example/r?k=1", "https://mcp.example/.well-known/oauth-protected-resource/r?k=1"},
	} {
		if got, err := ProtectedResourceURL(tt.resource); got != tt.want || err != nil {
			t.Errorf("RFC 9728 3.1 ProtectedResourceURL(%q) = %q, %v; want %q", tt.resource, got, err, tt.want)
		}
	}
	paths, err := ProtectedResourcePaths("https://mcp.example/mcp/")
	want := []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource/mcp/"}
	if diff := cmp.Diff(want, paths); diff != "" || err != nil {
		t.Errorf("ProtectedResourcePaths: %v\n%s", err, diff)
	}
}
