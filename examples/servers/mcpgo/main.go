// Command mcpgo is the notes server of examples/mcpserver on mark3labs/mcp-go.
// What protects it stands between the marks below.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	// protect:begin
	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpgo"
	// protect:end
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9100", "`address` to listen on")
	issuer := flag.String("issuer", "http://localhost:8414", "issuer `URL` of the authorization server")
	resource := flag.String("resource", "http://127.0.0.1:9100/mcp", "resource `URI`: the URL that people give their MCP client")
	flag.Parse()
	handler, err := newHandler(*issuer, *resource)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("Notes, an MCP server, is at %s", *resource)
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler(issuer, resource string) (http.Handler, error) {
	s := server.NewMCPServer("notes", "1.0.0")
	n := &notes{of: map[string][]string{}}
	s.AddTool(mcp.NewTool("list_notes", mcp.WithDescription("List your notes"), mcp.WithReadOnlyHintAnnotation(true),
		mcpgo.Scopes("notes:read"), // protect
	), n.list)
	s.AddTool(mcp.NewTool("add_note", mcp.WithDescription("Add a note"), mcp.WithString("text", mcp.Required()),
		mcpgo.Scopes("notes:write"), // protect
	), n.add)
	// Protect has looked at Host already, and knows the server's public name.
	handler := server.NewStreamableHTTPServer(s, server.WithDisableLocalhostProtection(true))
	// protect:begin
	rs, err := resourceserver.New(resourceserver.Options{Issuer: issuer, Resource: resource, Name: "Notes",
		Scopes: []string{"notes:read"}, Operations: mcpgo.Operations(s)})
	if err != nil {
		return nil, err
	}
	return rs.Protect(handler), nil
	// protect:end
}

// notes keeps each person's notes apart.
type notes struct {
	mu sync.Mutex
	of map[string][]string
}

func (n *notes) list(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token, _ := resourceserver.TokenFromContext(ctx) // always there behind Protect
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
