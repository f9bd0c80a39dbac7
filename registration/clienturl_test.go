package registration

import (
	"net/url"
	"strings"
	"testing"
)

func TestClientURL(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		want      bool
	}{
		{"Claude", "https://claude.ai/oauth/mcp-oauth-client-metadata", true},
		{"ChatGPT", "https://chatgpt.com/oauth/abc_123/client.json", true},
		{"a port", "https://app.example:8443/client.json", true},
		{"§3 a query is allowed", "https://app.example/client?v=1", true},
		{"an encoded character", "https://app.example/a%20b", true},
		{"dots inside a segment", "https://app.example/v1..2/.well-known/x", true},
		{"the longest", "https://app.example/" + strings.Repeat("a", 492), true},
		{"CI-01 http", "http://app.example/client", false},
		{"CI-01 another scheme", "ftp://app.example/client", false},
		{"CI-01 upper case scheme", "HTTPS://app.example/client", false},
		{"CI-01 no path", "https://app.example", false},
		{"CI-01 root path", "https://app.example/", false},
		{"CI-01 only slashes", "https://app.example///", false},
		{"CI-01 root path and query", "https://app.example/?a=b", false},
		{"CI-01 fragment", "https://app.example/client#a", false},
		{"CI-01 empty fragment", "https://app.example/client#", false},
		{"CI-01 user", "https://user@app.example/client", false},
		{"CI-01 user and password", "https://user:secret@app.example/client", false},
		{"CI-01 a host behind a user", "https://claude.ai@evil.example/client", false},
		{"CI-01 dot segment", "https://app.example/./client", false},
		{"CI-01 double dot segment", "https://app.example/a/../client", false},
		{"CI-01 final dot segment", "https://app.example/a/..", false},
		{"CI-01 encoded dot segment", "https://app.example/%2e%2E/client", false},
		{"CI-01 half encoded dot segment", "https://app.example/.%2e/client", false},
		{"CI-01 dots behind an encoded slash", "https://app.example/a%2f..%2fclient", false},
		{"CI-01 encoded NUL", "https://app.example/a%00", false},
		{"CI-01 broken encoding", "https://app.example/a%zz", false},
		{"CI-01 space", "https://app.example/a b", false},
		{"CI-01 tab", "https://app.example/a\tb", false},
		{"CI-01 line break", "https://app.example/a\nb", false},
		{"CI-01 NUL", "https://app.example/a\x00b", false},
		{"CI-01 backslash", "https://app.example\\@evil.example/client", false},
		{"CI-01 quote", `https://app.example/"`, false},
		{"upper case host", "https://App.example/client", false},
		{"port 443", "https://app.example:443/client", false},
		{"port 0", "https://app.example:0/client", false},
		{"empty port", "https://app.example:/client", false},
		{"padded port", "https://app.example:08443/client", false},
		{"final dot", "https://app.example./client", false},
		{"CI-19 letters that look alike", "https://claudе.ai/client", false},
		{"no host", "https:///client", false},
		{"too long", "https://app.example/" + strings.Repeat("a", 493), false},
		{"empty", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := IsClientURL(tt.raw); got != tt.want {
				t.Errorf("IsClientURL(%q) = %t, want %t (%v)", tt.raw, got, tt.want, checkClientURL(tt.raw))
			}
		})
	}
}

func TestClientHost(t *testing.T) {
	for id, want := range map[string]string{"https://claude.ai/oauth/x": "claude.ai", "https://app.example:8443/x": "app.example:8443",
		"mfrggzdfmztwq2lk": "", "https://app.example/": ""} {
		if got := ClientHost(id); got != want {
			t.Errorf("ClientHost(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestHostPolicy(t *testing.T) {
	p := HostPolicy{{"*", TrustAsk}, {"*.example.com", TrustDeny}, {"good.example.com", TrustAllow}, {"*.deep.example.com", TrustAllow}}
	for host, want := range map[string]Trust{"app.example.com": TrustDeny, "good.example.com": TrustAllow, "good.example.com:8443": TrustAllow,
		"x.deep.example.com": TrustAllow, "example.com": TrustAsk, "notexample.com": TrustAsk, "claude.ai": TrustAsk} {
		if got := p.For(host); got != want {
			t.Errorf("For(%q) = %q, want %q", host, got, want)
		}
	}
	if got := HostPolicy(nil).For("claude.ai"); got != TrustAllow {
		t.Errorf("without a policy %q", got)
	}
}

// FuzzClientURL: what is accepted is a URL that every parser reads alike.
func FuzzClientURL(f *testing.F) {
	for _, seed := range []string{"https://claude.ai/oauth/x", "https://a.example/%2e%2e/x", "https://u@a.example/x", "https://[::1]/x", "https://a.example:1/x?y#z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if !IsClientURL(raw) {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.Host != ClientHost(raw) || u.User != nil || u.Fragment != "" || strings.Contains(u.Path, "/../") {
			t.Errorf("%q is accepted and parsed as %+v, %v", raw, u, err)
		}
	})
}
