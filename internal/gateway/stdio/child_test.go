//go:build unix

package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/internal/gateway/stdio"
)

const (
	asChild     = "run-as-mcp-server"
	raceOptions = "GORACE"
)

// TestMain is also the MCP server of the tests: the test binary, started again.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asChild {
		runChild(os.Args[2], os.Args[3:])
		return
	}
	// Programs under the race detector take a second to end otherwise.
	_ = os.Setenv(raceOptions, "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

func runChild(mode string, args []string) {
	switch mode {
	case "sdk":
		runSDK()
	case "deaf": // neither the end of its input nor SIGTERM ends it
		signal.Ignore(syscall.SIGTERM)
		runByHand()
		connect(args[0])
		select {}
	case "grandchild":
		signal.Ignore(syscall.SIGTERM)
		connect(args[0])
		select {}
	case "stuck": // never reads
		connect(args[0])
		select {}
	case "parent": // dies with a child that nothing else would end
		runtime.LockOSThread() // the first thread never ends: it must not be the one
		if err := stdio.StartAlone([]string{os.Args[0], asChild, "grandchild", args[0]}); err != nil {
			os.Exit(5)
		}
		endThreads()
		connect(args[0])
		select {}
	case "crash":
		os.Exit(3)
	default:
		runByHand()
	}
}

// connect tells the test that this process lives: until the connection ends.
func connect(address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		os.Exit(4)
	}
	_, _ = fmt.Fprintf(c, "%d\n", os.Getpid())
	go func() { _, _ = io.Copy(c, c) }() // says what it hears, as long as it lives
}

// endThreads ends the threads that goroutines have run on until now.
func endThreads() {
	var all, held sync.WaitGroup
	held.Add(50)
	for range 50 {
		all.Go(func() {
			runtime.LockOSThread() // and never unlocked
			held.Done()
			held.Wait()
		})
	}
	all.Wait()
}

// runSDK is an ordinary server.
func runSDK() {
	server := mcp.NewServer(&mcp.Implementation{Name: "child", Version: "1"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return text("hello " + in.Name + " of " + os.Getenv("MCP_GATEWAY_SUBJECT")), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "work"}, func(ctx context.Context, r *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
		}
		return text("done"), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "really?"})
		if err != nil {
			return nil, nil, err
		}
		return text("you said " + answer.Action), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "cancelled as asked")
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(server, &mcp.Tool{Name: "grow"}, func(_ context.Context, r *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		server.AddTool(&mcp.Tool{Name: "grown", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("grown"), nil
		})
		return text("grown"), nil, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
}

type line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// runByHand answers without an SDK, and misbehaves when it is asked to.
func runByHand() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		raw, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m line
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		if m.Method == "" || len(m.ID) == 0 {
			fmt.Fprintf(os.Stderr, "heard %s", raw)
			continue
		}
		misbehave(m, raw)
	}
}

func misbehave(m line, raw []byte) {
	result := any(map[string]any{"heard": string(raw[:len(raw)-1])})
	var text string
	_ = json.Unmarshal(m.Params, &struct{ Text *string }{&text})
	switch m.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": "2025-11-25", "capabilities": struct{}{}, "serverInfo": map[string]string{"name": "hand", "version": "1"}}
	case "server/discover":
		switch mood(raw) {
		case "silent":
			return
		case "broken":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no disk"}}`+"\n", m.ID)
			return
		case "refusing", "later":
			versions := map[string]string{"refusing": "2025-11-25", "later": "2099-01-01"}
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":[%q]}}}`+"\n", m.ID, versions[mood(raw)])
			return
		case "modern":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"]}}`+"\n", m.ID)
			return
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		return
	case "environment":
		result = os.Environ()
	case "files":
		result = openFiles()
	case "pid":
		result = os.Getpid()
	case "fork":
		cmd := exec.Command(os.Args[0], asChild, "grandchild", text)
		cmd.Stdout = os.Stdout // it holds the pipes open, too
		result = cmd.Start() == nil
	case "junk":
		fmt.Print("Listening on stdio...\n{\"not\": \"a message\"}\n\xff\xfe\n\n")
	case "stderr":
		fmt.Fprint(os.Stderr, text)
	case "flood":
		line := strings.Repeat("x", 100) + "\n"
		for range 20_000 {
			fmt.Fprint(os.Stderr, line)
		}
	case "flood stdout":
		junk := strings.Repeat("y", 1<<16)
		for range 200 {
			fmt.Print(junk)
		}
		fmt.Println()
		return
	case "exit":
		os.Exit(3)
	case "hang", "subscriptions/listen":
		fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hanging"}}` + "\n")
		return
	case "ask":
		fmt.Printf(`{"jsonrpc":"2.0","id":"q-1","method":"roots/list"}` + "\n")
	case "fail":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such thing","data":{"x":1}}}`+"\n", m.ID)
		return
	}
	body, _ := json.Marshal(result)
	fmt.Printf(`{"result":%s,"jsonrpc":"2.0","id":%s}`+"\n", body, m.ID)
}

// mood is how a child by hand takes server/discover.
func mood(question []byte) string {
	switch mode := os.Args[2]; {
	case mode == "moody": // as its subject wishes
		if subject := os.Getenv("MCP_GATEWAY_SUBJECT"); slices.Contains([]string{"u_silent", "u_broken", "u_old", "u_refusing", "u_later"}, subject) {
			return strings.TrimPrefix(subject, "u_")
		}
		return "modern"
	case mode == "strict" && bytes.Contains(question, []byte(`"2026-07-28"`)): // knows that revision alone
		return "modern"
	default:
		return mode
	}
}

// openFiles lists what was inherited beyond standard input, output and error.
func openFiles() []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return []string{err.Error()}
	}
	list := []string{}
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		// Go's own, and the directory that is being read.
		own := strings.HasPrefix(target, "anon_inode:") || strings.Contains(target, "/proc/") || strings.HasPrefix(target, "/sys/fs/cgroup/")
		if err == nil && !own && !slices.Contains([]string{"0", "1", "2"}, e.Name()) {
			list = append(list, e.Name()+" "+target)
		}
	}
	return list
}
