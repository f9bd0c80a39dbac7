package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/registration"
)

// accessToken finds tokens and refresh tokens in what was printed.
var accessToken = regexp.MustCompile(`eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+|ost_(?:rt|ac)_[\w-]+`)

// Login, call, logout: what people do first, with nothing set up before.
func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "", "login", w.mcpURL)
	if got.code != exitDone || w.browsed() != 1 {
		t.Fatalf("login: asked %d times, %s", w.browsed(), got)
	}
	for _, want := range []string{"Logged in to " + w.mcpURL, "issuer     " + w.issuer, "scope      notes:read", "then it is refreshed",
		filepath.Join(w.home, ".config", "ostiary", "logins"), "Try it:  ostiary call " + w.mcpURL} {
		if !strings.Contains(got.out, want) {
			t.Errorf("login does not say %q:\n%s", want, got.out)
		}
	}
	if found := accessToken.FindString(got.out + got.err); found != "" {
		t.Errorf("login printed a secret: %.12s…", found)
	}
	if !strings.Contains(got.err, w.issuer+"/authorize?") {
		t.Errorf("the address to open is not shown: %s", got.err)
	}

	if got := w.run(t, "", "call", w.mcpURL, "greet"); got.code != exitDone || !strings.HasPrefix(got.out, "hello\n") || w.browsed() != 1 {
		t.Errorf("call after login: asked %d times, %s", w.browsed(), got)
	}
	if got := w.run(t, "", "logout", w.mcpURL); got.code != exitDone || !strings.Contains(got.out, "revoked and forgotten") {
		t.Errorf("logout: %s", got)
	}
	if found := accessToken.FindString(w.files(t)); found != "" {
		t.Error("a token is on the disk after logout")
	}
	if got := w.run(t, "", "logout", w.mcpURL); got.code != exitDone || !strings.Contains(got.out, "Nothing was stored") {
		t.Errorf("logout again: %s", got)
	}
}

// --print gives a token that opens the server, without asking again.
func TestLoginPrint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.run(t, "", "login", "--print", w.mcpURL)
	token := strings.TrimSuffix(first.out, "\n")
	if first.code != exitDone || accessToken.FindString(token) != token || token == "" {
		t.Fatalf("login --print: exit %d, %s", first.code, first.err)
	}
	if strings.Contains(first.err, token) {
		t.Error("the token is on standard error too")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.mcpURL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		t.Errorf("the token is refused: %s", resp.Status)
	}
	if again := w.run(t, "", "login", "--print", w.mcpURL); again.out != first.out || w.browsed() != 1 {
		t.Errorf("a stored token was not used: asked %d times", w.browsed())
	}
	if more := w.run(t, "", "login", "--print", "--scope", "notes:write", w.mcpURL); more.code != exitDone || more.out == first.out || w.browsed() != 2 {
		t.Errorf("--scope: exit %d, asked %d times, %s", more.code, w.browsed(), more.err)
	}
}

// What was asked for and not granted is said.
func TestLoginNotGranted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "", "login", "--scope", "notes:write notes:burn", w.mcpURL)
	if got.code != exitDone || !strings.Contains(got.err, "Not granted: notes:burn\n") || !strings.Contains(got.out, "notes:write") {
		t.Errorf("login: %s", got)
	}
}

// A token that has expired is refreshed without the person.
func TestLoginPrintRefreshes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.run(t, "", "login", "--print", w.mcpURL)
	w.advance(11 * time.Minute)
	second := w.run(t, "", "login", "--print", w.mcpURL)
	if second.code != exitDone || second.out == first.out || w.browsed() != 1 {
		t.Errorf("asked %d times; %d %s", w.browsed(), second.code, second.err)
	}
}

