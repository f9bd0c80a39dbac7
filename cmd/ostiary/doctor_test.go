package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// examine runs ostiary doctor with these arguments.
func examine(stdin string, args ...string) (code int, out, err string) {
	var o, e strings.Builder
	c := newCLI(nil, strings.NewReader(stdin), &o, &e)
	code = c.run(context.Background(), append([]string{"doctor"}, args...))
	return code, o.String(), e.String()
}

// Wrong use is 2 and says what to type; no argument is repeated that may be a secret.
func TestDoctorWrongUse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"no URL", "URL is missing", nil},
		{"two URLs", "takes only URL", []string{"https://a.example", "https://b.example"}},
		{"no web URL", "is not an https URL", []string{"ftp://a.example"}},
		{"unknown client", "no client is called", []string{"https://a.example", "--as", "netscape"}},
		{"unknown kind", "is neither server nor issuer", []string{"https://a.example", "--kind", "x"}},
		{"no file", "--ca:", []string{"https://a.example", "--ca", "/nonexistent"}},
		{"no certificates", "holds no certificate", []string{"https://a.example", "--ca", "doctor_test.go"}},
		{"connect-to", "is not HOST1:PORT1:HOST2:PORT2", []string{"https://a.example", "--connect-to", "a:b"}},
		{"two tokens", "exclude one another", []string{"https://a.example", "--token-stdin", "--write"}},
		{"browser without write", "go with --write", []string{"https://a.example", "--no-browser"}},
		{"no login without write", "go with --write", []string{"https://a.example", "--no-login"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, err := examine("", tt.args...)
			if code != exitUsage || out != "" || !strings.Contains(err, tt.want) || !strings.Contains(err, "hint: ") {
				t.Errorf("code %d\n%s%s", code, out, err)
			}
		})
	}
}

// Something broken is 1, in words and as JSON; nothing of it is in colour here.
func TestDoctorBroken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	code, out, err := examine("", server.URL+"/mcp")
	if code != exitFailed || !strings.Contains(out, "[challenge-status]") ||
		strings.Contains(out, "\x1b") || !strings.Contains(err, "ostiary: broken:") || !strings.Contains(err, "hint: ") {
		t.Errorf("code %d\n%s%s", code, out, err)
	}
	code, out, _ = examine("", server.URL+"/mcp", "--json")
	var report struct {
		Kind     string
		Findings []struct{ ID, State string }
		Counts   map[string]int
	}
	if e := json.Unmarshal([]byte(out), &report); e != nil || code != exitFailed || report.Kind != "server" || len(report.Findings) < 80 || report.Counts["broken"] == 0 {
		t.Errorf("code %d, %v, %+v", code, e, report)
	}
}

func TestConnectTo(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]map[string]string{
		"MCP.example:443:10.0.0.7:8443": {"mcp.example:443": "10.0.0.7:8443"},
		"[2001:db8::1]:443:[::1]:8443":  {"[2001:db8::1]:443": "[::1]:8443"},
		"a:1:b":                         nil,
		"a:1:b:2:c":                     nil,
		"":                              nil,
		"a:1::2":                        nil,
	} {
		got, err := connectTo([]string{raw})
		if d := cmp.Diff(want, got); d != "" || (err != nil) != (want == nil) {
			t.Errorf("%q: %v\n%s", raw, err, d)
		}
	}
}

// With --write the person logs in by the browser, as ostiary login does, and no
// secret is printed.
func TestDoctorWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "", "doctor", w.mcpURL, "--write", "--all")
	if w.browsed() != 1 || !strings.Contains(got.err, w.issuer+"/authorize?") {
		t.Errorf("the person was asked %d times: %s", w.browsed(), got)
	}
	for _, id := range []string{"login", "login-iss", "login-token", "access-issuer", "access-audience", "access-signature", "access-accepted", "refresh", "login-revoked"} {
		if !strings.Contains(got.out, "["+id+"]") || strings.Contains(got.out, "skipped  ["+id+"]") {
			t.Errorf("%s was not looked at", id)
		}
	}
	if strings.Contains(got.out, "broken  ") {
		t.Errorf("a finding is broken: %s", got.out)
	}
	if found := accessToken.FindString(got.out + got.err); found != "" {
		t.Errorf("a secret was printed: %.12s…", found)
	}
}

// A token from standard input is shown to the server that it is for, which accepts it.
func TestDoctorToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.run(t, "", "login", "--print", w.mcpURL)
	got := w.run(t, token.out, "doctor", w.mcpURL, "--token-stdin", "--all")
	if !strings.Contains(got.out, "ok      The MCP server accepts it") || strings.Contains(got.out, strings.TrimSpace(token.out)) {
		t.Errorf("%s", got)
	}
}
