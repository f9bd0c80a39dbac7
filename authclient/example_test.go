package authclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/ostiary-auth/ostiary/authclient"
)

// A program calls a protected MCP server. The first request opens the browser; later
// ones, and those after the access token has ended, do not.
func Example() {
	server := demo()
	defer server.Close()
	client, err := authclient.New(authclient.Options{
		Server:     server.URL + "/mcp",
		Metadata:   authclient.ClientMetadata{ClientName: "Notebook"},
		Authorizer: &authclient.Loopback{Open: demoBrowser}, // without Open: the system's browser
	})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.HTTPClient().Post(server.URL+"/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
	// Output: 200 three files
}

// Login asks for access before the first request, as a command would that does nothing
// else. Logout ends it.
func ExampleClient_Login() {
	server := demo()
	defer server.Close()
	client, err := authclient.New(authclient.Options{
		Server:     server.URL + "/mcp",
		Authorizer: &authclient.Loopback{Open: demoBrowser},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := client.Login(ctx); err != nil {
		log.Fatal(err)
	}
	status, err := client.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.TokenType, status.Scopes)
	// Output: Bearer [files:read]
}

// A program that runs where nobody can be asked says so, and what to do.
func ExampleClient_TokenSource() {
	server := demo()
	defer server.Close()
	client, err := authclient.New(authclient.Options{Server: server.URL + "/mcp"}) // no Authorizer
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.TokenSource(context.Background()).Token()
	if errors.Is(err, authclient.ErrLoginRequired) {
		fmt.Println("log in first: ostiary login", "MCP_URL")
	}
	// Output: log in first: ostiary login MCP_URL
}