// --json says the same, and the token only where --print asks for it.
func TestLoginJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tt := range []struct {
		flags []string
		token bool
	}{{nil, false}, {[]string{"--print"}, true}} {
		got := w.run(t, "", append([]string{"login", "--json", "--account", "work", w.mcpURL}, tt.flags...)...)
		var v map[string]any
		if err := json.Unmarshal([]byte(got.out), &v); err != nil || got.code != exitDone {
			t.Fatalf("%v: %v, %s", tt.flags, err, got)
		}
		if _, has := v["access_token"]; has != tt.token {
			t.Errorf("%v: access_token is there: %t", tt.flags, has)
		}
		if v["server"] != w.mcpURL || v["issuer"] != w.issuer || v["account"] != "work" || v["resource"] != w.mcpURL ||
			v["scope"] != "notes:read offline_access" || v["refreshable"] != true || v["token_type"] != "Bearer" {
			t.Errorf("%v: %v", tt.flags, v)
		}
	}
	if got := w.run(t, "", "logout", "--json", w.mcpURL); !strings.Contains(got.out, `"was_logged_in": false`) {
		t.Errorf("the login of --account work is that of nobody: %s", got)
	}
	if got := w.run(t, "", "logout", "--json", "--account", "work", w.mcpURL); !strings.Contains(got.out, `"was_logged_in": true`) {
		t.Errorf("logout --account: %s", got)
	}
}

// Logins are for their owner alone, and memory leaves none.
func TestLoginStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.run(t, "", "login", "--store", "memory", "--print", w.mcpURL); got.code != exitDone || accessToken.FindString(got.out) == "" {
		t.Errorf("memory: %s", got.err)
	}
	if files := w.files(t); files != "" {
		t.Errorf("memory left files: %.100s", files)
	}
	if got := w.run(t, "", "login", w.mcpURL); got.code != exitDone {
		t.Fatal(got)
	}
	err := filepath.WalkDir(filepath.Join(w.home, ".config", "ostiary"), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// On a machine without a browser: the printed address is opened elsewhere, and what
// the browser ended at is pasted.
func TestLoginNoBrowser(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func(address string) string
		code int
	}{
		{"the whole address", func(a string) string { return a }, exitDone},
		{"C8 the answer to another question", func(a string) string { return regexp.MustCompile(`state=[^&]+`).ReplaceAllString(a, "state=other") }, exitFailed},
		{"C3 another issuer", func(a string) string {
			return regexp.MustCompile(`iss=[^&]+`).ReplaceAllString(a, "iss=https%3A%2F%2Fevil.example")
		}, exitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			in, paste := io.Pipe()
			out, errw := newLockedBuffer(), newLockedBuffer()
			done := make(chan int, 1)
			go func() { done <- w.cli(t, in, out, errw).run(t.Context(), []string{"login", "--no-browser", w.mcpURL}) }()
			to, err := w.person.Authorize(t.Context(), errw.await(t, `(`+regexp.QuoteMeta(w.issuer)+`/authorize\?\S+)`))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(paste, tt.edit(to.String())+"\n"); err != nil {
				t.Fatal(err)
			}
			_ = paste.Close() // who is asked again has no more to say
			if code := <-done; code != tt.code || w.browsed() != 0 {
				t.Errorf("exit %d, a browser was opened %d times\n%s%s", code, w.browsed(), out, errw)
			}
			if logged := strings.Contains(out.String(), "Logged in"); logged != (tt.code == exitDone) {
				t.Errorf("logged in: %t\n%s", logged, out)
			}
		})
	}
}

// A client that the operator added is used at its issuer, and its secret shown to
// nobody.
func TestC5_LoginRegisteredClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, secret := w.addClient(t)
	args := []string{"login", w.mcpURL, "--client-id", client, "--client-secret-stdin", "--issuer", w.issuer}
	got := w.run(t, secret+"\n", args...)
	if got.code != exitDone || !strings.Contains(got.out, client) || strings.Contains(got.out+got.err, secret) {
		t.Fatalf("login: %s", got)
	}
	if got := w.run(t, secret+"\n", "logout", w.mcpURL, "--client-id", client, "--client-secret-stdin", "--issuer", w.issuer); got.code != exitDone {
		t.Errorf("logout: %s", got)
	}
	args[len(args)-1] = "https://auth.example.com"
	if got := w.run(t, secret+"\n", args...); got.code != exitFailed || !strings.Contains(got.err, "hint: --client-id is sent to https://auth.example.com alone") || w.browsed() != 1 {
		t.Errorf("a client of another issuer: asked %d times, %s", w.browsed(), got)
	}
}

