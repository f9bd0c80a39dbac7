package main

import (
	"encoding/json"
	"testing"
	"time"
)

// Every command prints a time alike, be it fresh from the clock or read back.
func TestInstantJSON(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("CET", 3600)
	for _, tt := range []struct {
		name string
		at   time.Time
		want string
	}{
		{"nanoseconds are cut", time.Date(2026, 11, 21, 14, 30, 51, 616673887, time.UTC), `"2026-11-21T14:30:51.616Z"`},
		{"whole second", time.Date(2026, 11, 21, 14, 30, 51, 0, time.UTC), `"2026-11-21T14:30:51.000Z"`},
		{"another zone", time.Date(2026, 11, 21, 15, 30, 51, 0, berlin), `"2026-11-21T14:30:51.000Z"`},
	} {
		got, err := json.Marshal(instant{tt.at})
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	view, err := json.Marshal(userView{})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(view, &members); err != nil {
		t.Fatal(err)
	}
	if _, there := members["last_sign_in_at"]; there {
		t.Errorf("no sign-in is printed as one: %s", view)
	}
}
