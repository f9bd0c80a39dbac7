package app

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestD27_ClockFollowsTheDatabase(t *testing.T) {
	local := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name          string
		remote        time.Duration
		want          time.Duration
		warns, refuse bool
	}{
		{name: "together"},
		{name: "one second is followed in silence", remote: time.Second, want: time.Second},
		{name: "ST-09 ninety seconds apart", remote: -90 * time.Second, want: -90 * time.Second, warns: true},
		{name: "above five minutes the server is not ready", remote: 301 * time.Second, want: 301 * time.Second, warns: true, refuse: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var logs strings.Builder
			c := &clock{local: func() time.Time { return local }, log: slog.New(slog.NewTextHandler(&logs, nil)),
				remote: func(context.Context) (time.Time, error) { return local.Add(tt.remote), nil }}
			if err := c.Measure(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.Now().Sub(local); got != tt.want {
				t.Errorf("offset = %s, want %s", got, tt.want)
			}
			if got := logs.Len() > 0; got != tt.warns {
				t.Errorf("warned = %t, want %t", got, tt.warns)
			}
			if got := c.Check() != nil; got != tt.refuse {
				t.Errorf("refused = %t, want %t", got, tt.refuse)
			}
		})
	}
}

func TestD27_RoundTripIsNoOffset(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c := &clock{log: slog.New(slog.DiscardHandler),
		local:  func() time.Time { now = now.Add(40 * time.Millisecond); return now },
		remote: func(context.Context) (time.Time, error) { return now.Add(30 * time.Millisecond), nil }}
	if err := c.Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(c.offset.Load()); got != 0 {
		t.Errorf("offset = %s, want none", got)
	}
}
