package testkit

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
)

// Issuer is the issuer of a Server that configures none: https, so that
// everything behaves as in production.
const Issuer = "https://id.example.com"

// Resource and OtherResource are the MCP servers that every Server knows.
// Resource has the scopes files:read (default), files:write and files:delete
// (permanent), and admin (restricted); OtherResource has notes:read.
const (
	Resource      = "https://mcp.example.com/files"
	OtherResource = "https://mcp.example.com/notes"
)

// The person every Server knows.
const (
	Email    = "mina@example.com"
	Password = "correct horse battery staple"
)

// stateSecret is the state secret of every Server, so that several share a
// database.
const stateSecret = "pYx0oV1o1JcVt0Q8Qe7mJf2m5Zr3w9u4l6nGd8sKbHk="

// Server is an ostiary in this process, without a listener: Client and Browser
// reach it through memory, and Clock moves its time. Two Servers on one store
// are two instances of one deployment.
type Server struct {
	App    *app.App
	DB     *sqlstore.Store
	Config *config.Config
	Clock  *Clock
	// Logs is everything logged, at debug level.
	Logs *Buffer
	// Outbound asks clients' hosts: those of NewServerWithHosts, otherwise none,
	// since no test asks the Internet.
	Outbound *netguard.Client
	// Pause waits before a metadata document counts as unreadable (CI-15), here not
	// at all; nil waits as in production. What is set counts from Again on.
	Pause func(ctx context.Context, d time.Duration)
	// Recorder, when set, hears everything that clients and people send and get.
	Recorder *Recorder
}

// Clock is a clock that only tests move. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a fixed moment.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Buffer is a bytes.Buffer that many may write.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// ServerOption changes the configuration of a Server.
type ServerOption func(*config.Config)

// NewServer starts a server on db, which must be migrated, and gives it the
// resources and the person above unless they are there. Its DNS knows no host.
func NewServer(t testing.TB, db *sqlstore.Store, opts ...ServerOption) *Server {
	t.Helper()
	return NewServerWithHosts(t, db, nil, opts...)
}

// NewServerWithHosts is NewServer for a server that may ask these hosts for
// clients' documents and keys; the server's DNS knows no others.
func NewServerWithHosts(t testing.TB, db *sqlstore.Store, hosts []*HTTPSHost, opts ...ServerOption) *Server {
	t.Helper()
	return newServer(t, db, Outbound(t, hosts...), opts)
}

// NewServerWithOutbound is NewServer for a server that asks clients' hosts so.
func NewServerWithOutbound(t testing.TB, db *sqlstore.Store, outbound *netguard.Client, opts ...ServerOption) *Server {
	t.Helper()
	return newServer(t, db, outbound, opts)
}

func newServer(t testing.TB, db *sqlstore.Store, outbound *netguard.Client, opts []ServerOption) *Server {
	t.Helper()
	s := &Server{DB: db, Clock: NewClock(), Logs: &Buffer{}, Config: config.Default(), Outbound: outbound,
		Pause: func(context.Context, time.Duration) {}}
	s.Config.Issuer, s.Config.LogLevel = Issuer, "debug"
	s.Config.Secret = oauth.Secret(stateSecret)
	for _, o := range opts {
		o(s.Config)
	}
	s.start(t)
	s.seed(t)
	return s
}

// Again starts another instance on the same database, clock and configuration.
func (s *Server) Again(t testing.TB) *Server {
	t.Helper()
	other := *s
	other.start(t)
	return &other
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	log := slog.New(slog.NewJSONHandler(s.Logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := app.New(t.Context(), app.Options{Config: s.Config, Log: log, Now: s.Clock.Now, Store: s.DB, Passwords: s.passwords(),
		Outbound: s.Outbound, Pause: s.Pause})
	if err != nil {
		t.Fatalf("start server: %v", err)
	}
	s.App = a
}

// passwords makes hashing cheap, but for a test that limits how much of it is
// done at once, which is about its cost.
func (s *Server) passwords() login.PasswordOptions {
	if s.Config.PasswordHashingAtOnce > 0 {
		return login.PasswordOptions{}
	}
	return login.PasswordOptions{MemoryKiB: 64, Iterations: 1}
}

func (s *Server) seed(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	for _, r := range []resource.Resource{
		{Identifier: Resource, Name: "Files", Default: true, Scopes: []resource.Scope{
			{Name: "files:read", Title: "See your files", Required: true, Default: true},
			{Name: "files:write", Title: "Change your files", Risk: resource.RiskChanges},
			{Name: "files:delete", Title: "Delete your files", Risk: resource.RiskPermanent},
			{Name: "admin", Title: "Administer the server", Restricted: true},
		}},
		{Identifier: OtherResource, Name: "Notes", Scopes: []resource.Scope{{Name: "notes:read", Title: "Read your notes", Default: true}}},
	} {
		if _, err := s.App.Resources.Add(ctx, r); err != nil {
			t.Fatalf("add resource: %v", err)
		}
	}
	if _, err := s.App.Accounts.Add(ctx, login.NewUser{Email: Email, Name: "Mina", Password: Password}); err != nil {
		t.Fatalf("add user: %v", err)
	}
}

// URL returns the issuer with path appended.
func (s *Server) URL(path string) string { return s.Config.Issuer + path }

// Client returns an HTTP client for OAuth endpoints: no cookies, no redirects.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: s.transport(), CheckRedirect: noRedirect}
}

// Browser returns an HTTP client with cookies of its own that follows no redirect.
func (s *Server) Browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // cookiejar.New fails never
	}
	return &http.Client{Transport: s.transport(), Jar: jar, CheckRedirect: noRedirect}
}

func (s *Server) transport() http.RoundTripper {
	t := transport{s.App.Public()}
	if s.Recorder != nil {
		return s.Recorder.Over(t)
	}
	return t
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// transport hands requests to a handler in this process.
type transport struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.Host = r.URL.RequestURI(), r.URL.Host
	if r.Host != "" {
		in.Host = r.Host
	}
	if in.RemoteAddr == "" {
		in.RemoteAddr = "192.0.2.1:1234"
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	t.h.ServeHTTP(rec, in)
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// Body reads and closes a response's body.
func Body(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read body: %v", err)
	}
	return string(b)
}

// Dump returns every row of every table as text, for tests that look for what
// must not be stored.
func Dump(ctx context.Context, t testing.TB, db *sqlstore.Store) string {
	t.Helper()
	var b strings.Builder
	if err := db.Dump(ctx, &b); err != nil {
		t.Fatalf("dump database: %v", err)
	}
	return b.String()
}
