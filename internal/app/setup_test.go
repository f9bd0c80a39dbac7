package app_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// What resource.Admin refuses is a mistake in set-up's form, and no failure of
// the server: the wiring between the two must know it for one.
func TestSetUpTellsWhatIsWrongWithAServer(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		s, ctx := testkit.NewServer(t, db), t.Context()
		_, link, err := s.App.Setup.New(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p := s.Person()
		page, err := p.Open(ctx, link)
		for _, fields := range []url.Values{nil, {"username": {"oda@example.com"}, "name": {"Oda"}, "password": {"oda has a long password"}}} {
			if err == nil {
				page, err = p.Submit(ctx, page, page.Form("/setup"), fields)
			}
		}
		if err != nil || page.Status != http.StatusOK {
			t.Fatalf("set-up: %v, %v", page, err)
		}
		for name, fields := range map[string]url.Values{
			"the issuer":      {"url": {testkit.Issuer + "/"}},
			"plain http":      {"url": {"http://mcp.example.net/mcp"}},
			"dot segments":    {"url": {"https://mcp.example.net/a/../b"}},
			"no URL":          {"url": {"mcp"}},
			"taken":           {"url": {testkit.Resource}},
			"name too long":   {"url": {"https://mcp.example.net/mcp"}, "name": {strings.Repeat("n", 101)}},
			"name with a tab": {"url": {"https://mcp.example.net/mcp"}, "name": {"a\tb"}},
			"name of bidi":    {"url": {"https://mcp.example.net/mcp"}, "name": {"a\u202eb"}},
		} {
			got, err := p.Submit(ctx, page, page.Form("/setup"), fields)
			if err != nil || got.Status != http.StatusUnprocessableEntity || got.Form("/setup") == nil {
				t.Errorf("%s: %d %q, %v; want the form again with 422", name, got.Status, got.Heading, err)
			}
		}
		if list, err := s.App.Resources.List(ctx); err != nil || len(list) != 2 {
			t.Errorf("resources: %v, %v; want the two of every test", list, err)
		}
	})
}
