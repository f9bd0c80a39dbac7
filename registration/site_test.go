package registration

import "testing"

func TestSameSite(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{"one host", "https://app.example/a", "https://app.example/b", true},
		{"ports do not count", "https://app.example:8443/", "https://app.example/", true},
		{"upper case and a final dot", "https://APP.example./", "https://app.example", true},
		{"two hosts of a domain", "https://id.fernhill.example", "https://tools.fernhill.example/cb", true},
		{"a name that only ends alike", "https://fernhill.example", "https://evilfernhill.example", false},
		{"a name in front of another", "https://claude.ai", "https://claude.ai.evil.example", false},
		{"a public suffix is no site", "https://one.github.io", "https://two.github.io", false},
		{"the public suffix itself", "https://github.io/a", "https://github.io/b", true},
		{"a public suffix and what is below it", "https://github.io", "https://one.github.io", false},
		{"two addresses with one end", "https://10.0.0.1/", "https://192.168.0.1/", false},
		{"one address", "https://[2001:db8::1]/", "https://[2001:db8::1]:8443/", true},
		{"no hosts", "com.example.app:/cb", "com.example.app:/cb", false},
		{"no URLs", "\x7f", "\x7f", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := SameSite(tt.a, tt.b); got != tt.want || SameSite(tt.b, tt.a) != tt.want {
				t.Errorf("SameSite(%q, %q) = %t, want %t", tt.a, tt.b, got, tt.want)
			}
		})
	}
}
