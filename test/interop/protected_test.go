package interop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// servers are the MCP servers that a few lines of resourceserver protect.
var servers = []struct{ name, pkg string }{
	{"go-sdk", "examples/mcpserver"},
	{"mcp-go", "examples/servers/mcpgo"},
	{"net/http", "examples/servers/nethttp"},
}

// protectedClients are the clients of each server, with the steps that they pass:
// sdk-v1 steps up with the help of the program that it is in (sdk-v1.mjs).
var protectedClients = []struct {
	name  string
	steps []string
}{
	{"sdk-v1", []string{"login", "tool", "refused", "wider"}},
	{"sdk-v2", []string{"login", "tool", "wider"}},
	{"go-sdk", []string{"login", "tool", "wider"}},
}

// TestProtectedServers has each client find the authorization server by the 401 of
// each MCP server, register, have the person sign in and allow, call a tool, and
// step up for one that needs a second scope: real processes of the servers and of
// ostiary.
func TestProtectedServers(t *testing.T) {
	t.Parallel()
	launch.InstallNode(t)
	o := launch.ServeOstiary(t, "")
	for _, client := range protectedClients {
		o.AddUser(t, client.name+"@example.com", password) // whose notes are their own
	}
	results := map[string]string{}
	var mu sync.Mutex
	var cells sync.WaitGroup
	for _, server := range servers {
		mcpURL := launch.ServeExample(t, server.pkg, o.Issuer, "/mcp")
		o.Run(t, "", "resource", "add", mcpURL, "--name", "Notes", "--scope", "notes:read=Read your notes", "--scope", "notes:write=Add notes for you")
		cells.Go(func() {
			for _, client := range protectedClients {
				mark := "x"
				t.Run(server.name+"/"+client.name, func(t *testing.T) {
					visits := stepUp(t, o.Issuer, mcpURL, client.name, client.steps)
					mark = strings.Join(client.steps, ", ")
					checkVisits(t, mcpURL, visits)
				})
				mu.Lock()
				results[server.name+client.name] = mark
				mu.Unlock()
			}
		})
	}
	cells.Wait()
	publishProtected(t, results)
}

// stepUp drives a client and returns the authorization requests that the person
// opened.
func stepUp(t *testing.T, issuer, mcpURL, client string, steps []string) []url.Values {
	t.Helper()
	o := order{Kind: "dcr", Situation: "stepup", MCPURL: mcpURL, Issuer: issuer}
	return drive(t, drivers[client], o, client+"@example.com", steps)
}

// drive has a client do what the order says, with this person at the browser.
func drive(t *testing.T, client driver, o order, email string, steps []string) []url.Values {
	t.Helper()
	b := &browser{person: testkit.NewPerson(email, password, nil)}
	control := httptest.NewServer(b)
	t.Cleanup(control.Close)
	o.ControlURL = control.URL
	got := client(t, o)
	if d := cmp.Diff(steps, got.steps); d != "" || got.said != "" {
		t.Fatalf("steps (-want +got):\n%s%s", d, got.said)
	}
	return b.visited()
}

// checkVisits looks at what the client asked the person for: little at first, and
// then what the tool needs, each time for this server alone.
func checkVisits(t *testing.T, mcpURL string, visits []url.Values) {
	t.Helper()
	if len(visits) != 2 {
		t.Fatalf("the person was asked %d times, want 2", len(visits))
	}
	for i, wide := range []bool{false, true} {
		scopes := strings.Fields(visits[i].Get("scope"))
		if got := slices.Contains(scopes, "notes:write"); got != wide {
			t.Errorf("request %d asks for %q", i+1, scopes)
		}
		if got := visits[i]["resource"]; len(got) != 1 || got[0] != mcpURL {
			t.Errorf("request %d is for %q", i+1, got)
		}
	}
}

// browser is the control of a driver that needs no more than a person: POST
// /open with an authorization URL.
type browser struct {
	person *testkit.Person
	mu     sync.Mutex
	visits []url.Values
}

// ServeHTTP implements http.Handler.
func (b *browser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/open" {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil {
		err = b.open(r.Context(), string(body))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

func (b *browser) open(ctx context.Context, rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.visits = append(b.visits, u.Query())
	b.mu.Unlock()
	to, err := b.person.Authorize(ctx, rawURL)
	if err != nil {
		return err
	}
	return b.person.Deliver(ctx, to)
}

func (b *browser) visited() []url.Values {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.visits)
}

// publishProtected prints the table, and writes it where artefacts are kept.
func publishProtected(t *testing.T, results map[string]string) {
	t.Helper()
	var table strings.Builder
	table.WriteString("| server   |")
	for _, client := range protectedClients {
		fmt.Fprintf(&table, " %-27s |", client.name)
	}
	table.WriteString("\n|----------|" + strings.Repeat(strings.Repeat("-", 29)+"|", len(protectedClients)) + "\n")
	for _, server := range servers {
		fmt.Fprintf(&table, "| %-8s |", server.name)
		for _, client := range protectedClients {
			fmt.Fprintf(&table, " %-27s |", results[server.name+client.name])
		}
		table.WriteString("\n")
	}
	table.WriteString("\nrefused: the SDK answers 403 insufficient_scope with a refresh and gives up; its program asks for authorization itself.\n")
	t.Log("\n" + table.String())
	if root := os.Getenv("OSTIARY_ARTEFACTS"); root != "" {
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "protected-servers.md"), []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
