package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

const (
	email       = "ada@example.com"
	password    = "correct horse battery staple"
	stateSecret = "pYx0oV1o1JcVt0Q8Qe7mJf2m5Zr3w9u4l6nGd8sKbHk="
)

// behind is how far a place's clock starts behind this machine's, so that the
// pauses of its person, which move it, never bring it ahead of the MCP server.
const behind = 10 * time.Second

// place is what a cell has for itself: an authorization server on a loopback
// port with a database and a person, an MCP server, and what drivers can ask of
// the world (the control).
type place struct {
	app    *app.App
	issuer string
	mcpURL string
	person *testkit.Person
	busy   http.Handler // answers 503 as the authorization server does
	logs   *testkit.Buffer

	mu     sync.Mutex
	offset time.Duration
	fail   bool // the next token request is answered 503
	seen   seen
}

// seen is what the place saw of the client.
type seen struct {
	logins   int // times that the person let it in
	failed   int // token requests that were answered 503
	requests []tokenRequest
}

// tokenRequest is what a client sent to the token endpoint and got.
type tokenRequest struct {
	grant, clientID, method string
	status                  int
	refreshToken            oauth.Secret // the one it got
}

// String leaves the token out.
func (r tokenRequest) String() string {
	return fmt.Sprintf("%s of %s by %s: %d", r.grant, r.clientID, r.method, r.status)
}

// newPlace starts everything for one cell.
func newPlace(t *testing.T, db *sqlstore.Store, hosts ...*testkit.HTTPSHost) *place {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{offset: -behind, logs: &testkit.Buffer{}, issuer: fmt.Sprintf("http://localhost:%d", ln.Addr().(*net.TCPAddr).Port)}
	cfg := config.Default()
	cfg.Issuer, cfg.Secret = p.issuer, oauth.Secret(stateSecret)
	p.app, err = app.New(t.Context(), app.Options{Config: cfg, Store: db, Now: p.now, Log: slog.New(slog.NewTextHandler(p.logs, nil)),
		Passwords: login.PasswordOptions{MemoryKiB: 64, Iterations: 1}, Outbound: testkit.Outbound(t, hosts...)})
	if err != nil {
		t.Fatal(err)
	}
	p.busy = endpoint.New(endpoint.Options{}).JSON(func(http.ResponseWriter, *http.Request) error {
		return oauth.Unavailable(time.Second, nil)
	})
	server := &httptest.Server{Listener: ln, Config: &http.Server{Handler: p.watch(p.app.Public()), ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	if _, err := p.app.Accounts.Add(t.Context(), login.NewUser{Email: email, Name: "Ada Test", Password: password}); err != nil {
		t.Fatal(err)
	}
	p.person = testkit.NewPerson(email, password, nil)
	p.person.Pause = func() { p.advance(time.Second) }
	return p
}

// serveMCP starts the example MCP server at a URL with this path.
func (p *place) serveMCP(t *testing.T, path string) {
	t.Helper()
	p.mcpURL = launch.ServeNotes(t, p.issuer, path)
	_, err := p.app.Resources.Add(t.Context(), resource.Resource{Identifier: p.mcpURL, Name: "Notes", Scopes: []resource.Scope{
		{Name: "notes:read", Title: "Read your notes", Default: true},
		{Name: "notes:write", Title: "Add notes for you", Risk: resource.RiskChanges},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.offset)
}

func (p *place) advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offset += d
}

// watch notes what happens at the token endpoint, and answers 503 there when it
// was asked to.
func (p *place) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/token" {
			next.ServeHTTP(w, r)
			return
		}
		req, err := readTokenRequest(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := httptest.NewRecorder()
		if p.failsNow() {
			p.busy.ServeHTTP(answer, r)
		} else {
			next.ServeHTTP(answer, r)
		}
		req.status, req.refreshToken = answer.Code, refreshTokenIn(answer.Body.Bytes())
		p.note(req)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

func (p *place) failsNow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	fails := p.fail
	if p.fail = false; fails {
		p.seen.failed++
	}
	return fails
}

func (p *place) note(r tokenRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.requests = append(p.seen.requests, r)
}

// saw returns what the place has seen so far.
func (p *place) saw() seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seen
	s.requests = slices.Clone(s.requests)
	return s
}

// readTokenRequest reads a token request and leaves it as it was.
func readTokenRequest(r *http.Request) (tokenRequest, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return tokenRequest{}, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return tokenRequest{}, err
	}
	req := tokenRequest{grant: form.Get("grant_type"), clientID: form.Get("client_id"), method: registration.AuthNone}
	id, secret, basic := r.BasicAuth()
	if basic {
		req.clientID = id
	}
	switch {
	case basic && secret != "":
		req.method = registration.AuthClientSecretBasic
	case form.Has("client_secret"):
		req.method = registration.AuthClientSecretPost
	case form.Has("client_assertion"):
		req.method = registration.AuthPrivateKeyJWT
	}
	return req, nil
}

func refreshTokenIn(body []byte) oauth.Secret {
	var tokens struct {
		RefreshToken oauth.Secret `json:"refresh_token"`
	}
	_ = json.Unmarshal(body, &tokens)
	return tokens.RefreshToken
}

// control serves what a driver can ask of the world and returns its URL.
//
//	POST /open            the person opens the URL in the body, signs in, allows, and
//	                      the browser takes the answer to the client's loopback listener
//	POST /delete-client   the operator removes every client
//	POST /fail-token-once the next token request is answered 503
func (p *place) control(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	handle := func(name string, fn func(r *http.Request) error) {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			if err := fn(r); err != nil {
				http.Error(w, err.Error(), http.StatusConflict)
			}
		})
	}
	handle("open", p.open)
	handle("delete-client", p.deleteClients)
	handle("fail-token-once", func(*http.Request) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fail = true
		return nil
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func (p *place) open(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil {
		return err
	}
	to, err := p.person.Authorize(r.Context(), string(body))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.seen.logins++
	p.mu.Unlock()
	return p.person.Deliver(r.Context(), to)
}

func (p *place) deleteClients(r *http.Request) error {
	list, err := p.app.Clients.List(r.Context())
	if err != nil {
		return err
	}
	for _, c := range list {
		if _, err := p.app.Clients.Remove(r.Context(), c.ID); err != nil {
			return err
		}
	}
	return nil
}

func openDatabase(t *testing.T, database string) *sqlstore.Store {
	t.Helper()
	if database == "sqlite" {
		return testkit.OpenSQLite(t)
	}
	return testkit.OpenPostgres(t)
}
