// Command mcpserver is a small MCP server that keeps notes, protected by
// Ostiary: list_notes needs the scope notes:read, add_note needs notes:write.
// Each person sees their own notes only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	// protect:begin
	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
	// protect:end
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9100", "`address` to listen on")
	issuer := flag.String("issuer", "http://localhost:8414", "issuer `URL` of the authorization server")
	resource := flag.String("resource", "http://127.0.0.1:9100/mcp", "resource `URI`: the URL that people give their MCP client")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *issuer, *resource); err != nil {
		fmt.Fprintln(os.Stderr, "mcpserver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, issuer, resource string) error {
	handler, err := newHandler(issuer, resource)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	printWelcome(issuer, resource)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close() // open streams would keep Shutdown waiting
	}()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newHandler makes the MCP server. What protects it stands between the marks.
func newHandler(issuer, resource string) (http.Handler, error) {
	u, err := url.Parse(resource)
	if err != nil {
		return nil, err
	}
	server := newServer(&notebook{})
	getServer := func(*http.Request) *mcp.Server { return server }
	mux := http.NewServeMux()
	mux.Handle(endpointPath(u), mcp.NewStreamableHTTPHandler(getServer, nil))
	// protect:begin
	rs, err := resourceserver.New(resourceserver.Options{
		Issuer: issuer, Resource: resource, Name: "Notes", Scopes: []string{"notes:read"}, Log: slog.Default(),
		Operations: resourceserver.Tools(map[string][]string{"list_notes": {"notes:read"}, "add_note": {"notes:write"}}),
	})
	if err != nil {
		return nil, err
	}
	return rs.Protect(mcpsdk.Handler(mux)), nil
	// protect:end
}

func endpointPath(resource *url.URL) string {
	if resource.Path == "" || resource.Path == "/" {
		return "/{$}"
	}
	return resource.Path
}

func printWelcome(issuer, resource string) {
	fmt.Printf(`Notes, an MCP server, is at %[2]s
It trusts the authorization server %[1]s

To give its permissions words that people understand, run once:

  ostiary resource add %[2]s --name Notes --scope 'notes:read=Read your notes' --scope 'notes:write=Add notes for you'

Then connect an MCP client to %[2]s
`, issuer, resource)
}
