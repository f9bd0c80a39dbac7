package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
)

// valid returns the configuration of a public server behind a proxy.
func valid() *config.Config {
	c := config.Default()
	c.StateDir = "/var/lib/ostiary"
	c.Issuer = "https://auth.example.com"
	return c
}

func TestMM06_Issuer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, issuer, want string }{
		{"https", "https://auth.example.com", ""},
		{"https with port and path", "https://auth.example.com:8443/oauth/mcp", ""},
		{"https IPv6", "https://[2001:db8::1]", ""},
		{"MM-06 http non-loopback", "http://auth.example.com", "write: issuer: https://auth.example.com"},
		{"MM-06 http non-loopback, explicit port", "http://auth.example.com:80/", "write: issuer: https://auth.example.com"},
		{"MM-06 http like loopback", "http://localhost.example.com", "write: issuer: https://localhost.example.com"},
		{"MM-06 query", "https://auth.example.com?a=b", "must not have a query; write: issuer: https://auth.example.com"},
		{"MM-06 empty query", "https://auth.example.com?", "must not have a query"},
		{"MM-06 fragment", "https://auth.example.com#x", "must not have a fragment; write: issuer: https://auth.example.com"},
		{"MM-06 empty fragment", "https://auth.example.com#", "must not have a fragment"},
		{"MM-06 userinfo", "https://me@auth.example.com", "user name or password; write: issuer: https://auth.example.com"},
		{"MM-06 trailing slash", "https://auth.example.com/", "slash; write: issuer: https://auth.example.com"},
		{"MM-06 trailing slash after a path", "https://auth.example.com/mcp/", "slash; write: issuer: https://auth.example.com/mcp"},
		{"MM-06 default port", "https://auth.example.com:443", "default port; write: issuer: https://auth.example.com"},
		{"MM-06 upper-case host", "https://Auth.Example.com", "lower case up to its path; write: issuer: https://auth.example.com"},
		{"MM-06 upper-case scheme", "HTTPS://auth.example.com", "lower case up to its path; write: issuer: https://auth.example.com"},
		{"MM-06 everything wrong is repaired at once", "http://Auth.Example.com:80/mcp/?q#f", "write: issuer: https://auth.example.com/mcp"},
		{"no scheme", "auth.example.com", "must be a URL with a host"},
		{"empty", "", "must be a URL with a host"},
		{"other scheme", "ftp://auth.example.com", "must begin with https://"},
		{"dot segment", "https://auth.example.com/a/../b", "plain segments"},
		{"double slash", "https://auth.example.com//a", "plain segments"},
		{"escaped", "https://auth.example.com/a%2Fb", "plain segments"},
		{"well-known", "https://auth.example.com/.well-known/x", "plain segments"},
		{"empty port", "https://auth.example.com:", "empty port"},
		{"unicode host", "https://bücher.example", "xn--"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := valid()
			c.Issuer = tt.issuer
			expect(t, c, tt.want)
		})
	}
}

