package interop

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// TestGateway puts ostiary gateway before the Node server of docs/gateway.md, as
// its text says, and has an SDK client with a token of ostiary serve call its
// tool. Then the verification of that page reads the identity which arrived.
func TestGateway(t *testing.T) {
	t.Parallel()
	launch.InstallNode(t)
	o := launch.ServeOstiary(t, "")
	upstream, front, admin := strconv.Itoa(launch.FreePort(t)), strconv.Itoa(launch.FreePort(t)), strconv.Itoa(launch.FreePort(t))
	resource := "http://127.0.0.1:" + front + "/mcp"
	address := "http://127.0.0.1:" + upstream + "/mcp"
	o.Run(t, "", "resource", "add", resource, "--name", "Hello", "--scope", "hello=Say hello")

	snippets := documented(t, "js")
	replace := strings.NewReplacer("listen(3000", "listen("+upstream, "http://127.0.0.1:3000/mcp", address,
		"https://mcp.example.com/mcp", resource, "127.0.0.1:8417", "127.0.0.1:"+admin)
	// The server also prints what it was told of its caller.
	server := strings.Replace(replace.Replace(snippets[0]), "const server =", "console.log('identity ' + req.headers['x-ostiary-identity']);\n  const server =", 1)
	node := launch.Start(t, nil, launch.Node, script(t, "server", server))
	node.Await(t, address)
	launch.Start(t, nil, launch.Build(t, "cmd/ostiary"), "gateway", "--upstream", address, "--resource", resource, "--issuer", o.Issuer,
		"--listen", "127.0.0.1:"+front, "--admin-listen", "127.0.0.1:"+admin, "--require-scope", "hello").Await(t, resource)

	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: resource, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: machine(t, o, resource)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"})
	if err != nil || result.Content[0].(*mcp.TextContent).Text != "Hello" {
		t.Fatalf("hello = %+v, %v", result, err)
	}

	identity := regexp.MustCompile(`identity (\S+)`).FindStringSubmatch(node.Output())
	if identity == nil {
		t.Fatalf("no identity arrived: %s", node.Output())
	}
	verify := script(t, "verify", replace.Replace(snippets[1])+
		"\nconsole.log(JSON.stringify(await caller({ headers: { 'x-ostiary-identity': process.argv[2] } })));\n")
	out, err := exec.CommandContext(t.Context(), launch.Node, verify, identity[1]).CombinedOutput()
	var claims struct {
		Scope         string `json:"scope"`
		SubjectIssuer string `json:"subject_issuer"`
	}
	if err == nil {
		err = json.Unmarshal(out, &claims)
	}
	if err != nil || claims.Scope != "hello" || claims.SubjectIssuer != o.Issuer {
		t.Errorf("caller = %s, %v", out, err)
	}
	forged := identity[1][:len(identity[1])-6] + "AAAAAA"
	if out, err := exec.CommandContext(t.Context(), launch.Node, verify, forged).CombinedOutput(); err == nil {
		t.Errorf("a forged identity was taken: %s", out)
	}
}

// stdioServer is a server of the SDK on standard input and output, which tells
// whom it works for and what it could have stolen.
const stdioServer = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
const server = new McpServer({ name: 'hello', version: '1.0.0' });
const told = () => [process.env.MCP_GATEWAY_ISSUER, process.env.SECRET_OF_OTHERS, process.env.NAMED, process.env.OSTIARY_GATEWAY_NAME].join('|');
server.registerTool('hello', { description: 'Says hello' }, async () => ({ content: [{ type: 'text', text: told() }] }));
await server.connect(new StdioServerTransport());
`

// TestGatewayStdio has the same client call a program: the flags, the process and
// its environment are those that people have.
func TestGatewayStdio(t *testing.T) {
	t.Parallel()
	launch.InstallNode(t)
	o := launch.ServeOstiary(t, "")
	front := strconv.Itoa(launch.FreePort(t))
	resource := "http://127.0.0.1:" + front + "/mcp"
	o.Run(t, "", "resource", "add", resource, "--name", "Hello", "--scope", "hello=Say hello")
	env := []string{"OSTIARY_GATEWAY_NAME=Hello", "OSTIARY_GATEWAY_MAX_CHILDREN=2", "SECRET_OF_OTHERS=hunter2", "NAMED=yes"}
	gateway := launch.Start(t, env, launch.Build(t, "cmd/ostiary"), "gateway", "--resource", resource, "--issuer", o.Issuer, "--listen", "127.0.0.1:"+front,
		"--admin-listen", "127.0.0.1:"+strconv.Itoa(launch.FreePort(t)), "--env", "NAMED", "--stdio", "--", launch.Node, script(t, "stdio", stdioServer))
	gateway.Await(t, resource)

	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: resource,
		HTTPClient: &http.Client{Transport: machine(t, o, resource)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"})
	if err != nil || result.Content[0].(*mcp.TextContent).Text != o.Issuer+"||yes|" {
		t.Errorf("hello = %+v, %v", result, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	gateway.Stop()
	if log := gateway.Output(); !strings.Contains(log, "server.stopped") || strings.Contains(log, "hunter2") {
		t.Errorf("log = %s", log)
	}
}

// documented returns the code of docs/gateway.md in a language.
func documented(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "gateway.md"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		list = append(list, m[1])
	}
	if len(list) < 2 {
		t.Fatalf("the page has %d pieces of %s", len(list), language)
	}
	return list
}

// script writes a module to where Node finds the packages.
func script(t *testing.T, name, text string) string {
	t.Helper()
	f, err := os.CreateTemp("node_modules", "."+name+"-*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// authorized adds a token to a client's requests.
type authorized string

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// machine returns a transport with a token of a client of its own (client_credentials).
func machine(t *testing.T, o *launch.Ostiary, resource string) http.RoundTripper {
	t.Helper()
	var added struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(o.Run(t, "", "client", "add", "--name", "Job", "--auth", "client_secret_post", "--grant", "client_credentials",
		"--resource", resource, "--scope", "hello", "--json")), &added); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {added.ID}, "client_secret": {added.Secret}, "resource": {resource}}
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, o.Issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var granted struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(res.Body).Decode(&granted); err != nil || granted.Token == "" {
		t.Fatalf("token: %s %v", res.Status, err)
	}
	return authorized("Bearer " + granted.Token)
}
