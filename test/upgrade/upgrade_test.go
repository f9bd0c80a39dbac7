package upgrade

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/pressly/goose/v3"
)

var update = flag.String("update", "", "write the fixture of this version, e.g. v0.3.0")

// released are the fixtures of every release.
func released(t *testing.T) []*fixture {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("fixtures: %v, %v", paths, err)
	}
	var list []*fixture
	for _, path := range paths {
		list = append(list, load(t, path))
	}
	return list
}

// ours is the fixture of this tree, so that what the next release will write can be read.
func ours(t *testing.T) *fixture {
	t.Helper()
	f := makeFixture(t, "this tree")
	if *update != "" {
		f.Version = *update
		f.save(t, "testdata")
	}
	dir := t.TempDir()
	f.save(t, dir)
	return load(t, filepath.Join(dir, f.Version+".json"))
}

// A file that a release applied is never edited: databases have applied it.
func TestReleasedMigrationsAreUnchanged(t *testing.T) {
	t.Parallel()
	sums := fileSums(t)
	for _, f := range released(t) {
		for name, sum := range f.Migrations {
			if sums[name] != sum {
				t.Errorf("%s was changed after %s", name, f.Version)
			}
		}
		if last := slices.Max(slices.Collect(maps.Keys(f.Migrations))); last != slices.Sorted(maps.Keys(sums))[len(f.Migrations)-1] {
			t.Errorf("a migration was put before %s, the last of %s: databases that have it would refuse", last, f.Version)
		}
	}
}

// The database of an earlier version is opened by this one: the schema follows,
// nothing of what it held is changed, and whoever held something goes on.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, f := range append(released(t), ours(t)) {
		for name, newURL := range databases {
			t.Run(f.Version+" "+name, func(t *testing.T) {
				t.Parallel()
				dsn := newURL(t)
				raw := openRaw(t, dsn)
				f.migrate(t, raw, name)
				f.insert(t.Context(), t, raw)

				db := open(t, dsn)
				wantMigrated(t, db, len(fileSums(t))-len(f.Migrations))
				if diff := cmp.Diff(f.columns(f.Rows), f.columns(readRows(t.Context(), t, raw))); diff != "" {
					t.Errorf("migrations changed rows:\n%s", diff)
				}
				f.goesOn(t, f.server(t, db))
			})
		}
	}
}

// A process of the earlier version goes on while others are upgraded, so what it
// writes must fit into the new schema: every new column can be left out.
func TestD24_EarlierVersionWritesIntoTheNewSchema(t *testing.T) {
	t.Parallel()
	for _, f := range released(t) {
		for name, newURL := range databases {
			t.Run(f.Version+" "+name, func(t *testing.T) {
				t.Parallel()
				dsn := newURL(t)
				db := open(t, dsn)
				if _, err := db.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				raw := openRaw(t, dsn)
				f.insert(t.Context(), t, raw)
				f.goesOn(t, f.server(t, db))
			})
		}
	}
}

