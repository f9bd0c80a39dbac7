package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
)

// A20: list and show tell when a client that nobody uses will be removed, and the
// list can be of those that are next.
func TestA20_ListAndShowTellWhenClientsExpire(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	command := func() (*cli, *bytes.Buffer) {
		var out bytes.Buffer
		c := newCLI([]string{"OSTIARY_STATE_DIR=" + state}, strings.NewReader(""), &out, &out)
		c.now = func() time.Time { return now }
		return c, &out
	}
	run := func(args ...string) string {
		t.Helper()
		c, out := command()
		if code := c.run(t.Context(), args); code != exitDone {
			t.Fatalf("%q: exit code %d\n%s", args, code, out)
		}
		return out.String()
	}
	run("migrate", "up")
	if err := os.Chmod(filepath.Join(state, "ostiary.db"), 0o600); err != nil { // main's umask is not a test's
		t.Fatal(err)
	}
	c, _ := command()
	err := c.withStore(t.Context(), func(_ *config.Config, db *sqlstore.Store) error {
		for id, age := range map[string]int{"aaaaaaaaaaaaaaaaaaaaaaaaaa": 1, "bbbbbbbbbbbbbbbbbbbbbbbbbb": 85} {
			at := now.AddDate(0, 0, -age)
			if err := db.CreateClient(t.Context(), registration.Client{ID: id, Kind: registration.KindDynamic, CreatedAt: at, UpdatedAt: at,
				Metadata: registration.ClientMetadata{ClientName: "Quill", RedirectURIs: []string{"http://127.0.0.1/cb"}, TokenEndpointAuthMethod: "none"}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for want, got := range map[string]string{
		"2027-02-18":              run("client", "list"),
		"2026-11-26":              run("client", "list", "--expires-within", "7d"),
		"until 2026-11-26T12:00:": run("client", "show", "bbbbbbbbbbbbbbbbbbbbbbbbbb"),
		`"expires_at": "2027-02-18T12:00:00.000Z"`: run("client", "show", "aaaaaaaaaaaaaaaaaaaaaaaaaa", "--json"),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if got := run("client", "list", "--expires-within", "7d"); strings.Contains(got, "aaaaaaaaaaaaaaaaaaaaaaaaaa") {
		t.Errorf("one that has time is among those that are next:\n%s", got)
	}
}
