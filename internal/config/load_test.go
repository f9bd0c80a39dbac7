package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
)

func writeFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ostiary.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Source{Environ: []string{"HOME=/home/ada"}})
	if err != nil {
		t.Fatalf("Load of nothing: %v", err)
	}
	if !c.Dev() || c.Issuer != "http://localhost:8414" {
		t.Errorf("issuer %q, Dev %v; want the development default", c.Issuer, c.Dev())
	}
	if got, want := c.DatabaseURL(), "/home/ada/.local/state/ostiary/ostiary.db"; got != want {
		t.Errorf("DatabaseURL = %q, want %q", got, want)
	}
	if got, want := c.SecretPath(), "/home/ada/.local/state/ostiary/secret.key"; got != want {
		t.Errorf("SecretPath = %q, want %q", got, want)
	}
}

func TestLoadOrder(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "log_level: warn\naccess_token_lifetime: 5m\nregistration: closed\nallowed_hosts: [a.example, b.example]\n")
	c, err := config.Load(config.Source{File: file,
		Environ: []string{"HOME=/h", "OSTIARY_LOG_LEVEL=error", "OSTIARY_REGISTRATION=open", "OSTIARY_LOG_FORMAT="},
		Flags:   map[string]string{"log_level": "debug"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.LogLevel != "debug" || c.Registration != "open" || c.AccessTokenLifetime != 5*time.Minute || c.LogFormat != "json" {
		t.Errorf("got %s %s %s %s; want flag over environment over file over default, and an empty variable ignored",
			c.LogLevel, c.Registration, c.AccessTokenLifetime, c.LogFormat)
	}
	if len(c.AllowedHosts) != 2 {
		t.Errorf("AllowedHosts = %v", c.AllowedHosts)
	}
	want := map[string]string{"log_level": "--log-level", "registration": "OSTIARY_REGISTRATION",
		"access_token_lifetime": "ostiary.yaml line 2", "listen": "default"}
	for _, v := range c.Values() {
		if o, ok := want[v.Key]; ok && v.Origin.String() != o {
			t.Errorf("origin of %s = %q, want %q", v.Key, v.Origin, o)
		}
	}
}

func TestStateDirOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, environ, want string }{
		{"systemd", "STATE_DIRECTORY=/var/lib/ostiary:/var/lib/b XDG_STATE_HOME=/x HOME=/h", "/var/lib/ostiary"},
		{"xdg", "XDG_STATE_HOME=/x HOME=/h", "/x/ostiary"},
		{"relative xdg is ignored", "XDG_STATE_HOME=x HOME=/h", "/h/.local/state/ostiary"},
		{"our own variable wins", "OSTIARY_STATE_DIR=/o STATE_DIRECTORY=/var/lib/ostiary", "/o"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := config.Load(config.Source{Environ: strings.Fields(tt.environ)})
			if err != nil || c.StateDir != tt.want {
				t.Errorf("StateDir = %q, %v; want %q", c.StateDir, err, tt.want)
			}
		})
	}
}

// Every mistake of every source comes at once, each with where it stands.
func TestLoadReportsAllMistakes(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "isuer: https://a.example\naccess_token_lifetime: soon\nlog_level: loud\nissuer: http://auth.example\n")
	_, err := config.Load(config.Source{File: file,
		Environ: []string{"HOME=/h", "OSTIARY_DATABASE_MAX_CONNS=many", "OSTIARY_CODE_LIFETIME=2m"},
		Flags:   map[string]string{"registration": "maybe"}})
	var mistakes config.Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatalf("Load = %v, want Mistakes", err)
	}
	for _, want := range []string{
		`config (ostiary.yaml line 1): there is no setting "isuer"; did you mean issuer?`,
		`ostiary.yaml line 2`,
		`log_level (ostiary.yaml line 3) is "loud"; write debug or info or warn or error`,
		`issuer (ostiary.yaml line 4) must be https: http is for loopback hosts only; write: issuer: https://auth.example`,
		`database_max_conns (OSTIARY_DATABASE_MAX_CONNS) is not a whole number`,
		`code_lifetime (OSTIARY_CODE_LIFETIME) is 2m; the most is 1m; write: OSTIARY_CODE_LIFETIME=1m`,
		`registration (--registration) is "maybe"; write open or token or statement or closed`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if len(mistakes) != 7 {
		t.Errorf("%d mistakes, want 7:\n%v", len(mistakes), err)
	}
}

func TestLoadFileMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"empty file", "", ""},
		{"comment only", "# nothing\n", ""},
		{"not YAML", "issuer: [", "is not YAML"},
		{"a list", "- issuer\n", "cannot unmarshal seq into the settings"},
		{"repeated key", "log_level: info\nlog_level: warn\n", "already defined"},
		{"two documents", "log_level: info\n---\nlog_level: warn\n", "second YAML document"},
		{"wrong kind", "debug_pprof: perhaps\n", "line 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Load(config.Source{File: writeFile(t, tt.text), Environ: []string{"HOME=/h"}})
			if tt.want == "" && err != nil {
				t.Errorf("Load: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Load = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "postgres://ostiary:hunter2@db/ostiary?password=hunter2&sslmode=require\n")
	c, err := config.Load(config.Source{Environ: []string{"HOME=/h", "OSTIARY_SECRET=hunter2", "OSTIARY_DATABASE_FILE=" + file}})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Postgres() || c.Secret.Reveal() != "hunter2" {
		t.Fatalf("database or secret was not read")
	}
	for _, v := range c.Values() {
		if strings.Contains(v.Text, "hunter2") {
			t.Errorf("%s shows a secret: %s", v.Key, v.Text)
		}
	}
}

// A broken database URL is not repeated: it may hold a password.
func TestBrokenDatabaseURLIsNotRepeated(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Source{Environ: []string{"HOME=/h", "OSTIARY_SECRET=x", "OSTIARY_DATABASE=postgres://u:hunter2@h:port/x"}})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Load = %v, want an error without the password", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("issuer: https://auth.example\n")
	f.Add("issuer: [a, b]\nlisten: {x: y}\n")
	f.Add("a: &a [*a]\n")
	f.Add("trusted_proxies: [10.0.0.0/8, \"::1\"]\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Load(config.Source{File: writeFile(t, text), Environ: []string{"HOME=/h"}})
		if c == nil {
			t.Fatal("Load returned no configuration")
		}
		if err == nil && c.Validate() != nil {
			t.Errorf("Load accepted what Validate refuses: %v", c.Validate())
		}
	})
}

// `config print` shows which proxy is asked, not what it is asked with.
func TestOutboundProxyPasswordIsNotPrinted(t *testing.T) {
	t.Parallel()
	c := valid()
	c.OutboundProxy = "http://user:hunter2@proxy.corp.example:3128"
	for _, v := range c.Values() {
		if strings.Contains(v.Text, "hunter2") || v.Key == "outbound_proxy" && !strings.Contains(v.Text, "proxy.corp.example:3128") {
			t.Errorf("%s is printed as %q", v.Key, v.Text)
		}
	}
}
