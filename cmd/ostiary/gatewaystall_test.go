package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A client that reads nothing does not hold a handler for ever; one that reads
// keeps a stream for longer than the limit of a write.
func TestStallListener(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	failed, next := make(chan error, 1), make(chan bool)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			for range next {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
			}
			return
		}
		block := make([]byte, 1<<20)
		for {
			if _, err := w.Write(block); err != nil {
				failed <- err
				return
			}
		}
	}))
	srv.Listener = &stallListener{Listener: srv.Listener, limit: limit}
	srv.Start()
	t.Cleanup(srv.Close)

	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the write did not fail")
	}

	begun := time.Now()
	go func() { next <- true }()
	res, err := http.Get(srv.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	buf := make([]byte, 1)
	for time.Since(begun) < 2*limit {
		if _, err := io.ReadFull(res.Body, buf); err != nil {
			t.Fatalf("after %s: %v", time.Since(begun), err)
		}
		next <- true
	}
	close(next)
}
