// Command gosdk calls a tool of a protected MCP server with the client of the official
// Go SDK. What has to do with authorization stands between the marks.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	// authorize:begin
	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/filestore"
	// authorize:end
)

func main() {
	dir, err := os.UserConfigDir()
	if err != nil {
		log.Fatal(err)
	}
	tokens := flag.String("tokens", filepath.Join(dir, "ostiary-example", "tokens"), "`directory` for tokens")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: gosdk [--tokens directory] MCP_URL tool")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := authclient.Options{Server: flag.Arg(0), Authorizer: &authclient.Loopback{}}
	if err := run(ctx, os.Stdout, o, *tokens, flag.Arg(1)); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

// run calls the tool. The first time a browser opens and somebody signs in, and once
// more when the tool needs another permission.
func run(ctx context.Context, out io.Writer, o authclient.Options, tokens, tool string) error {
	// authorize:begin
	store, err := filestore.New(tokens)
	if err != nil {
		return err
	}
	o.Store = store
	authorized, err := authclient.New(o)
	if err != nil {
		return err
	}
	// authorize:end
	transport := &mcp.StreamableClientTransport{
		Endpoint:   o.Server,
		HTTPClient: authorized.HTTPClient(), // authorize
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1.0.0"}, nil)
	session, err := c.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
	if err != nil {
		return err
	}
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			fmt.Fprintf(out, "%q\n", text.Text) // quoted: a server's text may hold a terminal's commands
		}
	}
	return nil
}
