package audit_test

import (
	"testing"

	"github.com/ostiary-auth/ostiary/internal/audit"
)

func TestDO04_SourceClass(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, ip, want string }{
		{"IPv4", "192.0.2.1", "192.0.2.1"},
		{"DO-04 IPv6 by /64", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"DO-04 another address of the /64", "2001:db8:1:2::1", "2001:db8:1:2::/64"},
		{"another /64", "2001:db8:1:3::1", "2001:db8:1:3::/64"},
		{"IPv4 in IPv6", "::ffff:192.0.2.1", "192.0.2.1"},
		{"zone", "fe80::1%eth0", "fe80::/64"},
		{"no address", "not an address", "unknown"},
		{"nothing", "", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := (audit.Source{IP: tt.ip}).Class(); got != tt.want {
				t.Errorf("Class of %q = %q, want %q", tt.ip, got, tt.want)
			}
		})
	}
}
