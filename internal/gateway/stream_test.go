package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/gateway"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// eventStream is an upstream that sends what it is told, when it is told.
type eventStream struct {
	send  chan string
	ended chan error // why the request ended
}

func newEventStream(f *fixture) *eventStream {
	s := &eventStream{send: make(chan string), ended: make(chan error, 1)}
	f.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		c := http.NewResponseController(w)
		_ = c.Flush()
		for {
			select {
			case event, open := <-s.send:
				if !open {
					s.ended <- nil
					return
				}
				_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
				_ = c.Flush()
			case <-r.Context().Done():
				s.ended <- r.Context().Err()
				return
			}
		}
	})
	return s
}

// open begins a stream and returns its lines.
func (f *fixture) open(t *testing.T, ctx context.Context, method, token string) (*http.Response, *bufio.Scanner) {
	t.Helper()
	body := ""
	if method == http.MethodPost {
		body = call
	}
	r, err := http.NewRequestWithContext(ctx, method, f.front.URL+"/mcp", strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res, bufio.NewScanner(res.Body)
}

func next(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		if event, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return event
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return ""
}

// Each event is read before the upstream is told to send the next: one that were
// held back anywhere would leave both waiting. The clock has no part in it.
func TestStreamsAreNotBuffered(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		f := newFixture(t)
		s := newEventStream(f)
		res, lines := f.open(t, t.Context(), method, f.token(t))
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%s: %d %v", method, res.StatusCode, res.Header)
		}
		for i := range 20 {
			want := fmt.Sprint(i)
			s.send <- want
			if got := next(t, lines); got != want {
				t.Fatalf("%s: event %q, want %q", method, got, want)
			}
		}
		close(s.send)
		if lines.Scan() && lines.Text() != "" || lines.Err() != nil {
			t.Errorf("%s: the stream did not end: %q %v", method, lines.Text(), lines.Err())
		}
	}
}

func TestClientCancelReachesUpstream(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		f := newFixture(t)
		s := newEventStream(f)
		ctx, cancel := context.WithCancel(t.Context())
		_, lines := f.open(t, ctx, method, f.token(t))
		s.send <- "1"
		next(t, lines)
		cancel()
		if err := <-s.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the upstream's request ended with %v", method, err)
		}
	}
	t.Run("before the answer began", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		begun, ended := make(chan bool), make(chan bool)
		f.answers(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			close(ended)
		})
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.front.URL+"/mcp", strings.NewReader(call))
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+f.token(t))
		go func() { <-begun; cancel() }()
		if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		<-ended
	})
}

// A stream ends with its token, properly for the client and at once for the
// upstream. The token lives for a second or two of the real clock.
func TestStreamEndsWithToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := newEventStream(f)
	token := f.token(t, map[string]any{"exp": time.Now().Add(2 * time.Second).Unix()})
	_, lines := f.open(t, t.Context(), http.MethodGet, token)
	s.send <- "1"
	next(t, lines)
	if err := <-s.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the upstream's request ended with %v", err)
	}
	for lines.Scan() {
		if lines.Text() != "" {
			t.Errorf("behind the end: %q", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the client sees %v, want the end of an answer", err)
	}
}

// A gateway that stops ends what clients listen to and finishes what they asked.
func TestDrain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	listening := newEventStream(f)
	_, lines := f.open(t, t.Context(), http.MethodGet, f.token(t))
	listening.send <- "1"
	next(t, lines)
	calling := newEventStream(f)
	_, answer := f.open(t, t.Context(), http.MethodPost, f.token(t))
	calling.send <- "1"
	next(t, answer)
	f.gateway.Drain()
	if err := <-listening.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("what the upstream streams ended with %v", err)
	}
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the client sees %v, want the end of an answer", err)
	}
	calling.send <- "2"
	if got := next(t, answer); got != "2" {
		t.Errorf("the call's answer goes on with %q", got)
	}
	close(calling.send)
}

// A broken answer is a broken connection, never one that seems to be whole.
func TestUpstreamBreaksOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.answers(hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n"))
	res := f.post(t, call)
	if b, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("read %q without an error", b)
	}
}

// What takes the upstream's place gets the token, and only what was let in.
func TestNext(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	f := newFixture(t, func(_ *fixture, o *gateway.Options) {
		o.Upstream, o.Next = "", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- subjectOf(r) })
	})
	must(t, f.gateway.Ready(t.Context()))
	if s := f.do(t, http.MethodPost, "/mcp", call).StatusCode; s != http.StatusUnauthorized {
		t.Errorf("without a token: %d", s)
	}
	f.post(t, call)
	if sub := <-got; sub != "u_1" {
		t.Errorf("subject = %q", sub)
	}
}

func subjectOf(r *http.Request) string {
	token, ok := resourceserver.TokenFromContext(r.Context())
	if !ok {
		return ""
	}
	return token.Subject
}

// Over HTTP/2, which clients speak when the gateway has a certificate, nothing is
// different: streams are not held back, and no other spelling arrives.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	front := httptest.NewUnstartedServer(f.gateway)
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	s := newEventStream(f)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/mcp", strings.NewReader(call))
	must(t, err)
	for name, value := range map[string]string{"Authorization": "Bearer " + f.token(t), "X_Ostiary_Subject": "admin", "Te": "trailers", "Cookie": "a=b"} {
		r.Header.Set(name, value)
	}
	r.Trailer = http.Header{"X-Ostiary-Subject": {"admin"}}
	res, err := front.Client().Do(r)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	for _, want := range []string{"1", "2"} {
		s.send <- want
		if got := next(t, lines); res.ProtoMajor != 2 || got != want {
			t.Fatalf("%s: event %q, want %q", res.Proto, got, want)
		}
	}
	close(s.send)
	got := f.only(t)
	for name := range got.Header {
		if folded(name) == "x-ostiary-subject" || name == "Te" || name == "Cookie" {
			t.Errorf("%s arrived", name)
		}
	}
	if got.body != call || len(got.Trailer) > 0 || got.Host != f.upstream.Listener.Addr().String() {
		t.Errorf("upstream got %q, trailers %v, host %s", got.body, got.Trailer, got.Host)
	}
}
