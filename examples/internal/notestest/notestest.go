// Package notestest holds every example to the same tests: whatever it is built
// on, it is protected in the same way and serves the official Go client in both
// generations of the protocol.
package notestest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/metadata"
	"github.com/ostiary-auth/ostiary/test/testkit/issuer"
)

// Notes is an example server that listens, and the issuer it trusts.
type Notes struct {
	Issuer   *issuer.Issuer
	Resource string
}

// Start serves what newHandler makes until the test ends.
func Start(t *testing.T, newHandler func(issuer, resource string) (http.Handler, error)) *Notes {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	n := &Notes{Issuer: issuer.New(t), Resource: "http://" + server.Listener.Addr().String() + "/mcp"}
	handler, err := newHandler(n.Issuer.URL, n.Resource)
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = handler
	server.Start()
	t.Cleanup(server.Close)
	return n
}

// Revisions of the protocol: with a session, and the first without.
const (
	Version202506 = "2025-06-18"
	Version202511 = "2025-11-25"
	Version202607 = "2026-07-28"
)

// Run tests an example in the revisions that it speaks.
func Run(t *testing.T, newHandler func(issuer, resource string) (http.Handler, error), versions ...string) {
	t.Helper()
	n := Start(t, newHandler)
	t.Run("M1 no token", n.testNoToken)
	t.Run("M3 document", n.testDocument)
	for _, version := range versions {
		t.Run("step-up, "+version, func(t *testing.T) { n.testStepUp(t, version) })
	}
}

// RunStream tests an example that has event streams: its header
// arrives while it is open.
func RunStream(t *testing.T, newHandler func(issuer, resource string) (http.Handler, error)) {
	t.Helper()
	n := Start(t, newHandler)
	c := n.connect(t, Version202511, "u_1", "notes:read")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.Resource, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", c.ID())
	resp, err := (&http.Client{Transport: c}).Do(req) // returns when the header has been flushed
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s, %s; want an event stream", resp.Status, resp.Header.Get("Content-Type"))
	}
}

func (n *Notes) testNoToken(t *testing.T) {
	resp, err := http.Post(n.Resource, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	want := `Bearer resource_metadata="` + n.metadataURL() + `", scope="notes:read"`
	if got := resp.Header.Values("WWW-Authenticate"); resp.StatusCode != http.StatusUnauthorized || len(got) != 1 || got[0] != want {
		t.Errorf("%s, challenge %q; want 401, %q", resp.Status, got, want)
	}
}

func (n *Notes) testDocument(t *testing.T) {
	resp, err := http.Get(n.metadataURL())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := metadata.ParseProtectedResource(body, n.Resource)
	if err != nil || len(doc.AuthorizationServers) != 1 || doc.AuthorizationServers[0] != n.Issuer.URL || doc.ResourceName != "Notes" {
		t.Errorf("document = %+v, %v", doc, err)
	}
}

func (n *Notes) metadataURL() string {
	return strings.Replace(n.Resource, "/mcp", "/.well-known/oauth-protected-resource/mcp", 1)
}

// testStepUp goes through what a person sees: reading works, writing asks for
// more, works with more, and nobody else reads it.
func (n *Notes) testStepUp(t *testing.T, version string) {
	person, other, note := "u_1 "+version, "u_2 "+version, "buy milk for "+version
	reader := n.connect(t, version, person, "notes:read")
	if got := reader.call(t, "list_notes", nil); strings.Contains(got, note) {
		t.Errorf("there is a note before one was written: %s", got)
	}
	challenge := reader.refused(t, "add_note", map[string]any{"text": note})
	for _, part := range []string{"Bearer ", `error="insufficient_scope"`, `scope="notes:read notes:write"`, `resource_metadata="` + n.metadataURL() + `"`} {
		if !strings.Contains(challenge, part) {
			t.Errorf("SC-09 challenge %q does not contain %s", challenge, part)
		}
	}
	writer := n.connect(t, version, person, "notes:read notes:write")
	writer.call(t, "add_note", map[string]any{"text": note})
	// The SDK's client ends its session after a 403 that it was not told how to answer.
	reader = n.connect(t, version, person, "notes:read")
	if got := reader.call(t, "list_notes", nil); !strings.Contains(got, note) {
		t.Errorf("the note is lost: %s", got)
	}
	if got := n.connect(t, version, other, "notes:read").call(t, "list_notes", nil); strings.Contains(got, note) {
		t.Errorf("somebody else reads it: %s", got)
	}
}

// client is a connected MCP client that remembers the last challenge it got.
type client struct {
	*mcp.ClientSession
	token     string
	challenge string
}

// RoundTrip adds the token.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusForbidden {
		c.challenge = resp.Header.Get("WWW-Authenticate")
	}
	return resp, err
}

func (n *Notes) connect(t *testing.T, version, subject, scope string) *client {
	t.Helper()
	c := &client{token: n.Issuer.Token(t, n.Resource, subject, scope)}
	// DisableStandaloneSSE leaves one request at a time, so that challenge needs no lock.
	transport := &mcp.StreamableClientTransport{Endpoint: n.Resource, HTTPClient: &http.Client{Transport: c}, DisableStandaloneSSE: true}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = session.Close() })
	c.ClientSession = session
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the server speaks %s, want %s", got, version)
	}
	return c
}

// call calls a tool and returns its text.
func (c *client) call(t *testing.T, tool string, arguments map[string]any) string {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil || result.IsError || len(result.Content) != 1 {
		t.Fatalf("%s: %+v, %v", tool, result, err)
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// refused calls a tool that the token does not open, and returns the challenge.
func (c *client) refused(t *testing.T, tool string, arguments map[string]any) string {
	t.Helper()
	if result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments}); err == nil {
		t.Fatalf("%s was served: %+v", tool, result)
	}
	return c.challenge
}
