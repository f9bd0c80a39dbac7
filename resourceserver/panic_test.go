package resourceserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// panicking is an HTTPClient of the embedder's that has a mistake.
type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("boom") }

// What is fetched beside the requests ends none of them, and not the process.
func TestJW31_FetchPanics(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, path string }{
		{"keys", "/mcp"},
		{"metadata of the authorization server", "/.well-known/oauth-authorization-server"},
	} {
		t.Run("JW-31 "+tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(o *resourceserver.Options) { o.HTTPClient = &http.Client{Transport: panicking{}} })
			w := f.call(httptest.NewRequest(http.MethodGet, "https://mcp.example.com"+tt.path, nil), f.token(t, ""))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("status = %d, want 503", w.Code)
			}
		})
	}
}
