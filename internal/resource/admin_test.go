package resource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const (
	issuer = "https://as.example"
	files  = "https://mcp.example/files"
	mail   = "https://mail.example/"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newAdmin(db *sqlstore.Store) *resource.Admin {
	return &resource.Admin{Store: db, Issuer: issuer, Now: func() time.Time { return t0 }}
}

func add(t *testing.T, a *resource.Admin, r resource.Resource) resource.Resource {
	t.Helper()
	r, err := a.Add(t.Context(), r)
	if err != nil {
		t.Fatalf("Add: %v", err)
	}
	return r
}

func events(t *testing.T, db *sqlstore.Store) []string {
	t.Helper()
	list, err := db.ListEvents(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name+" "+e.Resource)
	}
	slices.Sort(names)
	return names
}

func TestAdminAdd(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		a := newAdmin(db)
		want := add(t, a, resource.Resource{Identifier: mail, Name: "Mail", ClaimedName: "mail-server", Default: true, Scopes: []resource.Scope{
			{Name: "mail:read", Title: "Read your mail", Detail: "All folders.", Risk: resource.RiskLow, Required: true, Group: "Mail"},
			{Name: "mail:send", Title: "Send mail", Risk: resource.RiskPermanent, Default: true, Implies: []string{"mail:read"}},
			{Name: "mail:admin", Restricted: true},
		}})
		// every spelling finds it, and the identifier stays byte-exact (A23)
		for _, id := range []string{mail, "https://mail.example", "HTTPS://MAIL.example:443/"} {
			got, err := a.Get(t.Context(), id)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("Get(%q): %v\n%s", id, err, diff)
			}
		}
		if _, err := a.Add(t.Context(), resource.Resource{Identifier: "https://mail.example"}); !errors.Is(err, store.ErrExists) {
			t.Errorf("the same resource again: err = %v, want ErrExists", err)
		}
		second := add(t, a, resource.Resource{Identifier: files, Default: true})
		if second.Name != "mcp.example/files" {
			t.Errorf("name without --name = %q", second.Name)
		}
		list, err := a.List(t.Context())
		if err != nil || len(list) != 2 || list[0].Default || !list[1].Default {
			t.Errorf("the default mark did not move: %+v, %v", list, err)
		}
		// the one that lost the mark changed too
		recorded := []string{"resource.added " + mail, "resource.added " + files, "resource.updated " + mail}
		if got := events(t, db); !slices.Equal(got, recorded) {
			t.Errorf("D35 events = %v, want %v", got, recorded)
		}
	})
}

func TestAdminAddRefuses(t *testing.T) {
	db := testkit.OpenSQLite(t)
	a := newAdmin(db)
	a.IsClientID = func(_ context.Context, canonical string) (bool, error) {
		return canonical == "https://client.example/metadata.json", nil
	}
	for _, tt := range []struct {
		name string
		r    resource.Resource
		want string
	}{
		{name: "AU-02 relative", r: resource.Resource{Identifier: "/files"}, want: "absolute"},
		{name: "AU-02 fragment", r: resource.Resource{Identifier: files + "#x"}, want: "fragment"},
		{name: "AU-02 userinfo", r: resource.Resource{Identifier: "https://a@mcp.example"}, want: "userinfo"},
		{name: "D7 the issuer", r: resource.Resource{Identifier: "HTTPS://AS.example:443/"}, want: "issuer"},
		{name: "D7 a client_id", r: resource.Resource{Identifier: "https://client.example/metadata.json/"}, want: "client_id"},
		{name: "http on another host", r: resource.Resource{Identifier: "http://mcp.example"}, want: "https"},
		{name: "ST-07 NUL in the name", r: resource.Resource{Identifier: files, Name: "a\x00"}, want: "control character"},
		{name: "ST-07 invalid UTF-8 in the name", r: resource.Resource{Identifier: files, Name: "a\xff"}, want: "UTF-8"},
		{name: "name that turns the line around", r: resource.Resource{Identifier: files, Name: "a\u202eb"}, want: "control character"},
		{name: "name of spaces", r: resource.Resource{Identifier: files, Name: "  "}, want: "empty"},
		{name: "name too long", r: resource.Resource{Identifier: files, Name: strings.Repeat("a", 101)}, want: "longer"},
		{name: "scope twice", r: scopes("a", "a"), want: "twice"},
		{name: "D26 protocol scope", r: scopes("offline_access"), want: "cannot declare"},
		{name: "unknown risk", r: resource.Resource{Identifier: files, Scopes: []resource.Scope{{Name: "a", Risk: "huge"}}}, want: "risk"},
		{name: "implies an undeclared scope", r: resource.Resource{Identifier: files, Scopes: []resource.Scope{{Name: "a", Implies: []string{"b"}}}}, want: "not declared"},
		{name: "SC-04 open scope implies a restricted one", want: "restricted too", r: resource.Resource{Identifier: files,
			Scopes: []resource.Scope{{Name: "a", Implies: []string{"b"}}, {Name: "b", Restricted: true}}}},
		{name: "ST-07 NUL in a title", r: resource.Resource{Identifier: files, Scopes: []resource.Scope{{Name: "a", Title: "\x00"}}}, want: "control character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := a.Add(t.Context(), tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want one with %q", err, tt.want)
			}
		})
	}
	if list, err := a.List(t.Context()); len(list) != 0 || err != nil || len(events(t, db)) != 0 {
		t.Errorf("a refused resource left something behind: %v, %v", list, err)
	}
	a.AllowHTTP = true
	add(t, a, resource.Resource{Identifier: "http://mcp.internal:8080/mcp"})
}

