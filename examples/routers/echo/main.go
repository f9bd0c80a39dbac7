// Command echo mounts the notes server, protected, on a router of labstack/echo.
// What protects it stands between the marks below.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/ostiary-auth/ostiary/examples/internal/notes"
	// protect:begin
	"github.com/ostiary-auth/ostiary/resourceserver"
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
	mcp := notes.New()
	// protect:begin
	rs, err := resourceserver.New(resourceserver.Options{
		Issuer: issuer, Resource: resource, Name: "Notes", Scopes: []string{"notes:read"},
		Operations: resourceserver.Tools(map[string][]string{"list_notes": {"notes:read"}, "add_note": {"notes:write"}}),
	})
	if err != nil {
		return nil, err
	}
	mcp = rs.Protect(mcp)
	// protect:end
	r := echo.New()
	r.GET("/healthz", func(c *echo.Context) error { return c.NoContent(http.StatusOK) })
	r.Any("/mcp", echo.WrapHandler(mcp))
	r.Any("/.well-known/*", echo.WrapHandler(mcp)) // protect
	return r, nil
}
