// Package notes is the MCP server of the examples that are about something
// else: it keeps each person's notes apart, and expects to stand behind
// resourceserver's Protect.
package notes

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

type notes struct {
	mu sync.Mutex
	of map[string][]string
}

// New returns the server, with the tools list_notes and add_note.
func New() http.Handler {
	n := &notes{of: map[string][]string{}}
	s := server.NewMCPServer("notes", "1.0.0")
	s.AddTool(mcp.NewTool("list_notes", mcp.WithDescription("List your notes"), mcp.WithReadOnlyHintAnnotation(true)), n.list)
	s.AddTool(mcp.NewTool("add_note", mcp.WithDescription("Add a note"), mcp.WithString("text", mcp.Required())), n.add)
	return server.NewStreamableHTTPServer(s, server.WithDisableLocalhostProtection(true)) // Protect looks at Host
}

func (n *notes) list(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token, _ := resourceserver.TokenFromContext(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	return mcp.NewToolResultText("Your notes: " + strings.Join(n.of[token.Subject], "; ")), nil
}

func (n *notes) add(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text, err := request.RequireString("text")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	token, _ := resourceserver.TokenFromContext(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[token.Subject] = append(n.of[token.Subject], text)
	return mcp.NewToolResultText("Noted."), nil
}
