package endpoint_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
)

// A36: Claude waits 10 s for what it asks. Every request has a deadline well
// before, on which statements and outbound requests end and the answer is 503 (A21).
func TestA36_EveryRequestHasADeadline(t *testing.T) {
	t.Parallel()
	var left time.Duration
	note := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if deadline, ok := r.Context().Deadline(); ok {
			left = time.Until(deadline)
		}
	})
	h, _ := newSite(t, "https://as.example", func(o *endpoint.SiteOptions) {
		o.Root.Handle("GET /.well-known/any", note)
		o.Endpoints.Handle("POST /any", note)
		o.Pages.Handle("GET /any/page", note)
	})
	for _, tt := range []struct{ name, method, target string }{
		{"A36 discovery", "GET", "https://as.example/.well-known/any"},
		{"A36 endpoint", "POST", "https://as.example/any"},
		{"A36 page", "GET", "https://as.example/any/page"},
	} {
		left = 0
		if w := send(h, tt.method, tt.target, nil); w.Code != http.StatusOK {
			t.Fatalf("%s: %d", tt.name, w.Code)
		}
		if left <= 0 || left > 9*time.Second {
			t.Errorf("%s: %s left, want a deadline within 9 s", tt.name, left)
		}
	}
}