// expect fails unless Validate says want; "" wants silence.
func expect(t *testing.T, c *config.Config, want string) {
	t.Helper()
	err := c.Validate()
	if want == "" && err != nil {
		t.Errorf("Validate: %v", err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("Validate = %v\nwant %q", err, want)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	pem := filepath.Join(t.TempDir(), "x.pem")
	if err := os.WriteFile(pem, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dev := func(c *config.Config) { c.Issuer = "http://localhost:8414" }
	for _, tt := range []struct {
		name   string
		change func(*config.Config)
		want   string
	}{
		{"public", func(*config.Config) {}, ""},
		{"D4 development", dev, ""},
		{"D4 IPv6 loopback issuer", func(c *config.Config) { c.Issuer = "http://[::1]:8414" }, ""},
		{"D4 development listens everywhere", func(c *config.Config) { dev(c); c.Listen = "0.0.0.0:8414" },
			"write: listen: 127.0.0.1:8414"},
		{"D4 development listens on all by an empty host", func(c *config.Config) { dev(c); c.Listen = ":8414" },
			"write: listen: 127.0.0.1:8414"},
		{"D4 admin listener in development", func(c *config.Config) { dev(c); c.AdminListen = "0.0.0.0:8415" },
			"write: admin_listen: 127.0.0.1:8415"},
		{"D4 proxies in development", func(c *config.Config) { dev(c); c.TrustedProxies = []string{"127.0.0.1"} },
			"trusted_proxies cannot be used in development mode"},
		{"D4 another port", func(c *config.Config) { dev(c); c.Listen = "127.0.0.1:9000" },
			"write: issuer: http://localhost:9000"},
		{"D4 free port", func(c *config.Config) { dev(c); c.Listen = "127.0.0.1:0" }, ""},
		{"https on loopback without a certificate", func(c *config.Config) { c.Issuer = "https://localhost:8414" }, "tls_cert is needed"},
		{"http on loopback with a certificate", func(c *config.Config) { dev(c); c.TLSCert, c.TLSKey = pem, pem },
			"write: issuer: https://localhost:8414"},
		{"listen is no address", func(c *config.Config) { c.Listen = "8414" }, "not host:port"},
		{"unix admin listener", func(c *config.Config) { c.AdminListen = "unix:/run/ostiary.sock" }, ""},
		{"certificate without key", func(c *config.Config) { c.TLSCert = pem }, "belong together"},
		{"certificate missing", func(c *config.Config) { c.TLSCert, c.TLSKey = "/nowhere.pem", pem }, "tls_cert open /nowhere.pem"},
		{"D2 PostgreSQL without a secret", func(c *config.Config) { c.Database = "postgres://u@h/db" }, "secret is required with PostgreSQL"},
		{"D2 PostgreSQL with a secret", func(c *config.Config) { c.Database = "postgres://u@h/db"; c.Secret = "x" }, ""},
		{"D2 two secrets", func(c *config.Config) { c.Secret = "x"; c.SecretFile = pem }, "beside secret_file"},
		{"PostgreSQL without a database", func(c *config.Config) { c.Database = "postgres://u@h"; c.Secret = "x" }, "database name"},
		{"another database", func(c *config.Config) { c.Database = "mysql://u@h/db" }, "neither PostgreSQL nor SQLite"},
		{"proxy no address", func(c *config.Config) { c.TrustedProxies = []string{"proxy"} }, "neither a CIDR nor an IP"},
		{"proxies", func(c *config.Config) { c.TrustedProxies = []string{"10.0.0.0/8", "::1"} }, ""},
		{"outbound hosts", func(c *config.Config) {
			c.OutboundAllowHosts = []string{"app.corp.example", "keys:8443", "10.1.2.3", "[fd00::1]:8443"}
		}, ""},
		{"outbound hosts are exact hosts", func(c *config.Config) {
			c.OutboundAllowHosts = []string{"app.corp.example", "*.corp.example", "https://app.corp.example"}
		}, `outbound_allow_hosts has "*.corp.example", "https://app.corp.example", which is not a host or host:port; write each`},
		{"outbound hosts that are never opened", func(c *config.Config) {
			c.OutboundAllowHosts = []string{"app.corp.example", "127.0.0.1:8443", "169.254.169.254", "[fe80::1]:8443", "100.100.100.200", "168.63.129.16:443", "[fd00:ec2::254]", "0.0.0.0", "224.0.0.1"}
		}, `outbound_allow_hosts has "169.254.169.254", "[fe80::1]:8443", "100.100.100.200", "168.63.129.16:443", "[fd00:ec2::254]", "0.0.0.0", "224.0.0.1", which is never opened: `},
		{"an address that only IPv6 writes so", func(c *config.Config) { c.OutboundAllowHosts = []string{"[::ffff:169.254.169.254]:443"} }, "is never opened"},
		{"redirect schemes", func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"https", "http", "com.example.app"} }, ""},
		{"redirect scheme with its colon", func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"https:"} }, `registration_redirect_schemes has "https:", which is not a scheme`},
		{"A10 javascript", func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"https", "javascript"} }, `registration_redirect_schemes has "javascript", which no client may register; write names like https`},
		{"A10 data", func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"data"} }, `has "data", which no client may register`},
		{"A10 vbscript", func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"vbscript"} }, `has "vbscript", which no client may register`},
		{"A10 file", func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"file"} }, `has "file", which no client may register`},
		{"A10 blob", func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"blob"} }, `has "blob", which no client may register`},
		{"A10 about", func(c *config.Config) { c.RegistrationRedirectSchemes = []string{"about"} }, `has "about", which no client may register`},
		{"outbound proxy", func(c *config.Config) { c.OutboundProxy = "http://user:secret@proxy:3128" }, ""},
		{"outbound proxy without a scheme", func(c *config.Config) { c.OutboundProxy = "proxy:3128" }, "outbound_proxy is not the URL of a proxy; write e.g. http://"},
		{"cimd policy", func(c *config.Config) { c.CIMDPolicy = []string{"*=ask", "*.example.com=deny", "claude.ai=allow"} }, ""},
		{"cimd policy without a decision", func(c *config.Config) { c.CIMDPolicy = []string{"claude.ai"} }, `cimd_policy has "claude.ai"; write entries like`},
		{"cimd policy with another decision", func(c *config.Config) { c.CIMDPolicy = []string{"claude.ai=maybe"} }, "cimd_policy has"},
		{"cimd policy for a URL", func(c *config.Config) { c.CIMDPolicy = []string{"https://claude.ai=deny"} }, "cimd_policy has"},
		{"cimd policy in upper case", func(c *config.Config) { c.CIMDPolicy = []string{"Claude.ai=deny"} }, "cimd_policy has"},
		{"cimd policy twice", func(c *config.Config) { c.CIMDPolicy = []string{"claude.ai=deny", "claude.ai=allow"} }, "names claude.ai twice"},
		{"cimd", func(c *config.Config) { c.CIMD = "yes" }, `cimd is "yes"; write on or off`},
		{"help page", func(c *config.Config) { c.HelpURL = "javascript:alert(1)" }, "help_url is not an https URL"},
		{"operator name", func(c *config.Config) { c.OperatorName = "a\nb" }, "operator_name is longer"},
		{"D7 EdDSA", func(c *config.Config) { c.SigningAlgorithm = "EdDSA" }, ""},
		{"D7 RS256", func(c *config.Config) { c.SigningAlgorithm = "RS256" }, ""},
		{"D7 a symmetric algorithm", func(c *config.Config) { c.SigningAlgorithm = "HS256" }, "write ES256 or EdDSA or RS256"},
		{"D7 none", func(c *config.Config) { c.SigningAlgorithm = "none" }, "signing_algorithm is"},
		{"D7 access token lifetime", func(c *config.Config) { c.AccessTokenLifetime = 2 * time.Hour }, "write: access_token_lifetime: 1h"},
		{"D17 code lifetime", func(c *config.Config) { c.CodeLifetime = 61 * time.Second }, "write: code_lifetime: 1m"},
		{"D8 retry window 0", func(c *config.Config) { c.RefreshRetryWindow = 0 }, ""},
		{"D8 retry window", func(c *config.Config) { c.RefreshRetryWindow = 121 * time.Second }, "write: refresh_retry_window: 2m"},
		{"D8 negative retry window", func(c *config.Config) { c.RefreshRetryWindow = -1 }, "write: refresh_retry_window: 0s"},
		{"A15 no registration", func(c *config.Config) { c.RegistrationPerHour = 0 }, "registration_per_hour is 0"},
		{"further host", func(c *config.Config) { c.AllowedHosts = []string{"auth.internal:8443", "x/y"} }, `allowed_hosts has "x/y"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := valid()
			tt.change(c)
			expect(t, c, tt.want)
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	c := valid()
	c.Listen, c.AdminListen = "0.0.0.0:8414", "0.0.0.0:8415"
	if got := c.Warnings(); len(got) != 3 {
		t.Errorf("Warnings = %q, want 3", got)
	}
	if got := config.Default().Warnings(); len(got) != 0 {
		t.Errorf("Warnings of the default = %q", got)
	}
}

func TestST03_StateDir(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"private", func(*testing.T, string) {}, ""},
		{"missing", func(t *testing.T, dir string) { must(t, os.Remove(dir)) }, ""},
		{"ST-03 directory open to the group", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o750)) }, "run: chmod 700"},
		{"ST-03 secret readable by others", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "secret.key"), nil, 0o600))
			must(t, os.Chmod(filepath.Join(dir, "secret.key"), 0o644))
		}, "run: chmod 600"},
		{"ST-03 write-ahead log readable by others", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "ostiary.db-wal"), nil, 0o600))
			must(t, os.Chmod(filepath.Join(dir, "ostiary.db-wal"), 0o640))
		}, "ostiary.db-wal has mode 0640"},
		{"a file", func(t *testing.T, dir string) { must(t, os.Remove(dir)); must(t, os.WriteFile(dir, nil, 0o600)) }, "not a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			must(t, os.Mkdir(dir, 0o700))
			tt.change(t, dir)
			err := config.PrepareStateDir(dir)
			text := fmt.Sprint(err)
			if file := (*config.FileError)(nil); errors.As(err, &file) {
				text += "; " + file.Hint()
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(text, tt.want)) {
				t.Fatalf("PrepareStateDir = %s, want %q", text, tt.want)
			}
			if info, err := os.Stat(dir); tt.want == "" && (err != nil || info.Mode().Perm() != 0o700) {
				t.Errorf("state directory %v, %v; want mode 0700", info, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// SL-06: how many processors the machine has is login's to see; a fixed number
// here would let passwords take them all.
func TestSL06_HashingAtOnce(t *testing.T) {
	t.Parallel()
	if n := config.Default().PasswordHashingAtOnce; n != 0 {
		t.Errorf("default = %d, want 0: one less than the processors", n)
	}
	for n, want := range map[int]string{0: "", 1: "", 1024: "", -1: "write a number from 0 to 1024", 1025: "write a number from 0 to 1024"} {
		c := valid()
		c.PasswordHashingAtOnce = n
		expect(t, c, want)
	}
}
