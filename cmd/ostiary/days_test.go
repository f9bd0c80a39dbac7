package main

import (
	"testing"
	"time"
)

// Durations of flags may be written in days.
func TestDays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want time.Duration
		out  string
		ok   bool
	}{
		{"14d", 14 * day, "14d", true},
		{"48h", 2 * day, "2d", true},
		{"90m", 90 * time.Minute, "1h30m0s", true},
		{"0d", 0, "", true},
		{in: "14"}, {in: "d"}, {in: "-1d"}, {in: "1.5d"}, {in: "99999999999999999999d"}, {in: "1d12h"}, {in: ""},
	} {
		var got days
		if err := got.Set(tt.in); (err == nil) != tt.ok || time.Duration(got) != tt.want {
			t.Errorf("Set(%q) = %s, %v; want %s, ok %t", tt.in, time.Duration(got), err, tt.want, tt.ok)
		}
		if got.String() != tt.out {
			t.Errorf("%q is written %q, want %q", tt.in, got.String(), tt.out)
		}
	}
}
