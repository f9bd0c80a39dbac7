package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// refusals are the scenarios in which the client must not go on, and what it says.
var refusals = map[string]string{
	"auth/resource-mismatch":        "refused for safety",
	"auth/iss-supported-missing":    "refused for safety",
	"auth/iss-wrong-issuer":         "refused for safety",
	"auth/iss-unexpected":           "refused for safety",
	"auth/iss-normalized":           "refused for safety",
	"auth/metadata-issuer-mismatch": "refused for safety",
	"auth/scope-retry-limit":        "client: ", // the SDK's words for what the server answered
}

// extensions are the scenarios of extension suites.
var extensions = []string{"auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization",
	"auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer"}

// TestClientScenarios runs the suite's client scenarios of authorization against
// authclient. Every check succeeds, without a warning, and the program ends as it
// should.
func TestClientScenarios(t *testing.T) {
	t.Parallel()
	launch.InstallNode(t)
	binary := launch.Build(t, "test/conformance/client")
	for _, tt := range []struct {
		name string
		runs [][]string
		want int
	}{
		{"2025-03-26", [][]string{{"--suite", "backcompat"}}, 2},
		{"2025-11-25", [][]string{{"--suite", "auth", "--spec-version", "2025-11-25"}}, 14},
		// the suite "auth" has only those that 2025-11-25 had too; "all" has others
		// besides, about what the SDK does
		{"2026-07-28", [][]string{{"--suite", "all", "--spec-version", "2026-07-28"}}, 25},
		// without a version it runs on the wire of 2025-11-25, and with one it is empty
		{"extensions", [][]string{{"--suite", "extensions"}}, 6},
		{"extensions on 2026-07-28", each(extensions), 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var runs sync.WaitGroup
			for _, args := range tt.runs {
				runs.Go(func() { runClientSuite(t, binary, dir, args...) })
			}
			runs.Wait()
			wantOutcomes(t, dir, tt.want)
		})
	}
}

// each runs scenarios by name on 2026-07-28.
func each(scenarios []string) [][]string {
	var runs [][]string
	for _, s := range scenarios {
		runs = append(runs, []string{"--scenario", s, "--spec-version", "2026-07-28", "--force"})
	}
	return runs
}

// outcome is what a scenario's folder holds.
type outcome struct {
	checks         []result
	stdout, stderr string
}

// runClientSuite runs the suite once; the results are in dir.
func runClientSuite(t *testing.T, binary, dir string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{suite, "client", "--command", binary, "--output-dir", dir}, args...)
	out, err := exec.CommandContext(ctx, launch.Node, args...).CombinedOutput()
	if err != nil && !slices.Contains(args, "all") {
		t.Errorf("the suite with %v ended with %v:\n%s", args, err, out)
	}
}

// clientFolder is where a scenario's results are: auth/<scenario>-<time>.
var clientFolder = regexp.MustCompile(`^(.+)-\d{4}-\d\d-\d\dT[^/]+$`)

// readOutcomes reads the folders of the scenarios of authorization.
func readOutcomes(dir string) (map[string]outcome, error) {
	outcomes := map[string]outcome{}
	return outcomes, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		folder := filepath.Dir(path)
		name, err := filepath.Rel(dir, folder)
		if err != nil {
			return err
		}
		m := clientFolder.FindStringSubmatch(filepath.ToSlash(name))
		if m == nil {
			return fmt.Errorf("results are in a folder %q", name)
		}
		var o outcome
		for file, into := range map[string]*string{"stdout.txt": &o.stdout, "stderr.txt": &o.stderr} {
			b, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil {
				return err
			}
			*into = string(b)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b, &o.checks); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if strings.HasPrefix(m[1], "auth/") {
			outcomes[m[1]] = o
		}
		return nil
	})
}

// wantOutcomes demands that each of n scenarios was run to its proper end and that
// all its checks succeed.
func wantOutcomes(t *testing.T, dir string, n int) {
	t.Helper()
	outcomes, err := readOutcomes(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != n {
		t.Errorf("%d scenarios, want %d", len(outcomes), n)
	}
	for scenario, o := range outcomes {
		passed := slices.ContainsFunc(o.checks, func(c result) bool { return c.Status == "SUCCESS" })
		for _, c := range o.checks {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				t.Errorf("%s: %s is %s: %s", scenario, c.ID, c.Status, c.ErrorMessage)
			}
		}
		if !passed {
			t.Errorf("%s: no check succeeded", scenario)
		}
		refusal, refuses := refusals[scenario]
		if done := strings.TrimSpace(o.stdout) == "done"; done == refuses || !strings.Contains(o.stderr, refusal) {
			t.Errorf("%s: the client finished: %v, and said:\n%s", scenario, done, o.stderr)
		}
	}
}
