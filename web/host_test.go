package web_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/ostiary-auth/ostiary/web"
)

func TestNewHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		url  string
		want web.Host
	}{
		{"https://calendar.mcp.fernhill.example/mcp", web.Host{Before: "calendar.mcp.", Bold: "fernhill.example"}},
		{"https://fernhill.example", web.Host{Bold: "fernhill.example"}},
		{"https://a.b.co.uk:8443/", web.Host{Before: "a.", Bold: "b.co.uk", After: ":8443"}},
		{"https://someone.github.io/", web.Host{Bold: "someone.github.io"}},
		{"https://co.uk/", web.Host{Bold: "co.uk"}},
		{"http://127.0.0.1:53682/cb", web.Host{Bold: "127.0.0.1", After: ":53682"}},
		{"http://[::1]:9002/cb", web.Host{Bold: "[::1]", After: ":9002"}},
		{"http://localhost:3000/", web.Host{Bold: "localhost", After: ":3000"}},
		{"https://BÜCHER.example/", web.Host{Bold: "xn--bcher-kva.example", Letters: "bücher.example"}},
		{"https://аpple.com/", web.Host{Bold: "xn--pple-43d.com", Letters: "аpple.com"}},
		{"https://login.xn--bcher-kva.example:8443/", web.Host{Before: "login.", Bold: "xn--bcher-kva.example", After: ":8443", Letters: "login.bücher.example"}},
		{"https://xn--quil-i66a.example/", web.Host{Before: "xn--quil-i66a.example"}}, // no valid punycode
		{"https://APP.Atlas.EXAMPLE./", web.Host{Before: "app.", Bold: "atlas.example"}},
		{"https://apple.com.evil.example/", web.Host{Before: "apple.com.", Bold: "evil.example"}},
		{"https://apple.com@evil.example/", web.Host{Bold: "evil.example"}},
		{"not a url", web.Host{Before: "notaurl"}},
		{"", web.Host{}},
	} {
		if got := web.NewHost(tt.url); got != tt.want {
			t.Errorf("NewHost(%q) = %+v, want %+v", tt.url, got, tt.want)
		}
	}
}

func FuzzNewHost(f *testing.F) {
	for _, s := range []string{"https://a.b.co.uk:8443/", "http://[::1%25eth0]:1/", "https://xn--/", "https://\u202e.example", "cursor://x", "://", "http://[fe80::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, r := range web.NewHost(raw).String() {
			if r <= 0x20 || r >= 0x7f {
				t.Fatalf("NewHost(%q) shows %U", raw, r)
			}
		}
		for _, r := range web.NewHost(raw).Letters {
			if !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("NewHost(%q) has %U in its letters", raw, r)
			}
		}
		if strings.Contains(web.NewHost(raw).Bold, "@") {
			t.Fatalf("NewHost(%q) has userinfo in bold", raw)
		}
	})
}
