package resourceserver_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// An outage that every request meets does not fill the log.
func TestM8_OutageWarnsOnceAMinute(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := newFixture(t, func(o *resourceserver.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	f.issuer.set(func(i *issuer) { i.status = 500 })
	token := f.token(t, "notes:read")
	for range 13 { // two minutes
		for range 5 {
			if w := f.get(token); w.Code != http.StatusServiceUnavailable {
				t.Fatalf("status = %d", w.Code)
			}
		}
		f.advance(10 * time.Second)
	}
	var warned []string
	for _, m := range regexp.MustCompile(`level=WARN msg="request refused".* cause=.*status 500.* held_back=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		warned = append(warned, m[1])
	}
	if want := []string{"0", "29", "29"}; !slices.Equal(warned, want) {
		t.Errorf("warnings hold back %q, want %q", warned, want)
	}
	if n := strings.Count(log.String(), `level=DEBUG msg="request refused"`); n != 62 {
		t.Errorf("%d lines at debug level, want 62 of 65", n)
	}
}