func (w *world) addClient(t *testing.T) (id, secret string) {
	t.Helper()
	added, s, err := w.app.Clients.Add(t.Context(), registration.AddOptions{Name: "Mine",
		RedirectURIs: []string{"http://127.0.0.1/callback"}, AuthMethod: registration.AuthClientSecretBasic})
	if err != nil {
		t.Fatal(err)
	}
	return added.ID, s.Reveal()
}

// Who says no is told so, and nothing is kept.
func TestLoginDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.denies = true
	got := w.run(t, "", "login", w.mcpURL)
	if got.code != exitFailed || !strings.Contains(got.err, "denied") || !strings.Contains(got.err, "hint: run it again") {
		t.Errorf("login: %s", got)
	}
	if accessToken.MatchString(w.files(t)) {
		t.Error("a token is on the disk")
	}
}

// What goes wrong says what to do.
func TestLoginMistakes(t *testing.T) {
	t.Parallel()
	open := newOpenServer(t)
	w := &world{home: t.TempDir()}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no server", []string{"login"}, exitUsage, "MCP_URL is missing"},
		{"no scheme", []string{"login", "mcp.example.com/mcp"}, exitUsage, "hint: write the whole address: https://mcp.example.com/mcp"},
		{"http", []string{"login", "http://mcp.example.com/mcp"}, exitUsage, "is http, and not on this machine"},
		{"a fragment", []string{"login", "https://mcp.example.com/mcp#x"}, exitUsage, "fragment"},
		{"a client without issuer", []string{"login", "--client-id", "x", "https://mcp.example.com/mcp"}, exitUsage, "--client-id needs --issuer"},
		{"an issuer without client", []string{"login", "--issuer", "https://a.example", "https://mcp.example.com/mcp"}, exitUsage, "give both, or neither"},
		{"a secret without client", []string{"login", "--client-secret-stdin", "https://mcp.example.com/mcp"}, exitUsage, "which is missing"},
		{"two clients", []string{"login", "--client-id", "x", "--issuer", "https://a.example", "--client-metadata-url", "https://c.example/x", "https://mcp.example.com/mcp"}, exitUsage, "exclude one another"},
		{"a document without path", []string{"login", "--client-metadata-url", "https://c.example", "https://mcp.example.com/mcp"}, exitUsage, "--client-metadata-url"},
		{"two ways to ask", []string{"login", "--device", "--no-browser", "https://mcp.example.com/mcp"}, exitUsage, "exclude one another"},
		{"a port for no browser", []string{"login", "--callback-port", "7777", "--device", "https://mcp.example.com/mcp"}, exitUsage, "--callback-port is for"},
		{"standard input twice", []string{"login", "--client-id", "x", "--issuer", "https://a.example", "--client-secret-stdin", "--no-browser", "https://mcp.example.com/mcp"}, exitUsage, "both read standard input"},
		{"memory without --print", []string{"login", "--store", "memory", "https://mcp.example.com/mcp"}, exitUsage, "forgets the login"},
		{"an unknown store", []string{"login", "--store", "cloud", "https://mcp.example.com/mcp"}, exitUsage, "hint: file, keyring or memory"},
		{"a scope that is none", []string{"login", "--scope", `a"b`, "https://mcp.example.com/mcp"}, exitUsage, "hint: scopes are words"},
		{"an issuer over http", []string{"login", "--client-id", "x", "--issuer", "http://a.example", "https://mcp.example.com/mcp"}, exitUsage, `the --issuer "http://a.example" is http`},
		{"a port that is none", []string{"login", "--callback-port", "99999", "https://mcp.example.com/mcp"}, exitUsage, `--callback-port does not take "99999": value out of range`},
		{"a flag of serve", []string{"login", "--database", "x", "https://mcp.example.com/mcp"}, exitUsage, "--database means nothing"},
		{"an open server", []string{"login", open}, exitFailed, "hint: there is nothing to log in to"},
		{"nobody listens", []string{"login", "http://127.0.0.1:1/mcp"}, exitFailed, "hint: ostiary doctor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := w.run(t, "", tt.args...)
			if got.code != tt.code || !strings.Contains(got.err, tt.want) || got.out != "" {
				t.Errorf("%s; want exit %d and %q", got, tt.code, tt.want)
			}
		})
	}
}

