// Package conformance runs the official MCP conformance suite against Ostiary.
package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

const (
	email    = "ada@example.com"
	password = "correct horse battery staple"
	suite    = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
)

func TestMain(m *testing.M) {
	code := m.Run()
	launch.Cleanup()
	os.Exit(code)
}

// result is one check of the suite as its checks.json has it.
type result struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage,omitempty"`
}

func TestConformance(t *testing.T) {
	t.Parallel()
	launch.InstallNode(t)
	o := launch.ServeOstiary(t, "")
	o.AddUser(t, email, password)
	resource := o.ServeNotes(t)
	metadata := result{ID: "authorization-server-metadata", Status: "SUCCESS"}
	cimd := result{ID: "authorization-server-metadata-cimd", Status: "SUCCESS"}
	grant := result{ID: "authorization-code-grant", Status: "SUCCESS"}
	for _, tt := range []struct {
		version string
		want    map[string][]result
	}{
		{"2025-03-26", map[string][]result{"authorization-server-metadata-endpoint": {metadata}, "authorization-code-grant": {grant}}},
		{"2025-06-18", map[string][]result{"authorization-server-metadata-endpoint": {metadata}, "authorization-code-grant": {grant}}},
		{"2025-11-25", map[string][]result{"authorization-server-metadata-endpoint": {metadata, cimd}, "authorization-code-grant": {grant}}},
		{"2026-07-28", map[string][]result{"authorization-server-metadata-endpoint": {metadata, cimd}, "authorization-code-grant": {grant}}},
	} {
		t.Run(tt.version, func(t *testing.T) {
			port := launch.FreePort(t)
			clientID := addClient(t, o, port)
			got := runSuite(t, tt.version, "--url", o.Issuer, "--client-id", clientID, "--resource", resource, "--port", strconv.Itoa(port))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("scenarios (-want +got):\n%s", d)
			}
		})
	}
}

// addClient registers a public client: the suite sends no secret to a server
// that advertises the method none.
func addClient(t *testing.T, o *launch.Ostiary, port int) string {
	t.Helper()
	out := o.Run(t, "", "client", "add", "--name", "Conformance", "--auth", "none",
		"--redirect-uri", "http://127.0.0.1:"+strconv.Itoa(port)+"/callback", "--json")
	var client struct {
		ClientID string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(out), &client); err != nil || client.ClientID == "" {
		t.Fatalf("client add printed %q: %v", out, err)
	}
	return client.ClientID
}

// runSuite runs all authorization scenarios of a specification version, for the
// second one needs what the first found, and goes to the URL that it prints.
func runSuite(t *testing.T, version string, args ...string) map[string][]result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, launch.Node, append([]string{suite, "authorization", "--spec-version", version, "--output-dir", dir}, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "/authorize?") {
			visit(ctx, t, lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the suite ended with %v:\n%s", err, output.String())
	}
	results, err := readResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// visit is the person at the browser that the suite waits for.
func visit(ctx context.Context, t *testing.T, authorizeURL string) {
	t.Helper()
	person := testkit.NewPerson(email, password, nil)
	to, err := person.Authorize(ctx, strings.TrimSpace(authorizeURL))
	if err == nil {
		err = person.Deliver(ctx, to)
	}
	if err != nil {
		t.Errorf("at the pages: %v", err)
	}
}

// readResults finds each scenario's checks.json; its folder is named
// authorization-<scenario>-<time>, or so.
func readResults(dir string) (map[string][]result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		return nil, err
	}
	results := map[string][]result{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var checks []result
		if err := json.Unmarshal(b, &checks); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		results[scenarioOf(filepath.Base(filepath.Dir(f)))] = checks
	}
	return results, nil
}

func scenarioOf(folder string) string {
	for _, s := range []string{"authorization-server-metadata-endpoint", "authorization-code-grant"} {
		if strings.Contains(folder, s) {
			return s
		}
	}
	return folder
}
