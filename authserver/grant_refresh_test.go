package authserver

import (
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
)

func TestStepOf(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name      string
		presented int
		age       time.Duration
		window    time.Duration
		want      step
	}{
		{"D8 the newest rotates", 5, time.Hour, time.Minute, stepRotate},
		{"D8 the one before, inside the window", 4, 60 * time.Second, time.Minute, stepRepeat},
		{"D8 the one before, after the window", 4, 60*time.Second + time.Millisecond, time.Minute, stepReuse},
		{"RT-02 the token before the previous one, at once", 3, 0, time.Minute, stepReuse},
		{"D8 window 0 refuses for 2 s", 4, 2 * time.Second, 0, stepRefuse},
		{"D8 window 0 ends it after 2 s", 4, 2*time.Second + time.Millisecond, 0, stepReuse},
		{"D8 window 0 and the token before the previous one", 3, 0, 0, stepReuse},
		{"D30 one ahead is a lost commit", 6, time.Hour, time.Minute, stepHeal},
		{"D30 further ahead is refused", 7, time.Hour, time.Minute, stepForged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &grant.Grant{Generation: 5, AdvancedAt: now.Add(-tt.age)}
			if got := stepOf(g, tt.presented, tt.window, now); got != tt.want {
				t.Errorf("stepOf = %d, want %d", got, tt.want)
			}
		})
	}
}
