package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// everything is the official Go SDK's own server for the suite. Its sessions are
// those of 2025-11-25; without them it speaks 2026-07-28.
const everything = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// duties are the scenarios about what a resource server has a part in; the others
// show that nothing else is disturbed.
var duties = map[string][]string{
	"2025-11-25": {"server-initialize", "server-session-lifecycle", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"},
	"2026-07-28": {"server-stateless", "tools-list", "http-header-validation", "http-custom-header-server-validation", "dns-rebinding-protection"},
}

// tally counts a scenario's checks.
type tally struct{ passed, failed, warned int }

func (n tally) String() string {
	s := fmt.Sprintf("%d passed", n.passed)
	if n.warned > 0 {
		s += fmt.Sprintf(", %d warned", n.warned)
	}
	if n.failed > 0 {
		s += fmt.Sprintf(", %d failed", n.failed)
	}
	return s
}

// TestProtectedServerScenarios runs the suite's server scenarios against the SDK's
// server and against the same behind Protect, with a token: what passes there
// passes here.
func TestProtectedServerScenarios(t *testing.T) {
	t.Parallel()
	launch.InstallNode(t)
	o := launch.ServeOstiary(t, "")
	binary := launch.BuildPackage(t, everything)
	for version, sessions := range map[string]bool{"2025-11-25": true, "2026-07-28": false} {
		bareURL, protectedURL := serveEverything(t, binary, sessions), protect(t, o, serveEverything(t, binary, sessions))
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var bare, protected map[string]tally
			dir, errs := t.TempDir(), [2]error{}
			var runs sync.WaitGroup
			runs.Go(func() { bare, errs[0] = runServerSuite(t.Context(), version, bareURL, filepath.Join(dir, "bare")) })
			runs.Go(func() {
				protected, errs[1] = runServerSuite(t.Context(), version, protectedURL, filepath.Join(dir, "protected"))
			})
			runs.Wait()
			if err := errors.Join(errs[:]...); err != nil {
				t.Error(err)
			}
			compare(t, version, bare, protected)
		})
	}
}

// compare prints the table, and fails for each scenario that passes bare and not
// behind Protect. Neither may pass because nothing was checked.
func compare(t *testing.T, version string, bare, protected map[string]tally) {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "| %-45s | %-20s | %-20s |\n|%s|%s|%[5]s|\n", version, "bare", "behind Protect",
		strings.Repeat("-", 47), strings.Repeat("-", 22))
	for _, scenario := range slices.Sorted(maps.Keys(bare)) {
		b, p := bare[scenario], protected[scenario]
		fmt.Fprintf(&table, "| %-45s | %-20s | %-20s |\n", scenario, b, p)
		if p != b || b.failed > 0 || b.passed == 0 {
			t.Errorf("%s: bare %s, behind Protect %s", scenario, b, p)
		}
	}
	for _, scenario := range duties[version] {
		if bare[scenario].passed == 0 {
			t.Errorf("the suite ran no check of %s", scenario)
		}
	}
	t.Log("\n" + table.String())
	publish(t, version, table.String())
}

// publish keeps a table where artefacts are kept.
func publish(t *testing.T, version, table string) {
	t.Helper()
	root := os.Getenv("OSTIARY_ARTEFACTS")
	if root == "" {
		return
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "conformance-server-"+version+".md"), []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
}

// serveEverything starts a server of its own for one run: scenarios change what
// it lists. It returns its URL.
func serveEverything(t *testing.T, binary string, sessions bool) string {
	t.Helper()
	address := "localhost:" + strconv.Itoa(launch.FreePort(t))
	p := launch.Start(t, nil, binary, "-http="+address, "-stateless="+strconv.FormatBool(!sessions))
	p.Await(t, "http://"+address)
	return "http://" + address
}

// protect puts a server behind Protect, and before that what the suite cannot do:
// it adds the Authorization header, and nothing else.
func protect(t *testing.T, o *launch.Ostiary, upstream string) string {
	t.Helper()
	address := "localhost:" + strconv.Itoa(launch.FreePort(t))
	resource := "http://" + address + "/mcp"
	rs, err := resourceserver.New(resourceserver.Options{Issuer: o.Issuer, Resource: resource, Scopes: []string{"everything"},
		Operations:    map[resourceserver.Operation][]string{{Method: "tools/call", Name: "test_simple_text"}: {"everything"}},
		DefaultScopes: []string{"everything"}, FilterLists: true})
	if err != nil {
		t.Fatal(err)
	}
	proxy := proxyTo(t, upstream)
	wantNoDoor(t, proxy)
	protected, token := rs.Protect(proxy), resourceToken(t, o, resource)
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		protected.ServeHTTP(w, r)
	})
	server := &httptest.Server{Listener: ln, Config: &http.Server{Handler: front, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	return resource
}

// proxyTo reaches the server under its own name and without an Origin: were Protect
// to let a rebound host through, the server would serve it.
func proxyTo(t *testing.T, upstream string) http.Handler {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = "/"
		r.Out.Header.Del("Origin")
	}}
}

// wantNoDoor sees that the server behind the proxy serves a rebound host, so that
// dns-rebinding-protection shows what Protect does.
func wantNoDoor(t *testing.T, proxy http.Handler) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://evil.example.com/", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Origin": "http://evil.example.com"} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	if proxy.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("a rebound host got %d from the server itself: %s", w.Code, w.Body)
	}
}

// resourceToken has a job get its access token for the resource.
func resourceToken(t *testing.T, o *launch.Ostiary, resource string) string {
	t.Helper()
	o.Run(t, "", "resource", "add", resource, "--name", "Everything", "--scope", "everything=Use everything")
	var job struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	out := o.Run(t, "", "client", "add", "--name", "Conformance", "--auth", "client_secret_basic", "--grant", "client_credentials",
		"--resource", resource, "--scope", "everything", "--json")
	if err := json.Unmarshal([]byte(out), &job); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {"everything"}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.Issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(job.ClientID, job.ClientSecret)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&tokens); err != nil || tokens.AccessToken == "" {
		t.Fatalf("token endpoint: %s, %v", resp.Status, err)
	}
	return tokens.AccessToken
}

// runServerSuite runs all server scenarios of a specification version; its error
// names the checks that fail.
func runServerSuite(ctx context.Context, version, target, dir string) (map[string]tally, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, launch.Node, suite, "server", "--url", target, "--suite", "all", "--spec-version", version, "--output-dir", dir)
	var errs []error
	if out, err := cmd.CombinedOutput(); err != nil {
		summary := out[max(0, bytes.LastIndex(out, []byte("SUMMARY"))):]
		errs = append(errs, fmt.Errorf("the suite against %s ended with %w:\n%s", target, err, summary))
	}
	results, err := readResults(dir)
	errs = append(errs, err)
	tallies := map[string]tally{}
	for folder, checks := range results {
		m := serverFolder.FindStringSubmatch(folder)
		if m == nil {
			errs = append(errs, fmt.Errorf("results are in a folder %q", folder))
			continue
		}
		n, err := count(checks)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m[1], err))
		}
		tallies[m[1]] = n
	}
	return tallies, errors.Join(errs...)
}

// serverFolder is the name of a folder of results: server-<scenario>-<time>.
var serverFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT`)

func count(checks []result) (n tally, err error) {
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			n.passed++
		case "WARNING":
			n.warned++
		case "FAILURE":
			n.failed++
			err = errors.Join(err, fmt.Errorf("%s: %s", c.ID, c.ErrorMessage))
		}
	}
	return n, err
}