func scopes(names ...string) resource.Resource {
	r := resource.Resource{Identifier: files}
	for _, n := range names {
		r.Scopes = append(r.Scopes, resource.Scope{Name: n})
	}
	return r
}

func TestAdminUpdate(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		a := newAdmin(db)
		before := add(t, a, resource.Resource{Identifier: files, Name: "Files"})
		add(t, a, resource.Resource{Identifier: mail, Default: true})
		got, err := a.Update(t.Context(), files+"/", func(r *resource.Resource) error {
			r.Name, r.Default, r.Identifier = "Documents", true, "https://evil.example"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		before.Name, before.Default = "Documents", true
		if diff := cmp.Diff(before, got); diff != "" {
			t.Errorf("updated resource:\n%s", diff)
		}
		if m, err := a.Get(t.Context(), mail); err != nil || m.Default {
			t.Errorf("the former default keeps its mark (%v)", err)
		}
		refused := errors.New("no")
		if _, err := a.Update(t.Context(), files, func(*resource.Resource) error { return refused }); !errors.Is(err, refused) {
			t.Errorf("err = %v, want the change's own", err)
		}
		if _, err := a.Update(t.Context(), "https://other.example", func(*resource.Resource) error { return nil }); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown resource: err = %v, want ErrNotFound", err)
		}
		// two added, one updated, one that lost the default mark by it
		if n := len(events(t, db)); n != 4 {
			t.Errorf("D35: %d events, want 4", n)
		}
	})
}

func TestAdminRemove(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		ctx := t.Context()
		a := newAdmin(db)
		add(t, a, resource.Resource{Identifier: files})
		add(t, a, resource.Resource{Identifier: mail})
		for i, id := range []string{files, files, mail} {
			g := grant.Grant{ID: fmt.Sprintf("%032x", i), ClientID: "c", Subject: "s", Resource: id, Scopes: []string{"a"}, Generation: 1,
				Salt: make([]byte, 32), CreatedAt: t0, CodeExpiresAt: t0.Add(time.Minute), ExpiresAt: t0.Add(time.Hour)}
			if err := db.CreateGrant(ctx, g); err != nil {
				t.Fatal(err)
			}
			if err := db.PutConsent(ctx, consent.Consent{Subject: "s", ClientID: "c", RedirectURI: "https://c.example", Resource: id,
				Scopes: []string{"a"}, CreatedAt: t0, UpdatedAt: t0}); err != nil {
				t.Fatal(err)
			}
		}
		done, err := a.Remove(ctx, files+"/")
		if err != nil || done.GrantsEnded != 2 || done.Resource.Identifier != files {
			t.Fatalf("Remove = %+v, %v", done, err)
		}
		for i, ended := range []bool{true, true, false} {
			g, err := db.GetGrant(ctx, fmt.Sprintf("%032x", i))
			if err != nil || g.EndedAt.IsZero() == ended || (g.Salt == nil) != ended {
				t.Errorf("grant %d: ended at %v with %d bytes of salt, want ended %v (%v)", i, g.EndedAt, len(g.Salt), ended, err)
			}
			if ended && g.EndReason != grant.ReasonResource {
				t.Errorf("grant %d: reason %q", i, g.EndReason)
			}
		}
		if _, err := db.GetConsent(ctx, "s", "c", "https://c.example", files); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("consent for the removed resource: %v, want ErrNotFound", err)
		}
		if _, err := db.GetConsent(ctx, "s", "c", "https://c.example", mail); err != nil {
			t.Errorf("consent for the other resource: %v", err)
		}
		if _, err := a.Remove(ctx, files); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("again: err = %v, want ErrNotFound", err)
		}
		g := resource.Registry{Store: db, Issuer: issuer}
		if _, err := g.Find(ctx, []string{files}); oauth.Code(err) != "invalid_target" {
			t.Errorf("Find after Remove: %v", err)
		}
	})
}

