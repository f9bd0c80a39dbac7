package resourceserver

import (
	"bytes"
	"strings"
	"testing"
)

// readEvents runs a stream through an eventReader in pieces of size bytes.
func readEvents(t *testing.T, stream []byte, size int, message func([]byte) ([]byte, error)) []byte {
	t.Helper()
	e := &eventReader{limit: 1 << 20, message: message}
	var out []byte
	for len(stream) > 0 {
		n := min(size, len(stream))
		b, err := e.read(stream[:n])
		if err != nil {
			t.Fatal(err)
		}
		out, stream = append(out, b...), stream[n:]
	}
	b, err := e.end()
	if err != nil {
		t.Fatal(err)
	}
	return append(out, b...)
}

// FuzzEvents: a stream whose data stays the same passes byte for byte, however
// it is cut into pieces, and the same events are found in it.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		"data: a\n\n", "data: a\r\n\r\ndata: b\r\rdata\n\n", ": ping\n\n:x\ndata: {}\ndata: 1\n\nid: 2\n", "\ufeffdata: a\n\n", "\r", "\n\r\n\r", "event: x\n\n\n\n",
	} {
		f.Add([]byte(s), 1)
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		size = max(1, size%64)
		record := func(to *[]string) func([]byte) ([]byte, error) {
			return func(b []byte) ([]byte, error) {
				*to = append(*to, string(b))
				return b, nil
			}
		}
		var whole, pieces []string
		if got := readEvents(t, stream, len(stream)+1, record(&whole)); !bytes.Equal(got, stream) {
			t.Fatalf("whole: %q became %q", stream, got)
		}
		if got := readEvents(t, stream, size, record(&pieces)); !bytes.Equal(got, stream) {
			t.Fatalf("in pieces of %d: %q became %q", size, stream, got)
		}
		if strings.Join(whole, "\x00") != strings.Join(pieces, "\x00") {
			t.Fatalf("events %q, in pieces of %d %q", whole, size, pieces)
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	e := &eventReader{limit: 100, message: func(b []byte) ([]byte, error) { return b, nil }}
	for range 50 { // comments are sent on and count for nothing
		if out, err := e.read([]byte(": keep-alive\n")); err != nil || string(out) != ": keep-alive\n" {
			t.Fatalf("%q, %v", out, err)
		}
	}
	if out, err := e.read([]byte("data: " + strings.Repeat("a", 200))); err == nil || len(out) > 0 {
		t.Errorf("%q, %v; want an error", out, err)
	}
}
