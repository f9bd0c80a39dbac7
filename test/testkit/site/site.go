// Package site is an Ostiary and an MCP server that trusts it, listening on loopback
// under one clock, and a person with a browser: what the tests of clients call.
package site

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// Site is what Start started.
type Site struct {
	// Server is the Ostiary; its clock is also the MCP server's.
	Server *testkit.Server
	// URL is the MCP server's. Its tools are greet, for notes:read, and add_note, for
	// notes:write, which is not asked for at first.
	URL string

	t      testing.TB
	person *testkit.Person
	asked  atomic.Int32
	visits sync.WaitGroup
	mu     sync.Mutex
	seen   map[string]int
}

// Start listens until the test ends.
func Start(t testing.TB, opts ...testkit.ServerOption) *Site {
	t.Helper()
	s := &Site{t: t, seen: map[string]int{}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer := "http://localhost:" + strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	opts = append(opts, func(c *config.Config) { c.Issuer = issuer })
	s.Server = testkit.NewServer(t, testkit.OpenSQLite(t), opts...)
	serve(t, ln, s.counted(s.Server.App.Public()))
	s.person = testkit.NewPerson(testkit.Email, testkit.Password, nil)
	s.person.Pause = func() { s.Server.Clock.Advance(time.Second) }
	s.serveMCP(issuer)
	t.Cleanup(s.visits.Wait)
	return s
}

func serve(t testing.TB, ln net.Listener, h http.Handler) {
	server := &httptest.Server{Listener: ln, Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
}

func (s *Site) serveMCP(issuer string) {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.URL = "http://" + ln.Addr().String() + "/mcp"
	if _, err := s.Server.App.Resources.Add(s.t.Context(), resource.Resource{Identifier: s.URL, Name: "Notes", Scopes: []resource.Scope{
		{Name: "notes:read", Title: "Read your notes", Default: true}, {Name: "notes:write", Title: "Add notes for you"}}}); err != nil {
		s.t.Fatal(err)
	}
	rs, err := resourceserver.New(resourceserver.Options{Issuer: issuer, Resource: s.URL, Scopes: []string{"notes:read"}, Now: s.Server.Clock.Now,
		Operations: resourceserver.Tools(map[string][]string{"greet": {"notes:read"}, "add_note": {"notes:write"}})})
	if err != nil {
		s.t.Fatal(err)
	}
	tools := newTools()
	serve(s.t, ln, rs.Protect(mcpsdk.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))))
}

// newTools returns an MCP server whose tools say who calls them.
func newTools() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	for _, name := range []string{"greet", "add_note"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			token, _ := mcpsdk.Token(req)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " for " + token.Subject}}}, nil, nil
		})
	}
	return server
}

// counted notes what the Ostiary is asked.
func (s *Site) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen[r.Method+" "+r.URL.Path]++
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

// Requests returns how often the Ostiary was asked, by "METHOD /path".
func (s *Site) Requests(line string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[line]
}

// Authorizer asks the person, who allows everything.
func (s *Site) Authorizer() authclient.Authorizer { return &authclient.Loopback{Open: s.Browse} }

// Asked returns how often the person was asked.
func (s *Site) Asked() int { return int(s.asked.Load()) }

// Browse opens a URL in the person's browser, which comes back by itself.
func (s *Site) Browse(_ context.Context, authorizationURL string) error {
	s.asked.Add(1)
	ctx := context.WithoutCancel(s.t.Context()) // the browser may still read when the test has ended
	s.visits.Go(func() {
		to, err := s.person.Authorize(ctx, authorizationURL)
		if err == nil {
			err = s.person.Deliver(ctx, to)
		}
		if err != nil {
			s.t.Errorf("the browser: %v", err)
		}
	})
	return nil
}

// Client returns a client of the MCP server, changed by each of change.
func (s *Site) Client(change ...func(*authclient.Options)) *authclient.Client {
	s.t.Helper()
	o := authclient.Options{Server: s.URL, Authorizer: s.Authorizer(), Now: s.Server.Clock.Now}
	for _, fn := range change {
		fn(&o)
	}
	c, err := authclient.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}
