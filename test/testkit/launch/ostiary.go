package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Ostiary is a running `ostiary serve` in development mode.
type Ostiary struct {
	*Process
	// Issuer is its issuer, http://localhost:PORT.
	Issuer string
	binary string
	env    []string
	args   []string
}

// stateSecret is the state secret of servers on PostgreSQL.
const stateSecret = "pYx0oV1o1JcVt0Q8Qe7mJf2m5Zr3w9u4l6nGd8sKbHk="

// environ is the environment without our own variables: what the person who
// runs the tests has configured must not matter.
func environ(own []string) []string {
	var list []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "OSTIARY_") {
			list = append(list, kv)
		}
	}
	return append(list, own...)
}

// ServeOstiary starts a server with an empty state directory. database is empty
// for SQLite, or a PostgreSQL URL; env are more variables, as NAME=value.
func ServeOstiary(t testing.TB, database string, env ...string) *Ostiary {
	t.Helper()
	port, admin := FreePort(t), FreePort(t)
	o := &Ostiary{Issuer: "http://localhost:" + strconv.Itoa(port), binary: Build(t, "cmd/ostiary")}
	o.env = append([]string{"OSTIARY_STATE_DIR=" + filepath.Join(t.TempDir(), "state")}, env...)
	if database != "" {
		o.env = append(o.env, "OSTIARY_DATABASE="+database, "OSTIARY_SECRET="+stateSecret)
	}
	o.args = []string{"serve", "--issuer", o.Issuer, "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--admin-listen", fmt.Sprintf("127.0.0.1:%d", admin)}
	o.Serve(t)
	return o
}

// Serve starts the server again on the same state, after Kill or Stop.
func (o *Ostiary) Serve(t testing.TB) {
	t.Helper()
	o.Process = Start(t, o.env, o.binary, o.args...)
	if err := o.await(o.Issuer + "/.well-known/oauth-authorization-server"); err != nil {
		t.Fatalf("ostiary serve: %v\n%s", err, o.Output())
	}
}

// Run runs another ostiary command against the same state, as an operator does
// while the server is up, and returns its standard output.
func (o *Ostiary) Run(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(o.binary, args...)
	cmd.Env = environ(o.env)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ostiary %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// AddUser makes an account.
func (o *Ostiary) AddUser(t testing.TB, email, password string) {
	t.Helper()
	o.Run(t, password+"\n", "user", "add", email, "--name", "Ada Test", "--password-stdin")
}

// ServeNotes starts examples/mcpserver against o and returns its resource
// identifier, which is the URL for MCP clients.
func (o *Ostiary) ServeNotes(t testing.TB) string {
	t.Helper()
	return ServeNotes(t, o.Issuer, "/mcp")
}

// ServeNotes starts examples/mcpserver, which trusts issuer, and returns its
// resource identifier, which is the URL for MCP clients and has this path.
func ServeNotes(t testing.TB, issuer, path string) string {
	t.Helper()
	return ServeExample(t, "examples/mcpserver", issuer, path)
}

// ServeExample is ServeNotes for any of the examples, which take the same flags.
func ServeExample(t testing.TB, pkg, issuer, path string) string {
	t.Helper()
	port := strconv.Itoa(FreePort(t))
	resource := "http://localhost:" + port + path
	Start(t, nil, Build(t, pkg), "--listen", "127.0.0.1:"+port, "--issuer", issuer, "--resource", resource).Await(t, resource)
	return resource
}
