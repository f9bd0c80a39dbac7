package registration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newAdmin(db *sqlstore.Store) *registration.Admin {
	return &registration.Admin{Clients: db, Tx: db, Audit: db, Grants: db, Consents: db, Now: func() time.Time { return noon }}
}

// events returns the names of the audit events, sorted: events of one moment
// have no order.
func events(t *testing.T, db *sqlstore.Store) []string {
	t.Helper()
	list, err := db.ListEvents(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, a := t.Context(), newAdmin(db)
		added, secret, err := a.Add(ctx, registration.AddOptions{Name: " Atlas\u202e ", RedirectURIs: []string{"https://atlas.example/cb"},
			AuthMethod: "client_secret_post", Resources: []string{"https://MCP.example:443/", "https://mcp.example"}})
		if err != nil {
			t.Fatal(err)
		}
		if !added.Trusted() || added.Metadata.ClientName != "Atlas" || !cmp.Equal(added.Resources, []string{"https://mcp.example"}) {
			t.Errorf("added %+v", added)
		}
		if got, err := a.Show(ctx, added.ID); err != nil || !cmp.Equal(got, added) || !got.CheckSecret(secret, noon) {
			t.Errorf("Show: %v\n%s", err, cmp.Diff(added, got))
		}
		name, redirects := "Atlas 2", []string{"atlas2:/cb"}
		if _, err := a.Update(ctx, added.ID, registration.UpdateOptions{RedirectURIs: &redirects}); oauth.Code(err) != "invalid_redirect_uri" {
			t.Errorf("D12: a private-use scheme for a client with a secret: %v", err)
		}
		updated, err := a.Update(ctx, added.ID, registration.UpdateOptions{Name: &name})
		if err != nil || updated.Metadata.ClientName != name || updated.DocumentHash == added.DocumentHash || !updated.CheckSecret(secret, noon) ||
			!cmp.Equal(updated.Metadata.RedirectURIs, added.Metadata.RedirectURIs) || !cmp.Equal(updated.Resources, added.Resources) {
			t.Errorf("Update: %+v, %v", updated, err)
		}
		if c, err := a.Disable(ctx, added.ID); err != nil || c.Enabled() {
			t.Errorf("Disable: %+v, %v", c, err)
		}
		if c, err := a.Enable(ctx, added.ID); err != nil || !c.Enabled() {
			t.Errorf("Enable: %+v, %v", c, err)
		}
		if want := []string{"client.added", "client.disabled", "client.enabled", "client.updated"}; !slices.Equal(events(t, db), want) {
			t.Errorf("D35: events %q, want %q", events(t, db), want)
		}
	})
}

func TestAdminAddRefuses(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	uris := []string{"https://app.example/cb"}
	for _, tt := range []struct {
		name, says string
		o          registration.AddOptions
	}{
		{"no name", "client_name", registration.AddOptions{RedirectURIs: uris}},
		{"a name of nothing visible", "client_name", registration.AddOptions{Name: "\u200b", RedirectURIs: uris}},
		{"no redirect URI", "redirect_uris", registration.AddOptions{Name: "A"}},
		{"RU-14 http", "redirect_uris[0]", registration.AddOptions{Name: "A", RedirectURIs: []string{"http://app.example/cb"}}},
		{"unknown grant", "grant type", registration.AddOptions{Name: "A", RedirectURIs: uris, GrantTypes: []string{"password"}}},
		{"unknown method", "token_endpoint_auth_method", registration.AddOptions{Name: "A", RedirectURIs: uris, AuthMethod: "basic"}},
		{"D23 client_credentials without resource", "resources", registration.AddOptions{Name: "A", AuthMethod: "client_secret_basic", GrantTypes: []string{"client_credentials"}}},
		{"D23 client_credentials of a public client", "secret", registration.AddOptions{Name: "A", GrantTypes: []string{"client_credentials"}, Resources: uris}},
		{"resource", "resource", registration.AddOptions{Name: "A", RedirectURIs: uris, Resources: []string{"mcp.example"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, secret, err := newAdmin(db).Add(t.Context(), tt.o); err == nil || secret != "" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Add(%+v) = %v, want an error that says %q", tt.o, err, tt.says)
			}
		})
	}
	if list, err := db.ListClients(t.Context()); err != nil || len(list) != 0 || len(events(t, db)) != 0 {
		t.Errorf("refused clients left %d rows and events %q (%v)", len(list), events(t, db), err)
	}
}

