package app_test

import (
	"errors"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// What the operator allows is allowed, exactly; our own names never are.
func TestCI13_OutboundFollowsConfiguration(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.StateDir = t.TempDir()
	cfg.Issuer = "https://auth.example.com/mcp"
	cfg.AllowedHosts = []string{"auth.internal:8443", "::1"} // the second is Host's spelling, no URL's
	cfg.OutboundAllowHosts = []string{"app.corp.example:8443", "auth.internal:8443", "auth.example.com"}
	core, err := app.NewCore(t.Context(), app.Options{Config: cfg, Store: testkit.OpenSQLite(t)})
	if err != nil {
		t.Fatal(err)
	}
	for raw, refused := range map[string]bool{
		"https://app.example/client":                  false,
		"https://app.corp.example:8443/client":        false,
		"https://app.corp.example:9443/client":        true,
		"https://10.0.0.1/client":                     true,
		"https://auth.example.com/mcp/authorize":      true,
		"https://AUTH.example.com:443/client":         true,
		"https://auth.internal:8443/client":           true,
		"https://other.example.com/client":            false,
		"http://app.corp.example:8443/client":         true,
		"https://user@app.corp.example:8443/client":   true,
		"https://x.app.corp.example:8443/client":      true,
		"https://app.corp.example:8443/client#anchor": true,
	} {
		if err := core.Outbound.Check(raw); errors.Is(err, netguard.ErrRefused) != refused {
			t.Errorf("Check(%q) = %v, want refused %t", raw, err, refused)
		}
	}
}
