package mcpsdk_test

import (
	"fmt"
	"log"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/mcpsdk"
)

// A client of the official SDK that logs in, refreshes and steps up by itself.
func Example() {
	c, err := authclient.New(authclient.Options{Server: "https://mcp.example.com/mcp", Authorizer: &authclient.Loopback{}})
	if err != nil {
		log.Fatal(err)
	}
	transport := &mcp.StreamableClientTransport{Endpoint: "https://mcp.example.com/mcp", OAuthHandler: mcpsdk.Handler(c),
		HTTPClient: &http.Client{CheckRedirect: c.CheckRedirect}}
	// session, err := mcp.NewClient(…).Connect(ctx, transport, nil)
	fmt.Println(transport.Endpoint, transport.OAuthHandler != nil)
	// Output: https://mcp.example.com/mcp true
}
