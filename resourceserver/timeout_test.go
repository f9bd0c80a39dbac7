package resourceserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// http.TimeoutHandler may give up at any moment, and what is around it then reads
// the header while Protect runs still: the map that it has must not be changed.
func TestTimeoutHandlerKeepsItsHeader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var got http.Header
	h := http.TimeoutHandler(f.server.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header
	})), time.Hour, "slow")
	r := httptest.NewRequest(http.MethodGet, testResource, nil)
	r.Header.Set("Authorization", "Bearer "+f.token(t, "notes:read"))
	r.Header.Set("X-Other", "1")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if r.Header.Get("Authorization") == "" {
		t.Error("the header that the log around reads was changed")
	}
	if got.Get("Authorization") != "" || got.Get("X-Other") != "1" {
		t.Errorf("JW-24 the handler got %v", got)
	}
}
