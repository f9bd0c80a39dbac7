package endpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/obs"
	"github.com/ostiary-auth/ostiary/web"
)

var errBusy = errors.New("SELECT secret FROM clients: database is locked")

// newEdge returns an edge and the log it writes.
func newEdge(t testing.TB, issuer string) (*endpoint.Edge, *bytes.Buffer) {
	t.Helper()
	pages, err := web.New(web.Options{Operator: "Fernhill", Issuer: issuer})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger, err := obs.NewLogger(&log, obs.LogOptions{Level: "debug"})
	if err != nil {
		t.Fatal(err)
	}
	return endpoint.New(endpoint.Options{
		Log: logger, Pages: pages, Now: func() time.Time { return time.Unix(1763721727, 0) },
		Unavailable: func(err error) bool { return errors.Is(err, errBusy) },
	}), &log
}

func failing(err error) endpoint.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) error { return err }
}

func TestJSONErrors(t *testing.T) {
	t.Parallel()
	challenge := &oauth.Error{Code: "invalid_client", Status: 401, Challenge: `Basic realm="x"`}
	for _, tt := range []struct {
		name, code string
		err        error
		status     int
		header     map[string]string
	}{
		{"RFC 6749 5.2 default status", "invalid_grant", oauth.InvalidGrant("gone"), 400, nil},
		{"wrapped", "invalid_scope", fmt.Errorf("redeem: %w", oauth.InvalidScope("none left")), 400, nil},
		{"RFC 6749 5.2 challenge", "invalid_client", challenge, 401, map[string]string{"WWW-Authenticate": `Basic realm="x"`}},
		{"A15 rate limit rounds up", "temporarily_unavailable", oauth.TooManyRequests(1500 * time.Millisecond), 429, map[string]string{"Retry-After": "2"}},
		{"A21 database away", "temporarily_unavailable", fmt.Errorf("get grant: %w", errBusy), 503, map[string]string{"Retry-After": "2"}},
		{"A21 deadline", "temporarily_unavailable", fmt.Errorf("get grant: %w", context.DeadlineExceeded), 503, map[string]string{"Retry-After": "2"}},
		{"LG-03 unknown error", "server_error", errors.New("pq: no column \"secret\" at db7.internal"), 500, nil},
		{"body too large", "invalid_request", &http.MaxBytesError{Limit: 1}, 413, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			edge, log := newEdge(t, "http://localhost:8414")
			w := httptest.NewRecorder()
			edge.JSON(failing(tt.err)).ServeHTTP(w, httptest.NewRequest("POST", "/token", nil))
			var body map[string]string
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatalf("body %q: %v", w.Body, err)
			}
			if w.Code != tt.status || body["error"] != tt.code {
				t.Errorf("got %d %q, want %d %q", w.Code, body["error"], tt.status, tt.code)
			}
			for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Type": "application/json"} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			for name, want := range tt.header {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			for _, leak := range []string{"SELECT", "db7", "secret"} {
				if strings.Contains(w.Body.String(), leak) {
					t.Errorf("LG-03: the answer names the cause: %s", w.Body)
				}
			}
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("logged %d lines, want 1:\n%s", n, log)
			}
			if id := w.Header().Get("X-Request-Id"); !strings.Contains(log.String(), `"request_id":"`+id+`"`) {
				t.Errorf("log lacks request id %q: %s", id, log)
			}
		})
	}
}

func TestLG03DescriptionIsASCII(t *testing.T) {
	t.Parallel()
	edge, _ := newEdge(t, "http://localhost:8414")
	w := httptest.NewRecorder()
	edge.JSON(failing(oauth.InvalidRequest("a \"b\" \\ c\n\u202ed"))).ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	if want := `{"error":"invalid_request","error_description":"a 'b'  cd"}`; w.Body.String() != want {
		t.Errorf("body = %s, want %s", w.Body, want)
	}
}

func TestPageErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		err        error
		status     int
		retry      string
	}{
		{"chosen page", "This page has expired", &endpoint.PageError{Status: 410, Page: web.Error{Case: web.CaseExpired}}, 410, ""},
		{"no status", "This page has expired", &endpoint.PageError{Page: web.Error{Case: web.CaseExpired}}, 400, ""},
		{"oauth error", "We can’t read this request", oauth.InvalidRequest("client_id is missing"), 400, ""},
		{"rate limit", "Too many requests", oauth.TooManyRequests(30 * time.Second), 429, "30"},
		{"CS-01 form token", "That form came from another page", fmt.Errorf("consent: %w", flow.ErrFormToken), 403, ""},
		{"A21 database away", "This server is busy", errBusy, 503, "2"},
		{"too large", "That was too much at once", &http.MaxBytesError{}, 413, ""},
		{"LG-03 unknown error", "Something went wrong here", errors.New("pq: SELECT db7"), 500, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			edge, log := newEdge(t, "http://localhost:8414")
			w := httptest.NewRecorder()
			edge.Page(failing(tt.err)).ServeHTTP(w, httptest.NewRequest("GET", "/consent", nil))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), "<h1>"+tt.want+"</h1>") {
				t.Errorf("got %d, want %d with %q:\n%s", w.Code, tt.status, tt.want, w.Body)
			}
			if got := w.Header().Get("Retry-After"); got != tt.retry {
				t.Errorf("Retry-After = %q, want %q", got, tt.retry)
			}
			id := w.Header().Get("X-Request-Id")
			if len(id) != 9 || !strings.Contains(w.Body.String(), "<b>"+id+"</b>") || !strings.Contains(log.String(), id) {
				t.Errorf("reference %q is not on the page and in the log", id)
			}
			if strings.Contains(w.Body.String(), "SELECT") {
				t.Errorf("the page names the cause")
			}
		})
	}
}

func TestDO06Panic(t *testing.T) {
	t.Parallel()
	boom := func(http.ResponseWriter, *http.Request) error { panic("boom") }
	edge, log := newEdge(t, "http://localhost:8414")
	for name, h := range map[string]http.Handler{"application/json": edge.JSON(boom), "text/html; charset=utf-8": edge.Page(boom)} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 500 || w.Header().Get("Content-Type") != name || strings.Contains(w.Body.String(), "boom") {
			t.Errorf("panic answered %d %s %s", w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
	if !strings.Contains(log.String(), "panic: boom") || !strings.Contains(log.String(), "edge_test.go") {
		t.Errorf("log lacks the panic and its stack: %s", log)
	}
}

func TestErrorAfterAnswerBeganIsOnlyLogged(t *testing.T) {
	t.Parallel()
	edge, log := newEdge(t, "http://localhost:8414")
	w := httptest.NewRecorder()
	edge.JSON(func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, "begun")
		return errors.New("late")
	}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 200 || w.Body.String() != "begun" || !strings.Contains(log.String(), "late") {
		t.Errorf("got %d %q, log %s", w.Code, w.Body, log)
	}
}
