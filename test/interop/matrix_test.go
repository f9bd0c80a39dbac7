// Package interop drives Ostiary with the clients that people use, on loopback
// ports and through the real pages.
package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

func TestMain(m *testing.M) {
	code := m.Run()
	launch.Cleanup()
	os.Exit(code)
}

// clients are the rows of the table, in its order.
var clients = []string{"sdk-v1", "sdk-v2", "go-sdk", "authclient", "mcp-remote", "inspector", "openid-client", "oauth4webapi"}

// drivers drive the clients.
var drivers = map[string]driver{
	"sdk-v1":        nodeDriver("sdk-v1.mjs"),
	"sdk-v2":        nodeDriver("sdk-v2.mjs"),
	"go-sdk":        driveGoSDK,
	"authclient":    driveAuthclient,
	"mcp-remote":    nodeDriver("mcp-remote.mjs"),
	"inspector":     nodeDriver("inspector.mjs"),
	"openid-client": nodeDriver("openid-client.mjs"),
	"oauth4webapi":  nodeDriver("oauth4webapi.mjs"),
}

// atOnce is how many cells run at the same time: a driver also waits.
const atOnce = 4

// wholeMatrix returns every cell.
func wholeMatrix() (cells []cell) {
	for _, client := range clients {
		for _, form := range forms {
			for _, kind := range kinds {
				for _, situation := range situations {
					cells = append(cells, cell{client, form, kind, situation})
				}
			}
		}
	}
	return cells
}

// TestInteropMatrix drives every client through the real pages and endpoints:
// every pair of factors, or every cell with OSTIARY_SOAK=1.
func TestInteropMatrix(t *testing.T) {
	t.Parallel()
	cells := pairwise(wholeMatrix())
	if os.Getenv("OSTIARY_SOAK") != "" {
		cells = wholeMatrix()
	}
	o := &outcomes{met: map[cell]outcome{}}
	queue := make(chan cell)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for c := range queue {
				o.run(t, c)
			}
		})
	}
	for _, c := range cells {
		queue <- c
	}
	close(queue)
	workers.Wait()
	o.publish(t)
}

// outcome is what came of a cell.
type outcome struct {
	passed bool
	limit  *limitation
}

// outcomes collects them.
type outcomes struct {
	mu  sync.Mutex
	met map[cell]outcome
}

// run runs a cell as a subtest, unless the client has no such option.
func (o *outcomes) run(t *testing.T, c cell) {
	limit := limitationOf(c)
	passed := true
	if limit.runs() {
		ran := false
		passed = t.Run(c.String(), func(t *testing.T) { ran = true; runCell(t, c) })
		if !ran { // -run names others
			return
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.met[c] = outcome{passed: passed, limit: limit}
}

// publish prints the table, and writes it where artefacts are kept.
func (o *outcomes) publish(t *testing.T) {
	t.Helper()
	table := o.table()
	t.Log("\n" + table)
	if root := os.Getenv("OSTIARY_ARTEFACTS"); root != "" {
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "interop-matrix.md"), []byte("# Interop matrix\n\n"+table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// table has a row for each client and kind and a column for each situation; a
// square has a mark for each form of the URL: + passed, . not run this time,
// x failed, a letter is a limitation in words below.
func (o *outcomes) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Marks are for the MCP URLs %s: `+` passed, `x` failed, `.` not run this time, a letter is the client's own limitation.\n\n", strings.Join(forms, ", "))
	fmt.Fprintf(&b, "| %-13s | %-15s |", "client", "kind")
	for _, s := range situations {
		fmt.Fprintf(&b, " %-11s |", s)
	}
	b.WriteString("\n|" + strings.Repeat("-", 15) + "|" + strings.Repeat("-", 17) + "|" + strings.Repeat(strings.Repeat("-", 13)+"|", len(situations)) + "\n")
	for _, client := range clients {
		for _, kind := range kinds {
			fmt.Fprintf(&b, "| %-13s | %-15s |", client, kind)
			for _, situation := range situations {
				fmt.Fprintf(&b, " %-11s |", o.marks(client, kind, situation))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n" + o.counts() + "\n\n")
	for i, l := range limitations {
		fmt.Fprintf(&b, "- %c: %s: %s\n", 'a'+i, l.client, l.words)
	}
	return b.String()
}

func (o *outcomes) marks(client, kind, situation string) string {
	var marks strings.Builder
	for _, form := range forms {
		c := cell{client, form, kind, situation}
		met, ran := o.met[c]
		limit := limitationOf(c)
		switch {
		case ran && !met.passed:
			marks.WriteByte('x')
		case limit != nil && (ran || !limit.runs()):
			marks.WriteByte('a' + byte(slices.IndexFunc(limitations, func(l limitation) bool { return l == *limit })))
		case ran:
			marks.WriteByte('+')
		default:
			marks.WriteByte('.')
		}
	}
	return marks.String()
}

func (o *outcomes) counts() string {
	var passed, failed, limited int
	for _, met := range o.met {
		switch {
		case !met.passed:
			failed++
		case met.limit != nil:
			limited++
		default:
			passed++
		}
	}
	noOption := 0
	for _, c := range wholeMatrix() {
		if !limitationOf(c).runs() {
			noOption++
		}
	}
	return fmt.Sprintf("%d cells of %d: %d passed, %d limitations of the client, %d failed. In %d of all cells the client has no such option.",
		len(o.met), len(wholeMatrix()), passed, limited, failed, noOption)
}

func TestTable(t *testing.T) {
	t.Parallel()
	limited := cell{"sdk-v1", "path", "dcr", "wider"}
	o := &outcomes{met: map[cell]outcome{
		{"sdk-v2", "root", "dcr", "login"}:  {passed: true},
		{"sdk-v2", "slash", "dcr", "login"}: {},
		limited:                             {passed: true, limit: limitationOf(limited)},
	}}
	for _, tt := range []struct{ client, kind, situation, want string }{
		{"sdk-v2", "dcr", "login", "+.x"},
		{"sdk-v1", "dcr", "wider", ".a."},
		{"go-sdk", "private_key_jwt", "login", "bbb"}, // no such option: not run and yet shown
	} {
		if got := o.marks(tt.client, tt.kind, tt.situation); got != tt.want {
			t.Errorf("%s, %s, %s: %q, want %q", tt.client, tt.kind, tt.situation, got, tt.want)
		}
	}
	want := fmt.Sprintf("3 cells of %d: 1 passed, 1 limitations of the client, 1 failed.", len(wholeMatrix()))
	if got := o.counts(); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}
