package registration

import (
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestCheckRedirectURI(t *testing.T) {
	public := RedirectPolicy{Public: true}
	for _, tt := range []struct {
		name, raw, want string
		policy          RedirectPolicy
	}{
		{name: "A10 https", raw: "https://app.example/cb"},
		{name: "A10 https with port and query", raw: "https://app.example:8443/cb?tenant=a+b"},
		{name: "A10 https without path", raw: "https://app.example"},
		{name: "A10 https on an IP literal", raw: "https://[2001:db8::1]/cb"},
		{name: "A10 loopback name", raw: "http://localhost:8787/callback", policy: public},
		{name: "A8 loopback without port", raw: "http://127.0.0.1/callback", policy: public},
		{name: "A8 loopback IPv6", raw: "http://[::1]:1/callback", policy: public},
		{name: "A9 loopback port 0", raw: "http://localhost:0/callback", policy: public},
		{name: "A10 loopback for a client with a secret", raw: "http://localhost/callback"},
		{name: "D12 reverse-domain scheme", raw: "com.example.app:/cb", policy: public},
		{name: "D12 shipped exact URI", raw: "cursor://anysphere.cursor-mcp/oauth/callback", policy: public},
		{name: "D12 operator adds another scheme", raw: "myapp://cb", policy: RedirectPolicy{Public: true, Operator: true}},
		{name: "RU-18 IDN host becomes punycode", raw: "https://bücher.example:8443/cb", want: "https://xn--bcher-kva.example:8443/cb"},
		{name: "RU-18 ideographic full stop", raw: "https://app。example/cb", want: "https://app.example/cb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.want = tt.raw
			}
			got, err := CheckRedirectURI(tt.raw, tt.policy)
			if err != nil || got != tt.want {
				t.Errorf("CheckRedirectURI(%q) = %q, %v; want %q", tt.raw, got, err, tt.want)
			}
		})
	}
}

func TestCheckRedirectURIRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		raws []string
	}{
		{"RU-06 fragment", []string{"https://app.example/cb#", "https://app.example/cb#x", "com.example.app:/cb#", "http://127.0.0.1/#"}},
		{"RU-12 dangerous scheme", []string{
			"javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:https://app.example/1",
			"about:blank", "JaVaScRiPt:alert(1)", "\tjavascript:alert(1)", "java\nscript:alert(1)", " javascript:x",
			"javascript://app.example/%0aalert(1)", "view-source:https://app.example/", "filesystem:https://app.example/x"}},
		{"RU-13 wildcard", []string{
			"*", "https://*/cb", "https://*.example/cb", "https://app.example/*", "https://app.example/cb?x=*",
			"https://app.example/(a|b)", "https://app.example/[a-z]", "https://app.example/.+", "https://app.example/cb$",
			"https://app.example/^cb", "https://(app|web).example/", "com.example.app:/*", "http://127.0.0.1:*/cb"}},
		{"RU-14 http to another host", []string{
			"http://app.example/cb", "http://127.0.0.2/cb", "http://127.1/cb", "http://2130706433/", "http://0.0.0.0/cb",
			"http://[::ffff:127.0.0.1]/cb", "http://localhost./cb", "http://localhost.evil.example/cb", "http://LOCALHOST/cb"}},
		{"RU-15 response parameter", []string{
			"https://app.example/cb?code=1", "https://app.example/cb?a=b&state=x", "https://app.example/cb?iss=x",
			"https://app.example/cb?error", "https://app.example/cb?%63ode=1", "https://app.example/cb?a=1;code=2",
			"com.example.app:/cb?code=1"}},
		{"A10 userinfo", []string{"https://u@app.example/cb", "https://u:p@app.example/cb", "http://127.0.0.1@evil.example/", "http://evil@127.0.0.1/", "http://127.0.0.1:80@evil.example/"}},
		{"A10 control and other characters", []string{
			"https://app.example/c\x00b", "https://app.example/\r\nSet-Cookie:x", "https://app.example/a b", "https://app.example/<x>",
			"https://app.example/\"", "https://app.example/'", "https://app.example\\@evil.example/", "https://app.example/é",
			"https://app.example/%0d%0a", "https://app.example/%zz", "https://app.example/\xff"}},
		{"A10 not absolute", []string{"", "/cb", "app.example/cb", "//app.example/cb", "https:", "https:/app.example/cb", "https:///cb", "HTTPS://app.example/cb"}},
		{"A10 port", []string{"https://app.example:/cb", "https://app.example:080/cb", "https://app.example:65536/cb", "https://app.example:x/cb", "http://localhost:/cb", "http://[::1]:-1/"}},
		{"A10 host", []string{"https://app..example/cb", "https://.example/cb", "https://app%2eexample/cb", "https://-app.example/", "https://[::1/cb", "https://[fe80::1%25eth0]/"}},
		{"A10 dot segments", []string{"https://app.example/x/../cb", "https://app.example/%2e%2e/cb", "https://app.example/./cb"}},
		{"D12 other private-use scheme", []string{"myapp:/cb", "cursor://other/cb", "com.example.app://cb", "com.example.app:", "com.example.app:/", "com.example.app:cb", "cursor://anysphere.cursor-mcp/oauth/callback2", ".app:/cb", "app.:/cb"}},
		{"DR-05 longer than 2 KiB", []string{"https://app.example/" + strings.Repeat("a", 2048)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, raw := range tt.raws {
				if got, err := CheckRedirectURI(raw, RedirectPolicy{Public: true}); oauth.Code(err) != "invalid_redirect_uri" {
					t.Errorf("CheckRedirectURI(%q) = %q, %v; want invalid_redirect_uri", raw, got, err)
				}
			}
		})
	}
	t.Run("D12 private-use scheme of a client with a secret", func(t *testing.T) {
		for _, raw := range []string{"com.example.app:/cb", "cursor://anysphere.cursor-mcp/oauth/callback"} {
			if _, err := CheckRedirectURI(raw, RedirectPolicy{Operator: true}); oauth.Code(err) != "invalid_redirect_uri" {
				t.Errorf("CheckRedirectURI(%q) = %v, want invalid_redirect_uri", raw, err)
			}
		}
	})
	t.Run("RU-12 not even by the operator", func(t *testing.T) {
		for _, raw := range []string{"javascript:/x", "file:///x", "http://app.example/cb", "myapp://*/cb", "myapp://u@h/cb", "myapp:/cb#"} {
			if _, err := CheckRedirectURI(raw, RedirectPolicy{Public: true, Operator: true}); oauth.Code(err) != "invalid_redirect_uri" {
				t.Errorf("CheckRedirectURI(%q) = %v, want invalid_redirect_uri", raw, err)
			}
		}
	})
}

