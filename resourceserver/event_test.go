package resourceserver

import (
	"bytes"
	"slices"
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

// clientEvents is the data of the events that a client finds in a stream (HTML
// Standard, "interpreting an event stream"), written anew to hold ours against.
func clientEvents(stream string) (events []string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	var data []string
	lines := strings.Split(stream, "\n")
	for _, line := range lines[:len(lines)-1] { // what no line end follows is no line
		switch name, value, _ := strings.Cut(line, ":"); {
		case line == "":
			if all := strings.Join(data, "\n"); all != "" {
				events = append(events, all)
			}
			data = nil
		case name == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return events
}

// FuzzFilteredEvents: what clients find in a filtered stream is what they would
// have found in the other, each event filtered: nothing slips past in a spelling
// that they read and we do not.
func FuzzFilteredEvents(f *testing.F) {
	for _, s := range []string{
		"data: secret\n\n", "data: a\r\n\r\ndata: secret\r\rdata\n\n", "\ufeffdata: secret\n\n", "\ufeff\ndata: secret\n\n", "data: x\n\n\ufeffdata: secret\n\n",
		":x\n\ufeffdata: secret\n\n", "id: 1\ndata:secret\nretry: 5\n\n", "data: a\ndata: secret\ndata\n\n", "data : secret\n\n", "Data: secret\n\n", "data: secret",
		"data: secret\n", "\rdata: secret\n\r\n", "data\x00: secret\n\n", "data: secret\rdata: a\n\ndata: b\n\n", "data: secret\nid: 1\rdata: a\n\ndata: b\n\n",
	} {
		f.Add([]byte(s), 1)
		f.Add([]byte(s), 1000)
	}
	hide := func(data string) string {
		if strings.Contains(data, "secret") {
			return "hidden\nfrom you"
		}
		return data
	}
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		out := readEvents(t, stream, max(1, size%64), func(b []byte) ([]byte, error) { return []byte(hide(string(b))), nil })
		var want []string
		for _, e := range clientEvents(string(stream)) {
			want = append(want, hide(e))
		}
		if got := clientEvents(string(out)); !slices.Equal(got, want) {
			t.Fatalf("%q became %q: clients find %q, want %q", stream, out, got, want)
		}
	})
}