func TestCA15_RemoveEndsGrantsAndForgetsConsents(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, a := t.Context(), newAdmin(db)
		var ids []string
		for _, name := range []string{"gone", "stays"} {
			c, _, err := a.Add(ctx, registration.AddOptions{Name: name, RedirectURIs: []string{"http://localhost/cb"}})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, c.ID)
			if err := db.CreateGrant(ctx, grant.Grant{ID: strings.Repeat(string(name[0]-'g'+'a'), 32), ClientID: c.ID, Subject: "mina", Resource: "r", Salt: []byte{1},
				Generation: 1, CodeExpiresAt: noon, ExpiresAt: noon.Add(time.Hour), CreatedAt: noon}); err != nil {
				t.Fatal(err)
			}
			if err := db.PutConsent(ctx, consent.Consent{Subject: "mina", ClientID: c.ID, RedirectURI: "http://localhost/cb", Resource: "r",
				CreatedAt: noon, UpdatedAt: noon}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := a.Remove(ctx, ids[0]); err != nil || n != 1 {
			t.Fatalf("Remove = %d, %v; want 1 grant ended", n, err)
		}
		for i, removed := range []bool{true, false} {
			grants, err := db.ListGrants(ctx, grant.Filter{ClientID: ids[i]})
			if err != nil || len(grants) != 1 {
				t.Fatalf("ListGrants: %v, %v", grants, err)
			}
			if g := grants[0]; g.Live(noon) == removed || removed && (g.EndReason != grant.ReasonClient || g.Salt != nil) {
				t.Errorf("grant of %s: live %t, reason %q, salt %v", ids[i], g.Live(noon), g.EndReason, g.Salt)
			}
			has, err := db.HasConsent(ctx, "mina", ids[i], "http://localhost/cb")
			if err != nil || has == removed {
				t.Errorf("consent of %s: %t, %v", ids[i], has, err)
			}
			if _, err := a.Show(ctx, ids[i]); errors.Is(err, store.ErrNotFound) != removed {
				t.Errorf("Show(%s) = %v", ids[i], err)
			}
		}
		before := events(t, db)
		for name, err := range map[string]error{
			"Remove": func() error { _, err := a.Remove(ctx, ids[0]); return err }(),
			"Update": func() error { _, err := a.Update(ctx, ids[0], registration.UpdateOptions{}); return err }(),
			"Enable": func() error { _, err := a.Enable(ctx, "nobody at all"); return err }(),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s of no client = %v, want store.ErrNotFound", name, err)
			}
		}
		if after := events(t, db); !slices.Equal(before, after) {
			t.Errorf("changes of no client left events: %q, before %q", after, before)
		}
	})
}

// Two operators, or two processes, change one client at the same time: neither
// writes back what the other has changed.
func TestD18_ChangesOfAClientMeet(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, a := t.Context(), newAdmin(db)
		c, _, err := a.Add(ctx, registration.AddOptions{Name: "Atlas", RedirectURIs: []string{"https://atlas.example/cb"}})
		if err != nil {
			t.Fatal(err)
		}
		for round := range 25 {
			if _, err := a.Enable(ctx, c.ID); err != nil {
				t.Fatal(err)
			}
			name, seen := fmt.Sprintf("Atlas %d", round), noon.Add(time.Duration(round)*time.Minute)
			var all sync.WaitGroup
			for what, change := range map[string]func() error{
				"update":  func() error { _, err := a.Update(ctx, c.ID, registration.UpdateOptions{Name: &name}); return err },
				"disable": func() error { _, err := a.Disable(ctx, c.ID); return err },
				"use":     func() error { return db.TouchClient(ctx, c.ID, seen) },
			} {
				all.Go(func() {
					if err := change(); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			all.Wait()
			got, err := a.Show(ctx, c.ID)
			if err != nil || got.Enabled() || got.Metadata.ClientName != name || !got.LastUsedAt.Equal(seen) {
				t.Fatalf("round %d: enabled %v, name %q, last used %v, %v; want it disabled, %q, %v",
					round, got.Enabled(), got.Metadata.ClientName, got.LastUsedAt, err, name, seen)
			}
		}
	})
}