func TestMatchRedirectURI(t *testing.T) {
	registered := []string{"https://app.example/cb", "http://127.0.0.1/cb", "com.example.app:/cb"}
	accept := []struct {
		name, got  string
		registered []string
	}{
		{"A8 exact", "https://app.example/cb", registered},
		{"A8 private-use", "com.example.app:/cb", registered},
		{"RU-08 loopback any port", "http://127.0.0.1:49152/cb", registered},
		{"RU-08 loopback without port", "http://127.0.0.1/cb", registered},
		{"A9 registered with another port", "http://localhost:50000/callback", []string{"http://localhost:8787/callback"}},
		{"A9 registered with port 0", "http://localhost:50000/callback", []string{"http://localhost:0/callback"}},
		{"A9 registered with a port, asked without", "http://[::1]/", []string{"http://[::1]:1/"}},
		{"A8 registered in upper case", "https://APP.example/cb", []string{"https://APP.example/cb"}},
		{"RU-18 punycode as stored", "https://xn--bcher-kva.example/cb", []string{"https://xn--bcher-kva.example/cb"}},
	}
	for _, tt := range accept {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := MatchRedirectURI(tt.registered, tt.got); err != nil || got != tt.got {
				t.Errorf("MatchRedirectURI(%q) = %q, %v; want it as it is", tt.got, got, err)
			}
		})
	}
	for _, tt := range []struct {
		name string
		gots []string
	}{
		{"RU-01 variants", []string{"https://app.example/cb/", "https://app.example/cb/x", "https://app.example/cb?x=1", "https://app.example/CB", "https://app.example/cb;x", "https://app.example/cb%2e", "https://app.example/cb?", "https://app.example"}},
		{"RU-02 host case and default port", []string{"https://APP.example/cb", "https://app.example:443/cb", "HTTPS://app.example/cb"}},
		{"RU-03 dot segments", []string{"https://app.example/x/../cb", "https://app.example/%2e%2e/cb"}},
		{"RU-05 other host", []string{"https://sub.app.example/cb", "https://app.example.evil.example/cb", "https://xapp.example/cb"}},
		{"RU-06 fragment", []string{"https://app.example/cb#", "https://app.example/cb#x", "http://127.0.0.1:1/cb#", "com.example.app:/cb#"}},
		{"RU-07 downgrade and port", []string{"http://app.example/cb", "https://app.example:8443/cb", "https://127.0.0.1/cb"}},
		{"RU-08 loopback path, query, userinfo, port", []string{
			"http://127.0.0.1:49152/other", "http://127.0.0.1:49152/cb?x=1", "http://127.0.0.1:49152/cb/", "http://u@127.0.0.1:49152/cb",
			"http://127.0.0.1:0/cb", "http://127.0.0.1:/cb", "http://127.0.0.1:00080/cb", "http://127.0.0.1:65536/cb", "http://127.0.0.1:1:2/cb",
			"http://127.0.0.1:80@evil.example/cb", "http://127.0.0.1\\@evil.example/cb", "http://127.0.0.1:49152/c%62"}},
		{"RU-09 other spellings of loopback", []string{
			"http://localhost:1/cb", "http://127.0.0.2/cb", "http://127.1/cb", "http://2130706433/cb", "http://0x7f.1/cb", "http://0.0.0.0/cb",
			"http://[::ffff:127.0.0.1]/cb", "http://[::1]:1/cb", "http://localhost./cb", "http://localhost.evil.example/cb", "http://127.0.0.1.nip.io/cb"}},
		{"RU-18 Unicode form", []string{"https://äpp.example/cb"}},
		{"D15 characters that end a header or an attribute", []string{"http://127.0.0.1:1/cb\r\nX: y", "https://app.example/cb ", "https://app.example/cb\""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, raw := range tt.gots {
				if got, err := MatchRedirectURI(registered, raw); oauth.Code(err) != "invalid_request" {
					t.Errorf("MatchRedirectURI(%q) = %q, %v; want invalid_request", raw, got, err)
				}
			}
		})
	}
	t.Run("RU-09 reverse", func(t *testing.T) {
		if got, err := MatchRedirectURI([]string{"http://localhost/cb"}, "http://127.0.0.1:1/cb"); err == nil {
			t.Errorf("127.0.0.1 matched localhost: %q", got)
		}
	})
	t.Run("AR-04 none sent", func(t *testing.T) {
		if got, err := MatchRedirectURI(registered, ""); err == nil {
			t.Errorf("none sent, several registered: %q, want an error", got)
		}
		if got, err := MatchRedirectURI(registered[:1], ""); err != nil || got != registered[0] {
			t.Errorf("none sent, one registered: %q, %v; want %q", got, err, registered[0])
		}
		if got, err := MatchRedirectURI([]string{"http://localhost:0/cb"}, ""); err == nil {
			t.Errorf("none sent, port 0 registered: %q, want an error", got)
		}
	})
}

