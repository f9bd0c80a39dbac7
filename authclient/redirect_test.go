package authclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMM16_RedirectedRequests: where the MCP server redirects a request of the caller's,
// its body and its session do not go, nor anything over plain http.
func TestMM16_RedirectedRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method string
		status int
		to     string // "" is another origin of this machine
		goes   bool
	}{
		{method: "POST", status: 307},
		{method: "POST", status: 308},
		{method: "POST", status: 302},
		{method: "DELETE", status: 307},
		{method: "POST", status: 307, to: "http://mcp.example/x"},
		{method: "GET", status: 302, to: "http://mcp.example/x"},
		{method: "GET", status: 302, goes: true},
		{method: "GET", status: 307, goes: true},
	} {
		t.Run(fmt.Sprint(tt.method, " ", tt.status, " ", tt.to), func(t *testing.T) {
			t.Parallel()
			var got *http.Request
			other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				got = r
				if r.URL.Path == "/x" { // and on, within the origin
					http.Redirect(rw, r, "/y", http.StatusFound)
				}
			}))
			defer other.Close()
			w := newWorld(t)
			c := w.client(func(o *Options) { o.AllowPrivate = true })
			if err := c.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			to := tt.to
			if to == "" {
				to = other.URL + "/x"
			}
			w.hook(tt.method+" /mcp", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, to, tt.status) })
			var body io.Reader
			if tt.method == "POST" {
				body = strings.NewReader("private arguments")
			}
			req, err := http.NewRequestWithContext(t.Context(), tt.method, w.url(), body)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Name", "Last-Event-Id"} {
				req.Header.Set(name, "private")
			}
			resp, err := c.HTTPClient().Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if !tt.goes {
				if !errors.Is(err, ErrRefused) || got != nil {
					t.Errorf("err = %v, the other origin got %v", err, got)
				}
				return
			}
			if err != nil || got == nil || got.URL.Path != "/y" {
				t.Fatalf("err = %v, the other origin got %v", err, got)
			}
			if said := fmt.Sprint(got.Header); strings.Contains(said, "private") || got.Header.Get("Authorization") != "" {
				t.Errorf("the other origin got %s", said)
			}
		})
	}
}
