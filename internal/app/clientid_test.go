package app_test

import (
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// D7: no MCP server has the address of a client's metadata document, in any of
// the spellings that mean one resource.
func TestD7_NoResourceIsAClient(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		s := testkit.NewServer(t, db)
		for _, id := range []string{"https://one.example/mcp", "https://two.example/mcp/"} {
			now := s.Clock.Now()
			if err := db.CreateClient(t.Context(), registration.Client{ID: id, Kind: registration.KindCIMD, CreatedAt: now, UpdatedAt: now}); err != nil {
				t.Fatal(err)
			}
		}
		for uri, code := range map[string]string{"https://one.example/mcp": "invalid_target", "https://one.example/mcp/": "invalid_target",
			"https://two.example/mcp": "invalid_target", "https://TWO.example:443/mcp": "invalid_target", "https://three.example/mcp": ""} {
			_, err := s.App.Resources.Add(t.Context(), resource.Resource{Identifier: uri, Name: "Files"})
			if got := oauth.Code(err); got != code {
				t.Errorf("%s: %q (%v), want %q", uri, got, err, code)
			}
		}
	})
}
