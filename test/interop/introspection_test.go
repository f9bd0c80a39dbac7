package interop

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// TestJW23_EndedGrant has a go-sdk client use an MCP server that asks ostiary about
// each token, and ends the client's grant: the next call needs the person again.
// The same server without the question serves the token until it expires.
func TestJW23_EndedGrant(t *testing.T) {
	t.Parallel()
	o := launch.ServeOstiary(t, "")
	o.AddUser(t, email, password)
	for _, tt := range []struct {
		name   string
		asks   bool
		visits int // of the person, in all
	}{
		{"AlsoJWT", true, 2},
		{"JWT alone", false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mcpURL := serveAsking(t, o, tt.asks)
			b := &browser{person: testkit.NewPerson(email, password, nil)}
			control := httptest.NewServer(b)
			t.Cleanup(control.Close)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c, err := newGoClient(t, order{Kind: "dcr", MCPURL: mcpURL, Issuer: o.Issuer, ControlURL: control.URL})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.login(ctx); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.session.Close() }()
			if err := c.list(ctx); err != nil {
				t.Fatal(err)
			}
			endGrant(t, o, mcpURL)
			if err := c.list(ctx); err != nil {
				t.Errorf("after the end of the grant: %v", err)
			}
			if got := len(b.visited()); got != tt.visits {
				t.Errorf("the person was asked %d times, want %d", got, tt.visits)
			}
		})
	}
}

// serveAsking starts an MCP server that verifies JWTs itself, and also asks about
// them when it shall, each time anew.
func serveAsking(t *testing.T, o *launch.Ostiary, asks bool) string {
	t.Helper()
	address := "localhost:" + strconv.Itoa(launch.FreePort(t))
	issuer, resource := resourceserver.Issuer{Identifier: o.Issuer}, "http://"+address+"/mcp"
	out := o.Run(t, "", "resource", "add", resource, "--name", "Notes", "--scope", "notes:read=Read your notes", "--introspection", "--json")
	var credential struct {
		ID     string `json:"introspection_client_id"`
		Secret string `json:"introspection_client_secret"`
	}
	if err := json.Unmarshal([]byte(out), &credential); err != nil {
		t.Fatal(err)
	}
	if asks {
		issuer.Introspection = &resourceserver.Introspection{ClientID: credential.ID, ClientSecret: resourceserver.Secret(credential.Secret),
			AlsoJWT: true, MaxAge: -1}
	}
	rs, err := resourceserver.New(resourceserver.Options{Resource: resource, Issuers: []resourceserver.Issuer{issuer}, Scopes: []string{"notes:read"},
		Operations: map[resourceserver.Operation][]string{{Method: "tools/call", Name: "list_notes"}: {"notes:read"}}})
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "list_notes"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "You have no notes."}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: rs.Protect(mcpsdk.Handler(handler)), ReadHeaderTimeout: time.Minute}}
	s.Start()
	t.Cleanup(s.Close)
	return resource
}

// endGrant ends the one grant at the resource, as an operator does.
func endGrant(t *testing.T, o *launch.Ostiary, resource string) {
	t.Helper()
	var grants []struct{ ID string }
	out := o.Run(t, "", "grant", "list", "--resource", resource, "--json")
	if err := json.Unmarshal([]byte(out), &grants); err != nil || len(grants) != 1 {
		t.Fatalf("grant list printed %q: %v", strings.TrimSpace(out), err)
	}
	o.Run(t, "", "grant", "end", grants[0].ID, "--yes")
}
