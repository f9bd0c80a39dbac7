package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/examples/internal/notestest"
)

func TestServer(t *testing.T) {
	t.Parallel()
	// The SDK serves 2026-07-28 only where it keeps no sessions.
	notestest.Run(t, newHandler, notestest.Version202506, notestest.Version202511)
}

// A server at the root of its origin is one, too.
func TestRootResource(t *testing.T) {
	t.Parallel()
	n := notestest.Start(t, func(issuer, resource string) (http.Handler, error) {
		return newHandler(issuer, strings.TrimSuffix(resource, "/mcp"))
	})
	root := strings.TrimSuffix(n.Resource, "/mcp")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, root, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+n.Issuer.Token(t, root, "u_1", "notes:read"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("initialize: %s, session %q", resp.Status, resp.Header.Get("Mcp-Session-Id"))
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	notestest.RunStream(t, newHandler)
}
