package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]float64{"2 us (1 to 9)": {9, 1, 2}, "3 us (1 to 9)": {9, 1, 2, 4}, "5 us (5 to 5)": {5}} {
		if got := spread(values, "%.0f", "us"); got != want {
			t.Errorf("spread(%v) = %q, want %q", values, got, want)
		}
	}
}

// A proxy that refuses is not measured as a fast one.
func TestRunSeesRefusals(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"401": http.StatusUnauthorized, "another answer": http.StatusOK} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.HandleFunc("GET "+usedPath, writeUsed)
			mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			srv := httptest.NewServer(mux)
			t.Cleanup(srv.Close)
			_, err := newClient(1, "token").run(srv.URL, options{concurrency: 1, time: time.Minute})
			if err == nil || !strings.Contains(err.Error(), "answered") {
				t.Errorf("run = %v, want an error", err)
			}
		})
	}
}
