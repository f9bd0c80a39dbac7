package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
)

// An operator who is about to vouch for a look-alike is told, and asked.
func TestVerifyAsksAboutLookAlikes(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		c := newCLI([]string{"OSTIARY_STATE_DIR=" + state}, strings.NewReader(""), &out, &out)
		code := c.run(t.Context(), args)
		return code, out.String()
	}
	if code, out := run("migrate", "up"); code != 0 {
		t.Fatal(out)
	}
	if err := os.Chmod(filepath.Join(state, "ostiary.db"), 0o600); err != nil { // main's umask is not a test's
		t.Fatal(err)
	}
	const id = "https://evil.example/client.json"
	c := newCLI([]string{"OSTIARY_STATE_DIR=" + state}, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	err := c.withStore(t.Context(), func(_ *config.Config, db *sqlstore.Store) error {
		return db.CreateClient(t.Context(), registration.Client{ID: id, Kind: registration.KindCIMD, CreatedAt: time.Now(), UpdatedAt: time.Now(), DocumentHash: "h2",
			Metadata: registration.ClientMetadata{ClientName: "CIaude Code", RedirectURIs: []string{"http://127.0.0.1/cb"}, TokenEndpointAuthMethod: "none"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, out := run("client", "show", id); code != 0 || !strings.Contains(out, `it looks like "Claude Code", which is another app`) ||
		!strings.Contains(out, "not verified") {
		t.Errorf("show: %d\n%s", code, out)
	}
	if code, out := run("client", "verify", id); code != 2 || !strings.Contains(out, `looks like "Claude Code"`) {
		t.Errorf("verify, nobody there to ask: %d\n%s", code, out)
	}
	if code, out := run("client", "show", id, "--json"); code != 0 || !strings.Contains(out, `"verified": false`) || !strings.Contains(out, `"warning": "looks like`) {
		t.Errorf("after a verify that was not confirmed: %d\n%s", code, out)
	}
	if code, out := run("client", "show", id); code != 0 || !regexp.MustCompile(`(?m)^hash +h2$`).MatchString(out) {
		t.Errorf("show: %d\n%s", code, out)
	}
	for _, how := range []string{"--json=false", "--json"} {
		args := []string{"client", "verify", id, "--hash", "h1", "--yes", how}
		if code, out := run(args...); code != 1 || !strings.Contains(out, "changed since you looked at it, so it was not verified") ||
			!strings.Contains(out, "hint: look again: ostiary client show "+id) {
			t.Errorf("%q of a client that changed: %d\n%s", args, code, out)
		}
	}
	if code, out := run("client", "show", id, "--json"); code != 0 || !strings.Contains(out, `"verified": false`) || !strings.Contains(out, `"hash": "h2"`) {
		t.Errorf("after it: %d\n%s", code, out)
	}
	if code, out := run("client", "verify", id, "--yes", "--hash", "h2"); code != 0 || !strings.Contains(out, "verified") {
		t.Errorf("verify --yes: %d\n%s", code, out)
	}
	if code, out := run("client", "list"); code != 0 || !strings.Contains(out, "enabled  verified") {
		t.Errorf("list: %d\n%s", code, out)
	}
	err = c.withStore(t.Context(), func(_ *config.Config, db *sqlstore.Store) error {
		client, err := db.GetClient(t.Context(), id)
		if err != nil {
			return err
		}
		client.VerifiedAt, client.VerifiedUntil = time.Unix(0, 0), time.Unix(60, 0)
		return db.UpdateClient(t.Context(), client)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"client", "list"}, {"client", "show", id}} {
		if code, out := run(args...); code != 0 || !strings.Contains(out, "  changed since verified at 1970-01-01T00:00:00Z") || args[1] == "show" && !strings.Contains(out, "it looks like") {
			t.Errorf("%q of a verified client that changed: %d\n%s", args, code, out)
		}
	}
	if code, out := run("client", "show", id, "--json"); code != 0 || !strings.Contains(out, `"verified": false`) ||
		!strings.Contains(out, `"verified_until": "1970-01-01T00:01:00.000Z"`) {
		t.Errorf("show --json of a verified client that changed: %d\n%s", code, out)
	}
	if code, out := run("client", "update", id, "--name", "Claude"); code != 1 || !strings.Contains(out, "metadata document") ||
		!strings.Contains(out, "hint: nothing was changed; ostiary client show "+id) {
		t.Errorf("update of what the document says: %d\n%s", code, out)
	}
	if code, out := run("client", "block", id, "--yes"); code != 0 || !strings.Contains(out, "blocked "+id) {
		t.Errorf("block: %d\n%s", code, out)
	}
	if code, out := run("client", "remove", id, "--yes"); code != 0 {
		t.Errorf("remove: %d\n%s", code, out)
	}
}
