package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

const callLong = `Call a tool of an MCP server: a first try from the terminal. Without a tool, the
tools are listed. Arguments are a JSON object, or - to read one from standard input.

The server may be anybody's. One that asks for a token gets that of ostiary login; when
nobody has logged in, your browser opens. A tool that needs more permission than you
gave asks you for it on the way.

What a tool answers is printed as text, with everything that a terminal would obey
written as its number; images and sounds are named only. --json prints the result as
the server sent it. A tool that reports an error ends with exit code 1.`

const callExample = `  ostiary call https://mcp.example.com/mcp
  ostiary call https://mcp.example.com/mcp list_notes
  ostiary call https://mcp.example.com/mcp add_note '{"text": "buy milk"}'`

// maxArguments bounds tool arguments read from standard input, in bytes.
const maxArguments = 16 << 20

func newCallCmd(c *cli) *cobra.Command {
	var f callerFlags
	cmd := &cobra.Command{Use: "call MCP_URL [TOOL [JSON]]", Short: "List the tools of an MCP server, or call one", Long: callLong, Example: callExample,
		Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) error {
			if err := callArgs(cmd, args); err != nil {
				return err
			}
			arguments, err := c.toolArguments(args, &f)
			if err != nil {
				return err
			}
			client, err := c.newCaller(cmd, args[0], &f, c.authorizer(&f))
			if err != nil {
				return err
			}
			tool := ""
			if len(args) > 1 {
				tool = args[1]
			}
			return c.call(cmd, client, &f, tool, arguments)
		}}
	f.defineAsking(cmd.Flags())
	f.define(cmd.Flags())
	addJSON(cmd)
	return cmd
}

// callArgs counts by itself, since what follows MCP_URL may be left out.
func callArgs(cmd *cobra.Command, args []string) error {
	if len(args) >= 1 && len(args) <= 3 {
		return nil
	}
	if len(args) == 0 {
		return withHint(usagef("MCP_URL is missing"), "%s", usageLine(cmd))
	}
	return withHint(usagef("%s takes MCP_URL, a tool and its arguments as one JSON object", cmd.CommandPath()),
		`put the object between quotes: '{"text": "buy milk"}'`)
}

// toolArguments returns the JSON object to send, nil without one.
func (c *cli) toolArguments(args []string, f *callerFlags) (json.RawMessage, error) {
	if len(args) < 3 {
		return nil, nil
	}
	data := []byte(args[2])
	if args[2] == "-" {
		if f.secretFromStdin || f.noBrowser {
			return nil, withHint(usagef("the arguments are read from standard input, and so would be what a flag asks for"),
				"give the arguments on the command line")
		}
		var err error
		if data, err = io.ReadAll(io.LimitReader(c.in, maxArguments+1)); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		if len(data) > maxArguments {
			return nil, fmt.Errorf("the arguments are longer than %d MiB", maxArguments>>20)
		}
	}
	data = bytes.TrimSpace(data)
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, withHint(usagef("the arguments are not a JSON object"), `e.g. '{"text": "buy milk"}'`)
	}
	return data, nil
}

// call connects, lists or calls, and ends the session.
func (c *cli) call(cmd *cobra.Command, client *caller, f *callerFlags, tool string, arguments json.RawMessage) error {
	ctx := cmd.Context()
	watch := &failureWatch{next: client.Client}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "ostiary", Title: "Ostiary command line", Version: readBuild().Version},
		&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}).Connect(ctx, &mcp.StreamableClientTransport{Endpoint: client.server,
		HTTPClient: &http.Client{Transport: watch}, MaxRetries: -1, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return watch.explain(f, client.server, err)
	}
	defer func() { _ = session.Close() }() // the answer is there; the server forgets sessions by itself
	if tool == "" {
		tools, err := listTools(ctx, session)
		if err != nil {
			return watch.explain(f, client.server, err)
		}
		return c.print(cmd, tools, func(w io.Writer) { printTools(w, tools) })
	}
	params := &mcp.CallToolParams{Name: tool}
	if arguments != nil {
		params.Arguments = arguments
	}
	result, err := session.CallTool(ctx, params)
	if err != nil {
		return watch.explain(f, client.server, err)
	}
	if err := c.print(cmd, result, func(w io.Writer) { printResult(w, result) }); err != nil {
		return err
	}
	if result.IsError {
		return withHint(errors.New("the tool reports an error"), "ostiary call %s shows what its tools take", client.server)
	}
	return nil
}

// maxTools bounds a list that never ends.
const maxTools = 10_000

func listTools(ctx context.Context, session *mcp.ClientSession) ([]*mcp.Tool, error) {
	tools := []*mcp.Tool{}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(tools) == maxTools {
			return nil, fmt.Errorf("the server lists more than %d tools", maxTools)
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// failureWatch keeps the first error of the client library: what the SDK makes of it
// says less.
type failureWatch struct {
	next http.RoundTripper

	mu     sync.Mutex
	failed error
	status int // of the last answer that was an HTTP error
}

// RoundTrip implements http.RoundTripper.
func (w *failureWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil && w.failed == nil:
		w.failed = err
	case err == nil && resp.StatusCode >= 400:
		w.status = resp.StatusCode
	}
	return resp, err
}

// explain prefers the error that was kept.
func (w *failureWatch) explain(f *callerFlags, server string, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(w.failed, io.EOF), errors.Is(w.failed, io.ErrUnexpectedEOF):
		return withHint(errors.New("the server ended the connection without an answer"), "ostiary doctor %s looks at each step", server)
	case w.failed != nil:
		return f.explain(w.failed, server)
	case w.status >= 500:
		return withHint(fmt.Errorf("the server answered %d %s", w.status, http.StatusText(w.status)), "try again later; ostiary doctor %s looks at each step", server)
	}
	err = &foreignError{err}
	switch w.status {
	case http.StatusUnauthorized:
		return withHint(err, "the server refuses your token; ostiary login %s asks for a new one, and ostiary doctor looks for why when that one is refused too", server)
	case http.StatusForbidden:
		return withHint(err, "the server does not allow you that; ostiary call %s lists what there is, ostiary login --scope asks for more", server)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return withHint(err, "is %s the whole address of the MCP endpoint? It often ends with /mcp", server)
	}
	return f.explain(err, server)
}

// foreignError is an error in which a server may have had a say.
type foreignError struct{ error }

// Error returns one line that prints.
func (e *foreignError) Error() string { return terminalLine(e.error.Error()) }

// Unwrap returns the error itself.
func (e *foreignError) Unwrap() error { return e.error }