// Each error of the client library that a flag or another command helps with says so.
func TestCallerHints(t *testing.T) {
	t.Parallel()
	const server = "https://mcp.example.com/mcp"
	for _, tt := range []struct {
		flags callerFlags
		err   error
		want  string
	}{
		{callerFlags{}, authclient.ErrCannotRegister, "add --client-id ID --issuer URL"},
		{callerFlags{clientID: "x", issuer: "https://as.example"}, authclient.ErrCannotRegister, "--client-id is sent to https://as.example alone"},
		{callerFlags{}, errors.Join(authclient.ErrRefused, authclient.ErrPrivateAddress), "--allow-private"},
		{callerFlags{}, errors.Join(authclient.ErrRefused, authclient.ErrIssuerSlash), "--issuer-slash"},
		{callerFlags{}, authclient.ErrRefused, "ostiary doctor " + server},
		{callerFlags{}, authclient.ErrLoginRequired, "ostiary login " + server},
		{callerFlags{device: true}, authclient.ErrNoDeviceGrant, "leave --device out"},
		{callerFlags{}, &authclient.ServerError{Status: 503}, "try again later"},
		{callerFlags{clientID: "x", issuer: "https://as.example"}, &authclient.ServerError{Status: 401, Code: "invalid_client"}, "--client-secret-stdin"},
		{callerFlags{}, context.Canceled, "run it again"},
		{callerFlags{}, io.ErrUnexpectedEOF, "--verbose"},
	} {
		var hinted *hintedError
		if !errors.As(tt.flags.explain(tt.err, server), &hinted) || !strings.Contains(hinted.Hint(), tt.want) {
			t.Errorf("%v: %v, want a hint with %q", tt.err, hinted, tt.want)
		}
	}
}

// In the keyring, and nothing in files. Not parallel: the keyring's stand-in is global.
func TestLoginKeyring(t *testing.T) {
	keyring.MockInit()
	w := newWorld(t)
	if got := w.run(t, "", "login", "--store", "keyring", w.mcpURL); got.code != exitDone || !strings.Contains(got.out, "kept in    the keyring of this system") {
		t.Fatal(got)
	}
	if accessToken.MatchString(w.files(t)) {
		t.Error("a token is in a file")
	}
	if got := w.run(t, "", "call", "--store", "keyring", w.mcpURL, "greet"); got.code != exitDone || w.browsed() != 1 {
		t.Errorf("call: asked %d times, %s", w.browsed(), got)
	}
	keyring.MockInitWithError(errors.New("the keyring is locked"))
	got := w.run(t, "", "call", "--store", "keyring", w.mcpURL, "greet")
	if got.code != exitFailed || !strings.Contains(got.err, "the keyring is locked") || !strings.Contains(got.err, "hint: unlock") || w.browsed() != 1 {
		t.Errorf("a locked keyring: asked %d times, %s", w.browsed(), got)
	}
}

// Ctrl-C ends the wait for the browser, and nothing is kept.
func TestLoginInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errw strings.Builder
	c := w.cli(t, strings.NewReader(""), &out, &errw)
	c.openBrowser = func(context.Context, string) error { interrupt(); return nil }
	if code := c.run(ctx, []string{"login", w.mcpURL}); code != exitFailed || !strings.Contains(errw.String(), "interrupted before it was done\nhint: run it again") || out.String() != "" {
		t.Errorf("exit %d\n%s%s", code, out.String(), errw.String())
	}
	if got := w.run(t, "", "login", w.mcpURL); got.code != exitDone {
		t.Errorf("afterwards: %s", got)
	}
}
