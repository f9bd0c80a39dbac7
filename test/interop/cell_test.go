package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// patience is how long a driver may take on a machine with much else to do.
const patience = 3 * time.Minute

// cell is one square of the matrix.
type cell struct{ client, form, kind, situation string }

// String names the cell as a subtest.
func (c cell) String() string { return strings.Join(c.factors(), "/") }

func (c cell) factors() []string {
	return []string{c.client, c.form, c.kind, c.situation, c.database()}
}

// database is the one that the cell's authorization server is on: they take
// turns along every axis.
func (c cell) database() string {
	turn := slices.Index(clients, c.client) + slices.Index(forms, c.form) + slices.Index(kinds, c.kind) + slices.Index(situations, c.situation)
	return databases[turn%len(databases)]
}

// The axes of the matrix; clients are in drivers.
var (
	// forms are the forms of the MCP server's URL, and paths their paths.
	forms = []string{"root", "path", "slash"}
	paths = map[string]string{"root": "", "path": "/mcp", "slash": "/mcp/"}
	// kinds are the ways in which a client becomes known. The last four are added
	// by the operator beforehand and authenticate so.
	kinds = []string{"dcr", "cimd", "none", "basic", "post", "private_key_jwt"}
	// situations are what happens to the client, and situationSteps what it does
	// then, step by step.
	situations     = []string{"login", "refresh", "retry", "deleted", "unavailable", "wider"}
	situationSteps = map[string][]string{
		"login":       {"login", "tool"},
		"refresh":     {"login", "tool", "refresh"},
		"retry":       {"login", "tool", "refresh", "retry"},
		"deleted":     {"login", "tool", "deleted", "login", "tool"},
		"unavailable": {"login", "tool", "unavailable", "refresh"},
		"wider":       {"login", "tool", "wider"},
	}
)

// databases are those that every client must work on.
var databases = databasesHere()

func databasesHere() []string {
	if os.Getenv("OSTIARY_TEST_POSTGRES") == "off" {
		return []string{"sqlite"}
	}
	return []string{"sqlite", "postgres"}
}

// authMethods are those of clients that the operator adds.
var authMethods = map[string]string{
	"none": registration.AuthNone, "basic": registration.AuthClientSecretBasic,
	"post": registration.AuthClientSecretPost, "private_key_jwt": registration.AuthPrivateKeyJWT,
}

// revoking are the clients that can revoke a token (RFC 7009).
var revoking = []string{"authclient", "openid-client", "oauth4webapi"}

// preRegistered reports whether the operator added the client.
func (c cell) preRegistered() bool { return authMethods[c.kind] != "" }

// steps are what a client that can do everything passes.
func (c cell) steps() []string {
	if c.situation == "deleted" && c.preRegistered() {
		// Nobody but the operator can bring it back: it must end with a clear error.
		return []string{"login", "tool", "deleted", "refused"}
	}
	if c.situation == "login" && slices.Contains(revoking, c.client) {
		return []string{"login", "tool", "revoke"}
	}
	return situationSteps[c.situation]
}

// logins is how often the person has let a client in that passed every step.
func (c cell) logins() int {
	switch {
	case c.situation == "wider", c.situation == "deleted" && !c.preRegistered():
		return 2
	default:
		return 1
	}
}

// order is what a driver is told, as JSON in the variable CELL.
type order struct {
	Kind       string `json:"kind"`
	Situation  string `json:"situation"`
	MCPURL     string `json:"mcp_url"`
	Issuer     string `json:"issuer"`
	ControlURL string `json:"control_url"`
	// ClientID is that of a client the operator added, or the URL of a metadata
	// document; absent for dcr.
	ClientID     string          `json:"client_id,omitempty"`
	ClientSecret string          `json:"client_secret,omitempty"`
	PrivateJWK   json.RawMessage `json:"private_jwk,omitempty"` // ES256
}

// redirectURIs are those of documents and of clients that the operator adds.
// Their port does not matter (A8).
var redirectURIs = []string{"http://127.0.0.1/callback", "http://127.0.0.1/oauth/callback", "http://localhost/oauth/callback"}

// result is what came of a driver.
type result struct {
	steps []string
	// said is what the client's failure was, "" when it passed.
	said string
}

// driver makes a client do what an order says.
type driver func(t *testing.T, o order) result

// runCell gives the cell its place and has the client driven through it: it
// passes, or meets its limitation.
func runCell(t *testing.T, c cell) {
	t.Helper()
	o := order{Kind: c.kind, Situation: c.situation}
	var hosts []*testkit.HTTPSHost
	if c.kind == "cimd" {
		host := documentHost(t)
		hosts, o.ClientID = append(hosts, host), host.URL+"/client.json"
	}
	p := newPlace(t, openDatabase(t, c.database()), hosts...)
	p.serveMCP(t, paths[c.form])
	o.MCPURL, o.Issuer, o.ControlURL = p.mcpURL, p.issuer, p.control(t)
	if c.preRegistered() {
		p.addClient(t, c.kind, &o)
	}
	got := drivers[c.client](t, o)
	if limit := limitationOf(c); limit != nil {
		if d := limit.differs(c, got); d != "" {
			t.Errorf("limitation %q: %s", limit.words, d)
		}
	} else {
		p.check(t, c, got)
	}
	if t.Failed() {
		t.Logf("token requests: %v\nserver:\n%s", p.saw().requests, p.logs)
	}
}