// TestST07Lookup: whatever a client sends as resource is a parameter, never SQL.
func TestST07Lookup(t *testing.T) {
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		add(t, newAdmin(db), resource.Resource{Identifier: files})
		for _, key := range []string{"' OR '1'='1", `"; DROP TABLE resources; --`, "%", "_", files + "'"} {
			if _, err := db.GetResource(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("GetResource(%q) = %v, want ErrNotFound", key, err)
			}
		}
		if list, err := db.ListResources(t.Context()); len(list) != 1 || err != nil {
			t.Errorf("resources = %v, %v", list, err)
		}
	})
}

func TestFetchClaims(t *testing.T) {
	var doc string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, doc) }))
	t.Cleanup(srv.Close)
	doc = `{"resource":"` + srv.URL + `/mcp","authorization_servers":["` + issuer + `"],"resource_name":"Files",
		"scopes_supported":["a","offline_access","b c","a","b"]}`
	got, err := resource.FetchClaims(t.Context(), nil, srv.URL+"/mcp", issuer)
	want := resource.Claims{Name: "Files", Scopes: []string{"a", "b"}, ListsIssuer: true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("FetchClaims: %v\n%s", err, diff)
	}
	doc = `{"resource":"` + srv.URL + `/mcp","resource_name":"a\u202eb","authorization_servers":["https://other.example"]}`
	got, err = resource.FetchClaims(t.Context(), nil, srv.URL+"/mcp", issuer)
	if diff := cmp.Diff(resource.Claims{}, got); diff != "" || err != nil {
		t.Errorf("a name that cannot be shown: %v\n%s", err, diff)
	}
	doc = `{"resource":"https://evil.example"}`
	if got, err = resource.FetchClaims(t.Context(), nil, srv.URL+"/mcp", issuer); err == nil {
		t.Errorf("MM-10 document of another resource: %+v", got)
	}
}

// Two operators, or two processes, change one resource at the same time:
// neither writes back what the other has changed.
func TestD18_ChangesOfAResourceMeet(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		ctx, a := t.Context(), newAdmin(db)
		add(t, a, resource.Resource{Identifier: mail, Name: "Mail", Default: true})
		add(t, a, resource.Resource{Identifier: files, Scopes: []resource.Scope{{Name: "files:write"}}})
		update := func(what, identifier string, change func(*resource.Resource)) {
			if _, err := a.Update(ctx, identifier, func(r *resource.Resource) error { change(r); return nil }); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		for round := range 25 {
			name, mailName := fmt.Sprintf("Files %d", round), fmt.Sprintf("Mail %d", round)
			update("reset", files, func(r *resource.Resource) { r.Default, r.Scopes[0].Restricted = false, false })
			update("reset", mail, func(r *resource.Resource) { r.Default = true })
			var all sync.WaitGroup
			all.Go(func() { update("name", files, func(r *resource.Resource) { r.Name = name }) })
			all.Go(func() { update("restrict", files, func(r *resource.Resource) { r.Scopes[0].Restricted = true }) })
			all.Go(func() { update("make default", files, func(r *resource.Resource) { r.Default = true }) })
			all.Go(func() { update("name the old default", mail, func(r *resource.Resource) { r.Name = mailName }) })
			all.Wait()
			f, err := a.Get(ctx, files)
			if err != nil || f.Name != name || !f.Scopes[0].Restricted || !f.Default {
				t.Fatalf("round %d: %+v, %v; want the name %q, the scope restricted, the default", round, f, err, name)
			}
			if m, err := a.Get(ctx, mail); err != nil || m.Name != mailName || m.Default {
				t.Fatalf("round %d: %+v, %v; want the name %q and no default", round, m, err, mailName)
			}
		}
	})
}
