package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/obs"
)

func TestLoggerAddsRequestID(t *testing.T) {
	t.Parallel()
	ctx := audit.WithSource(context.Background(), audit.Source{RequestID: "r-1"})
	var buf bytes.Buffer
	log, err := obs.NewLogger(&buf, obs.LogOptions{Level: "debug"})
	if err != nil {
		t.Fatal(err)
	}
	log.With("component", "x").DebugContext(ctx, "token issued", slog.Any("token", oauth.Secret("hunter2")))
	var line map[string]any
	if err := json.Unmarshal(buf.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line["request_id"] != "r-1" || line["token"] != "[redacted]" || line["component"] != "x" {
		t.Errorf("line = %v", line)
	}
}

func TestLoggerOptions(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	log, err := obs.NewLogger(&buf, obs.LogOptions{Format: "text", Level: "warn"})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("quiet")
	log.Warn("loud")
	if got := buf.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "msg=loud") || strings.Contains(got, "request_id") {
		t.Errorf("log = %q", got)
	}
	for _, o := range []obs.LogOptions{{Format: "xml"}, {Level: "loud"}} {
		if _, err := obs.NewLogger(&buf, o); err == nil {
			t.Errorf("NewLogger(%+v) was accepted", o)
		}
	}
}

func scrape(t *testing.T, m *obs.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	return rec.Body.String()
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	m := obs.NewMetrics()
	h := m.Middleware("/mcp", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp/token" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	for _, path := range []string{"/mcp/token", "/mcp/return/abc", "/.well-known/oauth-authorization-server/mcp"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	got := scrape(t, m)
	for _, want := range []string{
		`ostiary_http_requests_total{method="GET",route="/token",status="401"} 1`,
		`ostiary_http_requests_total{method="GET",route="/return",status="200"} 1`,
		`ostiary_http_requests_total{method="GET",route="/.well-known",status="200"} 1`,
		`ostiary_http_request_duration_seconds_count{route="/token"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// Strangers choose paths and methods; the series must not grow with them.
func TestLG06_DO04_LabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := obs.NewMetrics()
	h := m.Middleware("", http.NotFoundHandler())
	for i := range 500 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(fmt.Sprintf("M%d", i), fmt.Sprintf("/x%d", i), nil))
	}
	if n := strings.Count(scrape(t, m), "ostiary_http_requests_total{"); n != 1 {
		t.Errorf("%d series after 500 strange requests, want 1", n)
	}
}