// goesOn checks that everything the fixture's version gave out works.
func (f *fixture) goesOn(t *testing.T, s *testkit.Server) {
	t.Helper()
	w := &world{Server: s, t: t, person: s.Person()}
	refresh := func(c client, token string) answer {
		t.Helper()
		return w.form("/token", c, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
	}
	keys := testkit.Body(t, get(t, w, "/jwks.json"))
	for i, c := range f.Clients {
		if kid := kidOf(t, c.Access); !strings.Contains(keys, kid) {
			t.Errorf("client %d: key %s of its access token is not published", i, kid)
		}
		again := refresh(c, c.Previous) // the answer was lost: within the retry window the same again
		if again.status != http.StatusOK || again.RefreshToken != c.Refresh {
			t.Errorf("client %d, %s: retry %d %s, same successor %t", i, c.Method, again.status, again.Error, again.RefreshToken == c.Refresh)
		}
		got := refresh(c, c.Refresh)
		if got.status != http.StatusOK || got.RefreshToken == "" || got.RefreshToken == c.Refresh || got.Scope != "files:read files:write" {
			t.Errorf("client %d, %s: refresh %d %s %q", i, c.Method, got.status, got.Error, got.Scope)
		}
		if !strings.Contains(keys, kidOf(t, got.AccessToken)) {
			t.Errorf("client %d: its new token is signed with a key that is not published", i)
		}
	}
	if got := w.redeem(f.Clients[0], f.Code); got.status != http.StatusOK || got.RefreshToken == "" {
		t.Errorf("code from before: %d %s", got.status, got.Error)
	}
	if got := refresh(f.Clients[0], f.Ended); got.Error != "invalid_grant" {
		t.Errorf("the ended grant: %d %q", got.status, got.Error)
	}
	if got := refresh(f.Disabled, f.Disabled.Refresh); got.status == http.StatusOK {
		t.Error("the disabled client got a token")
	}
	if f.Newer != nil {
		f.Newer.goesOn(t, w, f.Clients[0])
	}
	f.personGoesOn(t, w)
	f.idle(t, w)
}

// personGoesOn checks the browser's session, the open consent page, the password
// and what was remembered.
func (f *fixture) personGoesOn(t *testing.T, w *world) {
	t.Helper()
	issuer, err := url.Parse(f.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range f.Cookies {
		w.person.Jar().SetCookies(issuer, []*http.Cookie{{Name: name, Value: value, Path: "/", Secure: true}})
	}
	page, err := w.person.Open(t.Context(), f.Consent)
	if err != nil || page.Form("/consent") == nil {
		t.Fatalf("the open consent page: %v", err)
	}
	if page, err = w.person.Allow(t.Context(), page); err != nil || page.Leaves == nil {
		t.Fatalf("answer of the open consent page: %v", err)
	}
	if got := w.redeem(f.Clients[3], page.Leaves.Query().Get("code")); got.status != http.StatusOK {
		t.Errorf("code after the upgrade: %d %s", got.status, got.Error)
	}
	// the operator's client was allowed before, so nobody is asked
	page, err = w.person.Open(t.Context(), w.authorizeURL(f.Clients[2]))
	if err != nil || page.Leaves == nil || page.Leaves.Query().Get("code") == "" {
		t.Errorf("the consent from before is not remembered: %v", err)
	}
	w.person = w.Person() // a new browser: the password from before
	if code := w.code(f.Clients[1]); code == "" {
		t.Error("no code after signing in with the password from before")
	}
}

// idle checks that clients which registered themselves go when nobody uses them
// for 90 days, and that whoever is connected stays (A20).
func (f *fixture) idle(t *testing.T, w *world) {
	t.Helper()
	token := w.redeem(f.Clients[3], w.code(f.Clients[3])).RefreshToken
	wantRemoved := func(want ...string) {
		t.Helper()
		if _, err := w.App.Idle.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		var gone []string
		for _, id := range append(f.ids(), f.Disabled.ID, f.Idle) {
			if _, err := w.DB.GetClient(t.Context(), id); errors.Is(err, store.ErrNotFound) {
				gone = append(gone, id)
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(gone, want) {
			t.Errorf("%s after the upgrade clients %q are gone, want %q", w.Clock.Now().Sub(f.At), gone, want)
		}
	}
	wantRemoved()
	for range 4 {
		w.Clock.Advance(22 * 24 * time.Hour)
		wantRemoved()
		got := w.form("/token", f.Clients[3], url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
		if token = got.RefreshToken; token == "" {
			t.Fatalf("refresh of the connected client: %d %s", got.status, got.Error)
		}
	}
	w.Clock.Advance(3 * 24 * time.Hour)
	wantRemoved(f.Clients[4].ID, f.Idle)
}

func (f *fixture) ids() []string {
	var ids []string
	for _, c := range f.Clients {
		ids = append(ids, c.ID)
	}
	return ids
}

// migrate applies the fixture's migrations alone.
func (f *fixture) migrate(t *testing.T, raw *sql.DB, database string) {
	t.Helper()
	dir := t.TempDir()
	for name := range f.Migrations {
		b, err := os.ReadFile(filepath.Join(migrationsDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dialect := map[string]goose.Dialect{"sqlite": goose.DialectSQLite3, "postgres": goose.DialectPostgres}[database]
	p, err := goose.NewProvider(dialect, raw, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// server starts this version on the fixture's database, at the fixture's time.
func (f *fixture) server(t *testing.T, db *sqlstore.Store) *testkit.Server {
	t.Helper()
	cfg := config.Default()
	cfg.Issuer, cfg.Secret = f.Issuer, oauth.Secret(f.Secret)
	clock := testkit.NewClock()
	clock.Advance(f.At.Sub(clock.Now()))
	s := &testkit.Server{DB: db, Config: cfg, Clock: clock, Logs: &testkit.Buffer{}, Outbound: testkit.Outbound(t)}
	return s.Again(t)
}

func open(t *testing.T, dsn string) *sqlstore.Store {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: dsn, MaxConns: 4, Synchronous: "NORMAL"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func wantMigrated(t *testing.T, db *sqlstore.Store, pending int) {
	t.Helper()
	for _, want := range []int{pending, 0} {
		if n, err := db.Migrate(t.Context()); err != nil || n != want {
			t.Fatalf("Migrate = %d, %v; want %d", n, err, want)
		}
	}
}

func get(t *testing.T, w *world, path string) *http.Response {
	t.Helper()
	resp, err := w.Client().Get(w.URL(path))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// kidOf returns the key that a JWT says it is signed with.
func kidOf(t *testing.T, token string) string {
	t.Helper()
	head, _, _ := strings.Cut(token, ".")
	b, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		t.Fatal(err)
	}
	var h struct{ KID string }
	if err := json.Unmarshal(b, &h); err != nil || h.KID == "" {
		t.Fatalf("header %s: %v", b, err)
	}
	return h.KID
}
