//go:build unix

package stdio_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// asRevision sends a request that names this revision in header and body.
func (c *client) asRevision(version string) *http.Response {
	c.f.t.Helper()
	c.version = version
	req := c.request(c.f.t.Context(), http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ann"},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, version))
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", "greet")
	return c.do(req)
}

// served asks as an ordinary client of 2026-07-28, and returns the number of the
// process that has answered.
func served(t *testing.T, c *client) string {
	t.Helper()
	resp := c.do(c.ask(t.Context(), "1", "pid", "x", ""))
	m := only(t, resp)
	if resp.StatusCode != http.StatusOK || m.Error != nil {
		t.Fatalf("a client of 2026-07-28 = %s, %+v; want an answer", resp.Status, m.Error)
	}
	return string(m.Result)
}

// turnedAway asks in the same way, and wants the answer of an old server.
func turnedAway(t *testing.T, c *client) {
	t.Helper()
	resp := c.do(c.ask(t.Context(), "1", "pid", "x", ""))
	if m := only(t, resp); resp.StatusCode != http.StatusBadRequest || m.Error == nil || m.Error.Code != -32022 {
		t.Fatalf("a client of a server that is old = %s, %+v; want 400 and -32022", resp.Status, m.Error)
	}
}

// One client's odd revision is his own affair: the others are served as before.
func TestOddRevisionLocksNobodyOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version string
		children      int // that the request starts
	}{
		{"no date", "zzz", 0},
		{"a digit", "9", 0},
		{"a longer one", "2026-07-28x", 0},
		{"no day of the calendar", "2026-99-99", 0},
		{"wide digits", "３", 0},
		{"thousands of digits", strings.Repeat("9", 5000), 0},
		{"a revision to come", "2099-01-01", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, []string{"strict"})
			if resp := f.modern("u_odd").asRevision(tt.version); tt.children == 0 && resp.StatusCode != http.StatusBadRequest {
				t.Errorf("revision %.20q = %s, want 400", tt.version, resp.Status)
			}
			if n := f.bridge.Children(); n != tt.children {
				t.Errorf("%d children, want %d", n, tt.children)
			}
			served(t, f.modern("u_1"))
		})
	}
}

// What is no answer about the revision holds for nobody else: a child that is slow
// to start, or cannot work for its subject, says nothing about the command.
func TestUnclearAnswerLocksNobodyOut(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"u_silent", "u_broken"} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, []string{"moody"})
			f.bridge.SetTimes(time.Minute, 50*time.Millisecond)
			turnedAway(t, f.modern(subject))
			f.bridge.SetTimes(time.Minute, time.Minute)
			served(t, f.modern("u_1"))
		})
	}
}

// A child that runs has shown what it speaks: it goes on, whatever another says.
func TestOlderRevisionCutsNoRunningChild(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"moody"})
	c := f.modern("u_1")
	pid := served(t, c)
	turnedAway(t, f.modern("u_old"))
	if now := served(t, c); now != pid {
		t.Errorf("process %s became %s", pid, now)
	}
	turnedAway(t, f.modern("u_2")) // that answer is believed for a while
	f.advance(6 * time.Minute)
	served(t, f.modern("u_2"))
}

// Error -32022 names the revisions that there are: whether one of them begins
// without initialize is what counts.
func TestRevisionsOfError32022(t *testing.T) {
	t.Parallel()
	f := newFixture(t, []string{"moody"})
	served(t, f.modern("u_later")) // it says to each request what it makes of it
	served(t, f.modern("u_1"))
	turnedAway(t, f.modern("u_refusing"))
	turnedAway(t, f.modern("u_2")) // believed for a while
}