func TestRedirectKey(t *testing.T) {
	for uri, want := range map[string]string{
		"http://127.0.0.1:49152/cb?a=1": "http://127.0.0.1/cb?a=1",
		"http://[::1]:1/cb":             "http://[::1]/cb",
		"https://app.example:8443/cb":   "https://app.example:8443/cb",
		"com.example.app:/cb":           "com.example.app:/cb",
	} {
		if got := RedirectKey(uri); got != want {
			t.Errorf("RedirectKey(%q) = %q, want %q", uri, got, want)
		}
	}
}

func FuzzRedirectURI(f *testing.F) {
	for _, s := range []string{"https://app.example/cb", "http://localhost:0/cb", "com.example.app:/cb", "https://bücher.example/", "https://h#", "javascript:x", "http://127.0.0.1\\@x/"} {
		f.Add(s, true, false)
	}
	f.Fuzz(func(t *testing.T, raw string, public, operator bool) {
		p := RedirectPolicy{Public: public, Operator: operator}
		stored, err := CheckRedirectURI(raw, p)
		if err != nil {
			return
		}
		if !isRedirectText(stored) || strings.Contains(stored, "#") || len(stored) < 3 {
			t.Errorf("%q was stored as %q", raw, stored)
		}
		if again, err := CheckRedirectURI(stored, p); err != nil || again != stored {
			t.Errorf("%q is stored as %q, which is stored as %q, %v", raw, stored, again, err)
		}
		if strings.HasPrefix(stored, "http://") != IsLoopbackRedirect(stored) {
			t.Errorf("%q is http and not loopback", stored)
		}
	})
}

func FuzzMatchRedirectURI(f *testing.F) {
	f.Add("https://app.example/cb", "https://app.example/cb")
	f.Add("http://127.0.0.1/cb", "http://127.0.0.1:49152/cb")
	f.Add("http://localhost:0/cb", "http://localhost:1/cb#")
	f.Add("http://[::1]:1/", "http://[::1]/")
	f.Fuzz(func(t *testing.T, registered, got string) {
		matched, err := MatchRedirectURI([]string{registered}, got)
		if err != nil {
			return
		}
		if !isUsableRedirect(matched) {
			t.Errorf("registered %q, got %q: matched %q cannot stand in a header", registered, got, matched)
		}
		if matched != registered && RedirectKey(matched) != RedirectKey(registered) {
			t.Errorf("registered %q, got %q: matched %q is another place", registered, got, matched)
		}
		if got != "" && matched != got {
			t.Errorf("got %q, matched %q", got, matched)
		}
	})
}
