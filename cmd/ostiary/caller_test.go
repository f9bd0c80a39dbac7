package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// world is an authorization server with a person, an MCP server that trusts it, and
// the home directory of somebody who calls that.
type world struct {
	app    *app.App
	issuer string
	mcpURL string
	home   string
	person *testkit.Person
	logs   *testkit.Buffer
	visits sync.WaitGroup // of the browser

	mu     sync.Mutex
	offset time.Duration
	opened []string // authorization URLs
	denies bool
}

// newWorld starts everything on loopback.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{home: t.TempDir(), logs: &testkit.Buffer{}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.issuer = fmt.Sprintf("http://localhost:%d", ln.Addr().(*net.TCPAddr).Port)
	cfg := config.Default()
	cfg.Issuer, cfg.Secret = w.issuer, "pYx0oV1o1JcVt0Q8Qe7mJf2m5Zr3w9u4l6nGd8sKbHk="
	w.app, err = app.New(t.Context(), app.Options{Config: cfg, Store: testkit.OpenSQLite(t), Now: w.now, Log: slog.New(slog.NewTextHandler(w.logs, nil)),
		Passwords: login.PasswordOptions{MemoryKiB: 64, Iterations: 1}, Outbound: testkit.Outbound(t)})
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: ln, Config: &http.Server{Handler: w.app.Public(), ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	if _, err := w.app.Accounts.Add(t.Context(), login.NewUser{Email: testkit.Email, Name: "Mina", Password: testkit.Password}); err != nil {
		t.Fatal(err)
	}
	w.person = testkit.NewPerson(testkit.Email, testkit.Password, nil)
	w.person.Pause = func() { w.advance(time.Second) }
	w.serveMCP(t)
	t.Cleanup(w.visits.Wait)
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset += d
}

// serveMCP starts the MCP server, whose texts are hostile to terminals.
func (w *world) serveMCP(t *testing.T) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	w.mcpURL = "http://" + server.Listener.Addr().String() + "/mcp"
	rs, err := resourceserver.New(resourceserver.Options{Issuer: w.issuer, Resource: w.mcpURL, Scopes: []string{"notes:read"}, Now: w.now,
		Operations: resourceserver.Tools(map[string][]string{"greet": {"notes:read"}, "add_note": {"notes:write"}, "fail": {"notes:read"}})})
	if err != nil {
		t.Fatal(err)
	}
	tools := newTestTools()
	server.Config.Handler = rs.Protect(mcpsdk.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil)))
	server.Start()
	t.Cleanup(server.Close)
	_, err = w.app.Resources.Add(t.Context(), resource.Resource{Identifier: w.mcpURL, Name: "Notes", Scopes: []resource.Scope{
		{Name: "notes:read", Title: "Read your notes", Default: true}, {Name: "notes:write", Title: "Add notes for you"}}})
	if err != nil {
		t.Fatal(err)
	}
}

// evil is a text that would colour, move and rename a terminal, and turn its text.
const evil = "\x1b[31mred\x1b]0;title\a\u202egnp\u009b2J\rover"

func newTestTools() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	say := func(word string, isError bool) mcp.ToolHandler {
		return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text := word
			if given := string(req.Params.Arguments); given != "{}" {
				text += given
			}
			return &mcp.CallToolResult{IsError: isError, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		}
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}, "tag": map[string]any{}}, "required": []string{"text"}}
	s.AddTool(&mcp.Tool{Name: "greet", Description: "Greet " + evil + "\nSecond line", InputSchema: map[string]any{"type": "object"}}, say("hello\n"+evil, false))
	s.AddTool(&mcp.Tool{Name: "add_note", Description: "Add a note", InputSchema: schema}, say("added ", false))
	s.AddTool(&mcp.Tool{Name: "fail", InputSchema: map[string]any{"type": "object"}}, say("no such note "+evil, true))
	return s
}

// browse is the person's browser: it comes back by itself.
func (w *world) browse(t *testing.T) func(context.Context, string) error {
	return func(_ context.Context, authorizationURL string) error {
		w.mu.Lock()
		w.opened = append(w.opened, authorizationURL)
		w.mu.Unlock()
		ctx := context.WithoutCancel(t.Context()) // the browser may still read when the command has ended
		w.visits.Go(func() {
			to, err := w.answer(ctx, authorizationURL)
			if err == nil {
				err = w.person.Deliver(ctx, to)
			}
			if err != nil {
				t.Errorf("the browser: %v", err)
			}
		})
		return nil
	}
}

// answer is where the person's browser is sent in the end.
func (w *world) answer(ctx context.Context, authorizationURL string) (*url.URL, error) {
	if !w.denies {
		return w.person.Authorize(ctx, authorizationURL)
	}
	page, err := w.person.ToConsent(ctx, authorizationURL)
	if err != nil {
		return nil, err
	}
	if page, err = w.person.Deny(ctx, page); err != nil {
		return nil, err
	}
	if page.Leaves == nil {
		return nil, errors.New("no way back to the program")
	}
	return page.Leaves, nil
}

// browsed is how often the person was asked.
func (w *world) browsed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.opened)
}

// outcome is what a command did.
type outcome struct {
	code     int
	out, err string
}

// String is the outcome as tests print it.
func (o outcome) String() string { return fmt.Sprintf("exit %d\n%s%s", o.code, o.out, o.err) }

// run runs a command of the person at the terminal.
func (w *world) run(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var out, errw strings.Builder
	code := w.cli(t, strings.NewReader(stdin), &out, &errw).run(t.Context(), args)
	return outcome{code, out.String(), errw.String()}
}

func (w *world) cli(t *testing.T, in io.Reader, out, errw io.Writer) *cli {
	c := newCLI([]string{"HOME=" + w.home}, in, out, errw)
	c.now, c.openBrowser = w.now, w.browse(t)
	return c
}

// files returns what is below the person's home directory, as one text.
func (w *world) files(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(w.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
