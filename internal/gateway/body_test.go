package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// deadlines is a ResponseWriter that notes when the connection's reads end.
type deadlines struct {
	*httptest.ResponseRecorder
	reads []time.Time
}

// SetReadDeadline is what http.ResponseController calls.
func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.reads = append(d.reads, t)
	return nil
}

// A body that came to its end may be followed by a stream of any length. One that
// did not come in time is read no further, also by net/http before it answers.
func TestBodyTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		body   io.Reader
		lifted bool
	}{
		{"whole", strings.NewReader("{}"), true},
		{"too late", iotest.ErrReader(os.ErrDeadlineExceeded), false},
		{"broken off", iotest.ErrReader(io.ErrUnexpectedEOF), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			before := httptest.NewRequest(http.MethodPost, "/mcp", tt.body)
			own := before.Body
			r := limitBodyTime(w, before)
			if len(w.reads) != 1 || w.reads[0].IsZero() || before.Body != own {
				t.Fatalf("deadlines %v; want one, and the server's own request untouched", w.reads)
			}
			_, _ = io.ReadAll(r.Body)
			if lifted := w.reads[len(w.reads)-1].IsZero(); lifted != tt.lifted {
				t.Errorf("the deadline was lifted: %v, want %v", lifted, tt.lifted)
			}
		})
	}
}
