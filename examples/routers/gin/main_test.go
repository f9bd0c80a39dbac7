package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/examples/internal/notestest"
)

func TestServer(t *testing.T) {
	t.Parallel()
	notestest.Run(t, newHandler, notestest.Version202511, notestest.Version202607)
}

func TestStream(t *testing.T) {
	t.Parallel()
	notestest.RunStream(t, newHandler)
}

// What stands beside the MCP endpoint stays open.
func TestOtherRoutes(t *testing.T) {
	t.Parallel()
	n := notestest.Start(t, newHandler)
	resp, err := http.Get(strings.Replace(n.Resource, "/mcp", "/healthz", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %s", resp.Status)
	}
}
