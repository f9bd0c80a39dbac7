// Package interop drives Ostiary with the clients that people use, as
// processes on loopback ports and through the real pages.
package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

const (
	email    = "ada@example.com"
	password = "correct horse battery staple"
	node     = "node_modules/node/bin/node"
)

func TestMain(m *testing.M) {
	code := m.Run()
	launch.Cleanup()
	os.Exit(code)
}

// databases are the two that every client must work on.
var databases = map[string]func(t testing.TB) string{
	"sqlite":   func(testing.TB) string { return "" },
	"postgres": testkit.EmptyPostgresURL,
}

// servers starts an authorization server with one account, and the MCP server
// behind it.
func servers(t *testing.T, database string) (o *launch.Ostiary, mcpURL string) {
	t.Helper()
	o = launch.ServeOstiary(t, database)
	o.AddUser(t, email, password)
	return o, o.ServeNotes(t)
}

func TestInterop_JavaScript(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		driver string
		steps  []string
	}{
		{"sdk-v1.mjs", []string{"challenge", "callback", "token", "tool", "refresh", "revoke"}},
		{"sdk-v2.mjs", []string{"challenge", "callback", "token", "tool", "refresh", "challenge", "callback", "step_up", "revoke"}},
		{"oauth4webapi.mjs", []string{"challenge", "discovery", "registration", "callback", "token", "tool", "refresh", "revoke"}},
	} {
		for name, database := range databases {
			t.Run(strings.TrimSuffix(tt.driver, ".mjs")+"/"+name, func(t *testing.T) {
				t.Parallel()
				installNode(t)
				_, mcpURL := servers(t, database(t))
				if d := cmp.Diff(tt.steps, runDriver(t, tt.driver, mcpURL)); d != "" {
					t.Errorf("steps (-want +got):\n%s", d)
				}
			})
		}
	}
}

// runDriver returns the steps that the driver passed.
func runDriver(t *testing.T, driver, mcpURL string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, driver)
	cmd.Env = append(os.Environ(), "MCP_URL="+mcpURL, "PERSON_EMAIL="+email, "PERSON_PASSWORD="+password)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s%s", driver, err, stdout.String(), stderr.String())
	}
	var steps []string
	for lines := bufio.NewScanner(&stdout); lines.Scan(); {
		var line struct{ Step string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("%s printed %q", driver, lines.Text())
		}
		steps = append(steps, line.Step)
	}
	return steps
}

var install sync.Once

// installNode installs what package-lock.json says unless it is there.
func installNode(t *testing.T) {
	t.Helper()
	install.Do(func() {
		if _, err := os.Stat(node); err == nil {
			return
		}
		if out, err := exec.Command("npm", "ci").CombinedOutput(); err != nil {
			t.Errorf("npm ci: %v\n%s", err, out)
		}
	})
	if _, err := os.Stat(node); err != nil {
		t.Fatalf("node is not installed; run npm ci in test/interop: %v", err)
	}
}