// check compares what happened with what must.
func (p *place) check(t *testing.T, c cell, got result) {
	t.Helper()
	if d := cmp.Diff(c.steps(), got.steps); d != "" || got.said != "" {
		t.Errorf("steps (-want +got):\n%s%s", d, got.said)
	}
	saw := p.saw()
	if saw.logins != c.logins() {
		t.Errorf("the person let the client in %d times, want %d", saw.logins, c.logins())
	}
	wantFailed := 0
	if c.situation == "unavailable" {
		wantFailed = 1
	}
	if saw.failed != wantFailed {
		t.Errorf("%d token requests were answered 503, want %d", saw.failed, wantFailed)
	}
	p.checkClients(t, c)
	checkRequests(t, c, saw.requests)
}

// checkClients looks at how the clients became known.
func (p *place) checkClients(t *testing.T, c cell) {
	t.Helper()
	want := map[string]registration.Kind{"dcr": registration.KindDynamic, "cimd": registration.KindCIMD}[c.kind]
	if want == "" {
		want = registration.KindOperator
	}
	list, err := p.app.Clients.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range list {
		if client.Kind != want {
			t.Errorf("client %s is of the kind %s, want %s", client.ID, client.Kind, want)
		}
	}
	least, most := 1, 1
	switch {
	case c.kind == "dcr":
		most = c.logins() // the go-sdk registers for each
	case c.situation == "deleted" && c.preRegistered():
		least, most = 0, 0
	}
	if len(list) < least || len(list) > most {
		t.Errorf("%d clients are registered, want %d to %d", len(list), least, most)
	}
}

// methodOf returns how the client authenticates: as it was added, but for two
// that choose how a secret travels by the server's list.
func methodOf(c cell) string {
	switch {
	case c.client == "go-sdk" && c.kind == "basic":
		return registration.AuthClientSecretPost
	case c.client == "inspector" && c.kind == "post":
		return registration.AuthClientSecretBasic
	case authMethods[c.kind] != "":
		return authMethods[c.kind]
	}
	return registration.AuthNone
}

// checkRequests looks at what the token endpoint saw.
func checkRequests(t *testing.T, c cell, requests []tokenRequest) {
	t.Helper()
	method := methodOf(c)
	var refreshed []oauth.Secret
	refused := 0
	for _, r := range requests {
		if r.status == http.StatusUnauthorized {
			refused++
		}
		if r.status == http.StatusOK && r.method != method {
			t.Errorf("a %s request was authenticated by %s, want %s", r.grant, r.method, method)
		}
		if r.status == http.StatusOK && r.grant == registration.GrantRefreshToken {
			refreshed = append(refreshed, r.refreshToken)
		}
	}
	switch c.situation {
	case "deleted": // A19
		if refused == 0 {
			t.Error("the removed client was not told by 401")
		}
	case "refresh", "unavailable":
		if len(refreshed) == 0 || refreshed[0] == "" {
			t.Error("nothing was refreshed")
		}
	case "retry": // A32: the same successor
		if len(refreshed) < 2 || refreshed[0] == "" || refreshed[0] != refreshed[1] {
			t.Errorf("the refresh token before the last got another successor (%d refreshes)", len(refreshed))
		}
	}
}

// documentHost serves a Client ID Metadata Document at /client.json.
func documentHost(t *testing.T) *testkit.HTTPSHost {
	t.Helper()
	var host *testkit.HTTPSHost
	host = testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id": host.URL + r.URL.Path, "client_name": "Interop", "redirect_uris": redirectURIs,
			"token_endpoint_auth_method": registration.AuthNone, "response_types": []string{"code"},
			"grant_types": []string{registration.GrantAuthorizationCode, registration.GrantRefreshToken},
		})
	}))
	return host
}

// addClient adds a client as an operator does.
func (p *place) addClient(t *testing.T, kind string, o *order) {
	t.Helper()
	add := registration.AddOptions{Name: "Interop", RedirectURIs: redirectURIs, AuthMethod: authMethods[kind]}
	if kind == "private_key_jwt" {
		key := testkit.NewClientKey(t, "ES256", "interop")
		add.JWKS, o.PrivateJWK = testkit.JWKS(t, key), key.PrivateJWK(t)
	}
	client, secret, err := p.app.Clients.Add(t.Context(), add)
	if err != nil {
		t.Fatal(err)
	}
	o.ClientID, o.ClientSecret = client.ID, secret.Reveal()
}

// nodeDriver drives with a file of this folder: it prints a JSON line for each
// step, and ends with 1 and the client's error when the client fails.
func nodeDriver(file string) driver {
	return func(t *testing.T, o order) result {
		t.Helper()
		launch.InstallNode(t)
		input, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, launch.Node, file)
		cmd.Env = append(os.Environ(), "CELL="+string(input), "SCRATCH="+t.TempDir())
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
		r := result{steps: stepsIn(t, &stdout)}
		if err != nil {
			r.said = fmt.Sprintf("%s: %v\n%s", filepath.Base(file), err, stderr.String())
		}
		return r
	}
}

func stepsIn(t *testing.T, stdout *bytes.Buffer) (steps []string) {
	t.Helper()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var line struct{ Step string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Step == "" {
			t.Errorf("the driver printed %q", lines.Text())
		}
		steps = append(steps, line.Step)
	}
	return steps
}
