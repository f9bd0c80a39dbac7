package grant_test

import (
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
)

func TestLive(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	future, past := now.Add(time.Hour), now.Add(-time.Second)
	for _, tt := range []struct {
		name string
		g    grant.Grant
		want bool
	}{
		{"refreshable", grant.Grant{Generation: 1, RefreshExpiresAt: future, ExpiresAt: future}, true},
		{"D9 without a refresh token", grant.Grant{Generation: 1, ExpiresAt: future}, true},
		{"D10 a code not used yet", grant.Grant{CodeExpiresAt: future, ExpiresAt: future}, true},
		{"D17 a code too old", grant.Grant{CodeExpiresAt: past, ExpiresAt: future}, false},
		{"RT-10 idle", grant.Grant{Generation: 3, RefreshExpiresAt: now, ExpiresAt: future}, false},
		{"RT-10 absolute", grant.Grant{Generation: 3, RefreshExpiresAt: future, ExpiresAt: now}, false},
		{"ended", grant.Grant{Generation: 3, RefreshExpiresAt: future, ExpiresAt: future, EndedAt: past}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.g.Live(now); got != tt.want {
				t.Errorf("Live = %t, want %t", got, tt.want)
			}
		})
	}
}
