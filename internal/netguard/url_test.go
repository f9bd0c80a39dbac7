package netguard_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

func newClient(t testing.TB, o netguard.Options) *netguard.Client {
	t.Helper()
	c, err := netguard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheck(t *testing.T) {
	t.Parallel()
	c := newClient(t, netguard.Options{
		AllowHosts: []string{"Intern", "app.corp.example:8443", "10.1.2.3", "[fd00::1]:8443", "own.example"},
		OwnHosts:   []string{"own.example", "id.example.com:8443"},
	})
	for _, tt := range []struct{ name, raw, want string }{
		{"public", "https://claude.ai/oauth/claude-code-client-metadata", ""},
		{"query", "https://app.example/client?v=1", ""},
		{"upper case", "HTTPS://APP.Example/client", ""},
		{"port 443", "https://app.example:443/client", ""},
		{"punycode", "https://xn--bcher-kva.example/client", ""},
		{"a number inside a name", "https://10.example/client", ""},
		{"a top-level name like hexadecimal", "https://app.0xide/client", ""},

		{"CI-01 http", "http://app.example/client", "not https"},
		{"CI-01 other scheme", "ftp://app.example/client", "not https"},
		{"CI-01 file", "file:///etc/passwd", "not https"},
		{"CI-01 no scheme", "//app.example/client", "not https"},
		{"CI-01 opaque", "https:app.example", "not a name"},
		{"CI-01 no host", "https:///client", "not a name"},
		{"CI-01 fragment", "https://app.example/client#a", "fragment"},
		{"CI-01 empty fragment", "https://app.example/client#", "fragment"},
		{"CI-01 user name", "https://me@app.example/client", "user name"},
		{"CI-01 user name like a host", "https://app.example:443@10.0.0.1/", "user name"},
		{"CI-01 empty user name", "https://@app.example/client", "user name"},
		{"CI-01 space", "https://app.example/cli ent", "character"},
		{"CI-01 line break", "https://app.example/\r\nHost: x", "character"},
		{"CI-01 backslash", `https://app.example\@10.0.0.1/`, "character"},
		{"CI-01 not ASCII", "https://bücher.example/client", "character"},
		{"CI-01 full-width dot", "https://127。0。0。1/", "character"},
		{"CI-01 escaped dot in the host", "https://127%2e0.0.1/", "cannot be parsed"},
		{"CI-01 long", "https://app.example/" + strings.Repeat("a", 2048), "longer"},

		{"CI-02 IPv4", "https://127.0.0.1/", "is an address"},
		{"CI-02 public IPv4", "https://93.184.216.34/", "is an address"},
		{"CI-02 metadata", "https://169.254.169.254/latest", "is an address"},
		{"CI-02 IPv6", "https://[::1]/", "is an address"},
		{"CI-02 public IPv6", "https://[2606:4700::1111]/", "is an address"},
		{"CI-02 IPv4-mapped", "https://[::ffff:10.0.0.1]/", "is an address"},
		{"CI-02 NAT64", "https://[64:ff9b::a00:1]/", "is an address"},
		{"CI-02 zone", "https://[fe80::1%25eth0]/", "not a name"},
		{"CI-02 decimal", "https://2130706433/", "not a name"},
		{"CI-02 octal", "https://0177.0.0.1/", "not a name"},
		{"CI-02 hexadecimal", "https://0x7f.0x0.0x0.0x1/", "not a name"},
		{"CI-02 one hexadecimal number", "https://0x7f000001/", "not a name"},
		{"CI-02 short", "https://127.1/", "not a name"},
		{"CI-02 empty hexadecimal", "https://127.0x/", "not a name"},
		{"CI-02 trailing dot", "https://127.0.0.1./", "not a name"},

		{"CI-03 single label", "https://app/", "single label"},
		{"CI-03 localhost", "https://localhost/", "single label"},
		{"CI-03 below localhost", "https://a.localhost/", "local network"},
		{"CI-03 trailing dot", "https://app.example./client", "not a name"},
		{"CI-03 localhost with a dot", "https://localhost./", "not a name"},
		{"CI-03 metadata name", "https://metadata.google.internal/", "local network"},
		{"CI-03 metadata name with a dot", "https://metadata.google.internal./", "not a name"},
		{"CI-03 mDNS", "https://printer.local/", "local network"},
		{"CI-03 home", "https://router.home.arpa/", "local network"},
		{"CI-03 underscore", "https://a_b.example/", "not a name"},
		{"CI-03 empty label", "https://app..example/", "not a name"},
		{"CI-03 long label", "https://" + strings.Repeat("a", 64) + ".example/", "not a name"},

		{"CI-11 port", "https://app.example:8443/", "port 8443 is not 443"},
		{"CI-11 ssh", "https://app.example:22/", "port 22 is not 443"},
		{"CI-11 port 0", "https://app.example:0/", "port"},
		{"CI-11 port with a zero", "https://app.example:0443/", "port"},
		{"CI-11 port out of range", "https://app.example:65979/", "port"},
		{"CI-11 empty port", "https://app.example:/", "port"},

		{"CI-13 own host", "https://own.example/authorize", "this server"},
		{"CI-13 own host, other spelling", "https://OWN.example:443/authorize", "this server"},
		{"CI-13 own port", "https://id.example.com:8443/token", "this server"},
		{"CI-13 other port of our host", "https://id.example.com/client", ""},

		{"allowed single label", "https://intern/client", ""},
		{"allowed host, other port", "https://intern:8443/client", "port 8443"},
		{"allowed port", "https://app.corp.example:8443/client", ""},
		{"below an allowed host", "https://x.app.corp.example:8443/client", "port 8443"},
		{"allowed address", "https://10.1.2.3/client", ""},
		{"allowed address mapped into IPv6", "https://[::ffff:10.1.2.3]/client", ""},
		{"next to an allowed address", "https://10.1.2.4/client", "is an address"},
		{"allowed IPv6 address", "https://[fd00:0::1]:8443/client", ""},
		{"allowed host, http", "http://intern/client", "not https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Check(tt.raw)
			if tt.want == "" && err != nil {
				t.Errorf("Check(%q) = %v, want nil", tt.raw, err)
			}
			if tt.want != "" && (!errors.Is(err, netguard.ErrRefused) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Check(%q) = %v, want ErrRefused and %q", tt.raw, err, tt.want)
			}
		})
	}
}

func TestParseHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ raw, want string }{
		{"app.corp.example", "app.corp.example:443"},
		{"App.Corp.Example:8443", "app.corp.example:8443"},
		{"intern", "intern:443"},
		{"10.1.2.3", "10.1.2.3:443"},
		{"[fd00:0::1]", "[fd00::1]:443"},
		{"[fd00::1]:8443", "[fd00::1]:8443"},
		{"fd00::1", ""},
		{"", ""},
		{":8443", ""},
		{"*.corp.example", ""},
		{"https://app.corp.example", ""},
		{"app.corp.example/", ""},
		{"app.corp.example?", ""},
		{"me@app.corp.example", ""},
		{"10.0.0.0/8", ""},
		{"010.1.2.3", ""},
		{"app.corp.example.", ""},
	} {
		got, err := netguard.ParseHost(tt.raw)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("ParseHost(%q) = %q, %v; want %q", tt.raw, got, err, tt.want)
		}
	}
}

func TestParseProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw string
		ok  bool
	}{
		{"http://proxy:3128", true},
		{"https://proxy.corp.example/", true},
		{"http://user:secret@proxy:3128", true},
		{"proxy:3128", false},
		{"socks5://proxy:1080", false},
		{"http://", false},
		{"http://user:secret@proxy:3128/path", false},
		{"http://user:secret@proxy:port", false},
	} {
		u, err := netguard.ParseProxy(tt.raw)
		if (err == nil) != tt.ok || tt.ok && u.Host == "" {
			t.Errorf("ParseProxy(%q) = %v, %v; want ok %t", tt.raw, u, err, tt.ok)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseProxy(%q): the error tells the password: %v", tt.raw, err)
		}
	}
}

func TestNewJoinsMistakes(t *testing.T) {
	t.Parallel()
	_, err := netguard.New(netguard.Options{AllowHosts: []string{"*.a.example", "b.example"}, OwnHosts: []string{"c/"}, Proxy: "socks5://p"})
	for _, want := range []string{`"*.a.example"`, `"c/"`, "proxy"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %s named", err, want)
		}
	}
}

// FuzzCheck holds that whatever passes is https to port 443 of a dotted name
// that is no address and of this one spelling, whoever parses it.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"https://app.example/client", "https://APP.example:443/?a#b", "https://127.0.0.1", "https://0x7f.1/", "https://[::1]:443/",
		"https://[::ffff:1.2.3.4%25eth0]/", "https://a@b.example", `https://a.example\@b.example`, "https://a.example:00443", "https:a.example",
		"https://a.example.", "https://a..example", "https://xn--a.example", "https://a%2eexample/", "https://2130706433.", "https://a.1e9/",
		"https://a.example:443:443/", "https://[a.example]/", "//a.example", "https://a.localhost", "https://0/", "https://a.0x/",
	} {
		f.Add(seed)
	}
	c := newClient(f, netguard.Options{OwnHosts: []string{"own.example"}})
	f.Fuzz(func(t *testing.T, raw string) {
		err := c.Check(raw)
		if err != nil {
			if !errors.Is(err, netguard.ErrRefused) {
				t.Errorf("Check(%q) = %v, which is not ErrRefused", raw, err)
			}
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Port() != "" && u.Port() != "443" {
			t.Fatalf("Check(%q) passes %#v, %v", raw, u, err)
		}
		host := strings.ToLower(u.Hostname())
		last := host[strings.LastIndex(host, ".")+1:]
		if !strings.Contains(host, ".") || strings.Trim(last, "0123456789") == "" {
			t.Errorf("Check(%q) passes the host %q", raw, host)
		}
		if host == "own.example" || strings.ContainsAny(host, "[]:%@/\\ ") {
			t.Errorf("Check(%q) passes the host %q", raw, host)
		}
	})
}
