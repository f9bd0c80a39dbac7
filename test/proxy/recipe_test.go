package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// get asks nginx for a path with further header lines.
func (f *front) get(t *testing.T, host, path string, lines ...string) (*http.Response, string) {
	t.Helper()
	conn := f.dial(t)
	_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", path, host, strings.Join(append(lines, ""), "\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// examples/nginx.conf does what its comments say.
func TestNginxRecipe(t *testing.T) {
	t.Parallel()
	f := startNginx(t, false)
	if resp, body := f.get(t, name, "/.well-known/oauth-authorization-server"); resp.StatusCode != 200 || !strings.Contains(body, `"issuer":"https://`+name+`"`) {
		t.Errorf("metadata: %s %s", resp.Status, body)
	}
	f.arrived()

	f.get(t, name, "/jwks.json", "X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 203.0.113.10", "Forwarded: for=203.0.113.9")
	if seen := f.arrived(); len(seen) != 1 || seen[0].forwarded != "127.0.0.1" || seen[0].host != name {
		t.Errorf("what came from outside is believed: %+v", seen)
	}
	if resp, _ := f.get(t, "evil.example", "/jwks.json"); resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host: %s, want 421", resp.Status)
	}
	f.arrived()

	// A31: an authorization request may be 16 KiB long
	long := "/authorize?client_id=x&state=" + strings.Repeat("s", 16<<10-200)
	if resp, _ := f.get(t, name, long); resp.Header.Get("X-Seen") == "" {
		t.Errorf("A31 a long authorization request: %s", resp.Status)
	}
}
