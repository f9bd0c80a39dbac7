package registration

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestCI16_FreshFor(t *testing.T) {
	for _, tt := range []struct {
		name string
		cc   []string
		want time.Duration
	}{
		{"nothing said", nil, time.Hour},
		{"in between", []string{"public, max-age=1800"}, 30 * time.Minute},
		{"Claude's five minutes", []string{"max-age=300"}, 5 * time.Minute},
		{"ten years", []string{"max-age=315360000, immutable"}, 24 * time.Hour},
		{"more than a number holds", []string{"max-age=99999999999999999999"}, 24 * time.Hour},
		{"zero", []string{"max-age=0, must-revalidate"}, 5 * time.Minute},
		{"no-store", []string{"no-store"}, 5 * time.Minute},
		{"no-cache behind max-age", []string{"max-age=3600", "no-cache"}, 5 * time.Minute},
		{"private", []string{"private, max-age=86400"}, 5 * time.Minute},
		{"s-maxage before max-age", []string{"s-maxage=600, max-age=86400"}, 10 * time.Minute},
		{"s-maxage behind max-age", []string{"max-age=86400, S-MaxAge=600"}, 10 * time.Minute},
		{"quoted", []string{`max-age="1800"`}, 30 * time.Minute},
		{"negative", []string{"max-age=-1"}, 5 * time.Minute},
		{"no number", []string{"max-age=soon"}, 5 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := freshFor(http.Header{"Cache-Control": tt.cc}); got != tt.want {
				t.Errorf("%q: %s, want %s", tt.cc, got, tt.want)
			}
		})
	}
}

func TestRetryPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: time.Minute, 1: 2 * time.Minute, 3: 8 * time.Minute, 6: time.Hour, 1 << 40: time.Hour} {
		if got := (ClientDocument{Failures: failures}).retryPause(); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}

func TestValidator(t *testing.T) {
	for value, want := range map[string]string{`W/"a"`: `W/"a"`, "": "", "a\x00": "", "ä": "", strings.Repeat("a", 257): ""} {
		if got := validator(value); got != want {
			t.Errorf("validator(%q) = %q, want %q", value, got, want)
		}
	}
}
