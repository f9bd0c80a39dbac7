// Command client is what the conformance suite tests in the client's role: the MCP
// client of the official Go SDK, with an http.Client of package authclient and
// nothing else that knows of authorization. The suite names the server on the command
// line and everything else in the environment. It prints "done" at the end.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/authclient"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func run(ctx context.Context) error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: %s MCP_URL", os.Args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	o, err := options(ctx, os.Args[1])
	if err != nil {
		return err
	}
	c, err := authclient.New(o)
	if err != nil {
		return err
	}
	return call(ctx, o.Server, c.HTTPClient())
}

// options says who the program is, as the suite has it.
func options(ctx context.Context, server string) (authclient.Options, error) {
	o := authclient.Options{
		Server:            server,
		ClientMetadataURL: "https://conformance-test.local/client-metadata.json",
		Metadata:          authclient.ClientMetadata{ClientName: "Ostiary conformance"},
		DPoP:              true,
	}
	var given given
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &given); err != nil {
			return o, fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	var err error
	if o.Machine, err = given.machine(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"), server); err != nil || o.Machine != nil {
		return o, err
	}
	if given.ClientID != "" {
		o.Registered = []authclient.RegisteredClient{given.client(given.Issuer)}
	}
	o.Authorizer = &authclient.Loopback{Open: browse}
	return o, nil
}

// browse is the person at the browser, who has nothing to do: the suite's pages
// redirect at once.
func browse(ctx context.Context, authorizationURL string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, authorizationURL, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// call does what a program does with an MCP server.
func call(ctx context.Context, server string, hc *http.Client) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "ostiary-conformance", Version: "1"}, nil)
	session, err := client.Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: server, HTTPClient: hc, DisableStandaloneSSE: true, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = session.Close() }()
	if _, err := session.ListTools(ctx, nil); err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "test-tool", Arguments: map[string]any{}}); err != nil {
		return fmt.Errorf("call test-tool: %w", err)
	}
	return nil
}
