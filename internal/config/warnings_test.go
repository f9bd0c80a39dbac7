package config_test

import (
	"strings"
	"testing"
	"time"
)

// A20: clients that registered themselves are kept for 90 days; less is allowed, and told.
func TestA20_ShortIdleExpiryIsTold(t *testing.T) {
	t.Parallel()
	for life, told := range map[time.Duration]bool{0: false, time.Hour: true, 89 * 24 * time.Hour: true, 90 * 24 * time.Hour: false} {
		c := valid()
		c.ClientIdleExpiry = life
		if err := c.Validate(); err != nil {
			t.Fatalf("%s: %v", life, err)
		}
		if got := strings.Contains(strings.Join(c.Warnings(), "\n"), "client_idle_expiry"); got != told {
			t.Errorf("client_idle_expiry %s: told %t, want %t", life, got, told)
		}
	}
}
