package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newOpenServer is an MCP server that asks for no token.
func newOpenServer(t *testing.T) string {
	t.Helper()
	tools := newTestTools()
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	t.Cleanup(server.Close)
	return server.URL
}

func TestCallOpenServer(t *testing.T) {
	t.Parallel()
	server, w := newOpenServer(t), &world{home: t.TempDir()}
	const wantList = "TOOL      ARGUMENTS   WHAT IT DOES\n" +
		"add_note  [tag] text  Add a note\n" +
		"fail      -           \n" +
		`greet     -           Greet \u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}gnp\u{9b}2J\rover …` + "\n"
	if got := w.run(t, "", "call", server); got.code != exitDone || cmp.Diff(wantList, got.out) != "" {
		t.Errorf("list: exit %d %s\n%s", got.code, got.err, cmp.Diff(wantList, got.out))
	}
	for _, tt := range []struct {
		name, stdin string
		args        []string
		code        int
		out, err    string
	}{
		{name: "a text", args: []string{"greet"}, out: "hello\n" + `\u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}gnp\u{9b}2J\rover` + "\n"},
		{name: "arguments, to the byte", args: []string{"add_note", `{"text": "milk", "tag": 12345678901234567890}`},
			out: `added {"text":"milk","tag":12345678901234567890}` + "\n"},
		{name: "arguments from standard input", args: []string{"add_note", "-"}, stdin: `{"text":"x"}` + "\n", out: `added {"text":"x"}` + "\n"},
		{name: "the tool fails", args: []string{"fail"}, code: exitFailed, err: "the tool reports an error",
			out: `no such note \u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}gnp\u{9b}2J\rover` + "\n"},
		{name: "no such tool", args: []string{"nothing\x1b[2J"}, code: exitFailed, err: "nothing"},
		{name: "not JSON", args: []string{"add_note", "text=x"}, code: exitUsage, err: "not a JSON object"},
		{name: "an array", args: []string{"add_note", "[]"}, code: exitUsage, err: "not a JSON object"},
		{name: "null", args: []string{"add_note", "null"}, code: exitUsage, err: "not a JSON object"},
		{name: "words", args: []string{"add_note", "buy", "milk"}, code: exitUsage, err: "between quotes"},
		{name: "standard input twice", args: []string{"add_note", "-", "--no-browser"}, code: exitUsage, err: "standard input"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := w.run(t, tt.stdin, append([]string{"call", server}, tt.args...)...)
			if got.code != tt.code || got.out != tt.out || !strings.Contains(got.err, tt.err) {
				t.Errorf("%s; want exit %d, %q, %q", got, tt.code, tt.out, tt.err)
			}
			if strings.ContainsFunc(got.out+got.err, unprintable) {
				t.Errorf("a terminal would obey %q", got.out+got.err)
			}
		})
	}
}

// What goes wrong between the SDK and the server is said in words of ours.
func TestCallFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"no answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "ended the connection without an answer\nhint: ostiary doctor"},
		{"502", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) }, "the server answered 502 Bad Gateway\nhint: try again later"},
		{"403", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusForbidden) }, "hint: the server does not allow you that"},
		{"404", http.NotFound, "the whole address of the MCP endpoint?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.answer)
			t.Cleanup(server.Close)
			got := (&world{home: t.TempDir()}).run(t, "", "call", server.URL+"/mcp")
			if got.code != exitFailed || !strings.Contains(got.err, tt.want) || got.out != "" {
				t.Errorf("%s; want exit 1 and %q", got, tt.want)
			}
		})
	}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }

// --json is what the server sent, and does nothing to a terminal either.
func TestCallJSON(t *testing.T) {
	t.Parallel()
	server, w := newOpenServer(t), &world{home: t.TempDir()}
	got := w.run(t, "", "call", "--json", server, "greet")
	var result mcp.CallToolResult
	if err := json.Unmarshal([]byte(got.out), &result); err != nil || got.code != exitDone {
		t.Fatalf("%v: %s", err, got)
	}
	if text := result.Content[0].(*mcp.TextContent).Text; text != "hello\n"+evil {
		t.Errorf("text = %q", text)
	}
	if strings.ContainsFunc(got.out, unprintable) {
		t.Errorf("a terminal would obey %q", got.out)
	}
	got = w.run(t, "", "call", "--json", server)
	var tools []mcp.Tool
	if err := json.Unmarshal([]byte(got.out), &tools); err != nil || len(tools) != 3 || strings.ContainsFunc(got.out, unprintable) {
		t.Errorf("%v: %s", err, got)
	}
}

// Who has not logged in is asked on the way, and again for a tool that needs more.
func TestC7_CallStepsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.run(t, "", "call", w.mcpURL, "greet"); got.code != exitDone || w.browsed() != 1 {
		t.Fatalf("first call: asked %d times, %s", w.browsed(), got)
	}
	if got := w.run(t, "", "call", w.mcpURL, "add_note", `{"text":"milk"}`); got.code != exitDone || w.browsed() != 2 || !strings.HasPrefix(got.out, "added") {
		t.Fatalf("a tool that needs more: asked %d times, %s", w.browsed(), got)
	}
	for _, tool := range []string{"greet", "add_note"} {
		if got := w.run(t, "", "call", w.mcpURL, tool, `{"text":"milk"}`); got.code != exitDone || w.browsed() != 2 {
			t.Errorf("%s with what was granted: asked %d times, %s", tool, w.browsed(), got)
		}
	}
}

// A person who says no to more keeps what they had.
func TestCallStepUpDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.run(t, "", "login", w.mcpURL); got.code != exitDone {
		t.Fatal(got)
	}
	w.denies = true
	if got := w.run(t, "", "call", w.mcpURL, "add_note", `{"text":"milk"}`); got.code != exitFailed || !strings.Contains(got.err, "denied") {
		t.Errorf("denied: %s", got)
	}
	if got := w.run(t, "", "call", w.mcpURL, "greet"); got.code != exitDone || w.browsed() != 2 {
		t.Errorf("afterwards: asked %d times, %s", w.browsed(), got)
	}
}

// Content that is no text is named.
func TestPrintResult(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	printResult(&out, &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.ImageContent{MIMEType: "image/png\x1b", Data: make([]byte, 3)},
		&mcp.AudioContent{Data: make([]byte, 4)},
		&mcp.ResourceLink{URI: "notes://\u202e1", Name: "one\ntwo"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "notes://1", Text: "a\nb\x1b"}},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "notes://2", MIMEType: "x/y", Blob: []byte{1}}},
		&mcp.EmbeddedResource{},
	}})
	want := `[image: image/png\u{1b}, 3 bytes; --json has them]
[sound: no type, 4 bytes; --json has them]
[link: one\ntwo notes://\u{202e}1]
[resource: notes://1]
a
b\u{1b}
[resource notes://2: x/y, 1 bytes; --json has them]
[resource without content]
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	printResult(&out, &mcp.CallToolResult{StructuredContent: map[string]any{"a": "\u202e"}})
	if want := "{\n  \"a\": \"\\u202e\"\n}\n"; out.String() != want {
		t.Errorf("structured content = %q, want %q", out.String(), want)
	}
}
