package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
)

// startGateway runs ostiary gateway with ports of its own choice.
func startGateway(t *testing.T, environ []string, args ...string) *running {
	t.Helper()
	r := &running{out: newLockedBuffer(), err: newLockedBuffer()}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	c := newCLI(environ, strings.NewReader(""), r.out, r.err)
	go func() {
		code <- c.run(ctx, append([]string{"gateway", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...))
	}()
	r.stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { r.stop() })
	return r
}

// A gateway tells where it is, asks for tokens, and ends cleanly.
func TestGateway(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request without a token reached the upstream")
	}))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	key, jwks := filepath.Join(dir, "key.pem"), filepath.Join(dir, "jwks.json")
	r := startGateway(t, []string{"OSTIARY_GATEWAY_RESOURCE=https://mcp.example.com/mcp", "OSTIARY_GATEWAY_SCOPE=a, b"},
		"--upstream", upstream.URL+"/mcp", "--issuer", "https://auth.example.com", "--key", key, "--jwks-file", jwks)
	base := "http://" + r.out.await(t, `listening  (\S+)`)
	admin := r.out.await(t, `keys       (\S+)/jwks.json`)

	res, err := http.Post(base+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	const want = `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="a b"`
	if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != http.StatusUnauthorized || got != want {
		t.Errorf("without a token: %d %s, want 401 %s", res.StatusCode, got, want)
	}
	if code, body := get(t, http.DefaultClient, base+"/.well-known/oauth-protected-resource/mcp"); code != http.StatusOK ||
		!strings.Contains(body, "https://auth.example.com") {
		t.Errorf("metadata = %d %s", code, body)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(t, http.DefaultClient, admin+path); code != http.StatusOK {
			t.Errorf("%s = %d %s", path, code, body)
		}
		if code, _ := get(t, http.DefaultClient, base+path); code != http.StatusNotFound {
			t.Errorf("%s on the public listener = %d, want 404", path, code)
		}
	}
	_, served := get(t, http.DefaultClient, admin+"/jwks.json")
	written, err := os.ReadFile(jwks)
	if err != nil || string(written) != served || !strings.Contains(served, `"ES256"`) {
		t.Errorf("keys: %v, file %s, served %s", err, written, served)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v, want mode 0600", info, err)
	}
	upstream.Close()
	if code, body := get(t, http.DefaultClient, admin+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz without an upstream = %d %s, want 503", code, body)
	}
	if code := r.stop(); code != exitDone {
		t.Errorf("exit code %d; %s", code, r.err)
	}
	if log := r.err.String(); !strings.Contains(log, "server.stopped") {
		t.Errorf("log = %s", log)
	}
}

// The admin listener is not for pages (D34).
func TestD34_GatewayAdmin(t *testing.T) {
	t.Parallel()
	r := startGateway(t, nil, "--upstream", "http://127.0.0.1:1/mcp", "--issuer", "https://auth.example.com",
		"--resource", "https://mcp.example.com/mcp")
	admin := r.out.await(t, `keys       (\S+)/jwks.json`)
	for _, tt := range []struct {
		host, origin string
		want         int
	}{{"", "", 200}, {"rebound.example", "", 421}, {"", "https://evil.example", 403}} {
		req, err := http.NewRequest(http.MethodGet, admin+"/jwks.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != tt.want {
			t.Errorf("%+v: %d", tt, res.StatusCode)
		}
	}
}

// Every flag has its variable; the command line wins; what others set is left alone.
func TestGatewayEnvironment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		environ []string
		args    []string
		want    string // of the flags, as JSON
		err     string
	}{
		{name: "text, list, duration, number, switch", want: `["http://u",["a","b"],"1m0s","5","true"]`,
			environ: []string{"OSTIARY_GATEWAY_UPSTREAM=http://u", "OSTIARY_GATEWAY_SCOPE=a, b", "OSTIARY_GATEWAY_TIMEOUT=1m",
				"OSTIARY_GATEWAY_MAX_BODY=5", "OSTIARY_GATEWAY_PREFIX=true"}},
		{name: "the command line wins", want: `["http://f",["c"],"5m0s","4194304","false"]`, args: []string{"--upstream", "http://f", "--scope", "c"},
			environ: []string{"OSTIARY_GATEWAY_UPSTREAM=http://u", "OSTIARY_GATEWAY_SCOPE=a"}},
		{name: "empty is not set", want: `["",[],"5m0s","4194304","false"]`, environ: []string{"OSTIARY_GATEWAY_UPSTREAM="}},
		{name: "Kubernetes", want: `["",[],"5m0s","4194304","false"]`, environ: []string{"OSTIARY_GATEWAY_PORT=tcp://10.0.0.1:80",
			"OSTIARY_GATEWAY_PORT_80_TCP=x", "OSTIARY_GATEWAY_SERVICE_HOST=10.0.0.1", "OSTIARY_ISSUER=https://a.example"}},
		{name: "misspelt", environ: []string{"OSTIARY_GATEWAY_UPSTRAEM=x"}, err: "OSTIARY_GATEWAY_UPSTRAEM: there is no such setting"},
		{name: "no duration", environ: []string{"OSTIARY_GATEWAY_TIMEOUT=soon"}, err: "OSTIARY_GATEWAY_TIMEOUT=soon:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var f gatewayFlags
			fs := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
			f.define(fs)
			if err := fs.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			err := gatewayEnvironment(fs, tt.environ)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("err = %v, want %q", err, tt.err)
				}
				return
			}
			got, _ := json.Marshal([]any{f.upstream, append([]string{}, f.scopes...), f.timeout.String(), fmt.Sprint(f.maxBody), fmt.Sprint(f.prefix)})
			if err != nil || string(got) != tt.want {
				t.Errorf("flags = %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// The flags that the issue names exist, and the long text names no other.
func TestGatewayHelp(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := newCLI(nil, strings.NewReader(""), &out, io.Discard)
	if code := c.run(t.Context(), []string{"gateway", "--help"}); code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	for _, want := range []string{"--upstream URL", "--resource URL", "--issuer URL", "--identity how", "-- npx"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help has no %q", want)
		}
	}
	if strings.Contains(out.String(), "--database") {
		t.Error("the help names flags of serve")
	}
}
