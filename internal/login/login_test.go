package login_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/web"
)

const (
	issuer   = "https://as.example"
	password = "correct horse battery"
	ada      = "ada@fernhill.example"
)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// world is a server with the pages of this package alone.
type world struct {
	t         *testing.T
	db        *sqlstore.Store
	clock     *clock
	sessions  *login.Sessions
	accounts  *login.Accounts
	links     *login.SetupLinks
	passwords *login.Passwords
	site      http.Handler
	added     []string // MCP servers added during set-up
}

// worldOption changes a world before it is built.
type worldOption struct {
	development bool
	base        string
	passwords   login.PasswordOptions
	anonymous   int // cap on anonymous sessions
	guesses     func(login.GuessStore) login.GuessStore
}

// cheap makes hashing fast; what is tested is not how slow argon2id is.
func cheap() login.PasswordOptions {
	return login.PasswordOptions{MemoryKiB: 64, Iterations: 1, AtOnce: 2, Queue: 1000}
}

func newWorld(t *testing.T, db *sqlstore.Store, o worldOption) *world {
	t.Helper()
	w := &world{t: t, db: db, clock: newClock()}
	if o.passwords.MemoryKiB == 0 {
		o.passwords = cheap()
	}
	var err error
	check := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.passwords, err = login.NewPasswords(o.passwords)
	check()
	w.sessions, err = login.NewSessions(login.SessionOptions{Store: db, Requests: db, Tx: db, Now: w.clock.Now,
		Development: o.development, MaxAnonymous: o.anonymous})
	check()
	w.accounts, err = login.NewAccounts(login.AccountOptions{Users: db, Sessions: db, Devices: db, Setup: db, Grants: db,
		Consents: db, Audit: db, Tx: db, Passwords: w.passwords, Now: w.clock.Now})
	check()
	w.links = &login.SetupLinks{Store: db, Issuer: issuer + o.base, Now: w.clock.Now}
	pages, err := web.New(web.Options{Issuer: issuer + o.base, Operator: "Fernhill", Now: w.clock.Now})
	check()
	edge := endpoint.New(endpoint.Options{Log: slog.New(slog.DiscardHandler), Pages: pages, Now: w.clock.Now})
	guesses := login.GuessStore(db)
	if o.guesses != nil {
		guesses = o.guesses(db)
	}
	h, err := login.New(login.Options{Edge: edge, Pages: pages, Base: o.base, Issuer: issuer + o.base, Development: o.development,
		Sessions: w.sessions, Forms: &flow.HMACForms{Key: []byte("form key"), Now: w.clock.Now}, Passwords: w.passwords,
		Accounts: w.accounts, Users: db, Devices: db, Guesses: guesses, Setup: db, Requests: db, Audit: db, Tx: db, Now: w.clock.Now,
		Describe: func(_ context.Context, a flow.AuthorizationRequest) (web.Client, string, error) {
			if a.ClientID == "removed" {
				return web.Client{}, "", store.ErrNotFound
			}
			return web.Client{Name: "Quill of " + a.ClientID, Tag: web.TagVerified}, "Team Calendar", nil
		},
		AddResource: func(_ context.Context, url, _ string) error {
			if !strings.HasPrefix(url, "https://") {
				return oauth.InvalidTarget("resource must be an absolute https URI")
			}
			if slices.Contains(w.added, url) {
				return store.ErrExists
			}
			w.added = append(w.added, url)
			return nil
		}})
	check()
	mux := http.NewServeMux()
	h.Routes(mux, nil)
	iss, err := url.Parse(issuer + o.base)
	check()
	w.site = edge.Site(endpoint.SiteOptions{Issuer: iss, Pages: mux, Development: o.development})
	return w
}

func (w *world) addUser(email string, operator bool) login.User {
	w.t.Helper()
	u, err := w.accounts.Add(w.t.Context(), login.NewUser{Email: email, Name: "Ada", Password: password, Operator: operator})
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// openRequest stores an authorization request of the browser's session.
func (w *world) openRequest(b *browser, id string) flow.AuthorizationRequest {
	w.t.Helper()
	now := w.clock.Now()
	a := flow.AuthorizationRequest{ID: id, Reference: "REF", SessionID: b.session().ID, ClientID: "client-1",
		RedirectURI: "https://app.example/cb", Resource: "https://mcp.example", CreatedAt: now, ExpiresAt: now.Add(flow.RequestIdle)}
	if ok, err := w.db.CreateRequest(w.t.Context(), a, 100); err != nil || !ok {
		w.t.Fatalf("CreateRequest = %v, %v", ok, err)
	}
	return a
}

// events returns the names of the audit events so far, oldest first.
func (w *world) events() []string {
	w.t.Helper()
	list, err := w.db.ListEvents(w.t.Context(), 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for i := len(list) - 1; i >= 0; i-- {
		names = append(names, list[i].Name)
	}
	return names
}

func count(names []string, name string) int {
	n := 0
	for _, s := range names {
		if s == name {
			n++
		}
	}
	return n
}

// browser keeps cookies and speaks to the world without a network.
type browser struct {
	w       *world
	ctx     context.Context // of its requests; nil is Background
	ip      string
	cookies map[string]string
	last    []*http.Cookie // as set by the last answer
}

func (w *world) browser() *browser {
	return &browser{w: w, ip: "192.0.2.1", cookies: map[string]string{}}
}

// copy is a browser with the same cookies: somebody who copied them.
func (b *browser) copy() *browser {
	c := b.w.browser()
	for k, v := range b.cookies {
		c.cookies[k] = v
	}
	return c
}

func (b *browser) do(method, target string, form url.Values, header map[string]string) *httptest.ResponseRecorder {
	var r *http.Request
	if form == nil {
		r = httptest.NewRequest(method, issuer+target, nil)
	} else {
		r = httptest.NewRequest(method, issuer+target, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", issuer)
	}
	if b.ctx != nil {
		r = r.WithContext(b.ctx)
	}
	r.RemoteAddr = b.ip + ":4711"
	r.Header.Set("Accept", "text/html")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	rec := httptest.NewRecorder()
	b.w.site.ServeHTTP(rec, r)
	b.last = rec.Result().Cookies()
	for _, c := range b.last {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
			continue
		}
		b.cookies[c.Name] = c.Value
	}
	return rec
}

func (b *browser) get(target string) *httptest.ResponseRecorder {
	return b.do(http.MethodGet, target, nil, nil)
}

func (b *browser) post(target string, form url.Values) *httptest.ResponseRecorder {
	return b.do(http.MethodPost, target, form, nil)
}

// session is the browser's session as a page sees it; nil for none.
func (b *browser) session() *flow.Session {
	b.w.t.Helper()
	r := httptest.NewRequest(http.MethodGet, issuer+"/", nil)
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	s, err := b.w.sessions.Current(r)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return s
}

var hiddenTxn = regexp.MustCompile(`name="txn" value="([^"]+)"`)

// txn is the hidden value of the last form of a page: those of a page's header
// come first.
func txn(t *testing.T, rec *httptest.ResponseRecorder) string {
	t.Helper()
	all := hiddenTxn.FindAllStringSubmatch(rec.Body.String(), -1)
	if len(all) == 0 {
		t.Fatalf("answer %d has no form:\n%s", rec.Code, rec.Body)
	}
	return all[len(all)-1][1]
}

// signIn opens the form for request ("" for none) and posts it.
func (b *browser) signIn(request, email, password string) *httptest.ResponseRecorder {
	b.w.t.Helper()
	target := "/sign-in"
	if request != "" {
		target += "?request=" + request
	}
	return b.post("/sign-in", url.Values{"request": {request}, "txn": {txn(b.w.t, b.get(target))}, "username": {email}, "password": {password}})
}

// wantRedirect fails unless rec is a 303 to location.
func wantRedirect(t *testing.T, rec *httptest.ResponseRecorder, location string) {
	t.Helper()
	if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != location {
		t.Fatalf("answer = %d to %q, want 303 to %q\n%s", rec.Code, rec.Header().Get("Location"), location, main(rec))
	}
}

// wantPage fails unless rec has the status and its main part says all of words.
func wantPage(t *testing.T, rec *httptest.ResponseRecorder, status int, words ...string) {
	t.Helper()
	if rec.Code != status {
		t.Fatalf("status = %d, want %d\n%s", rec.Code, status, main(rec))
	}
	for _, s := range words {
		if !strings.Contains(main(rec), s) {
			t.Errorf("page lacks %q:\n%s", s, main(rec))
		}
	}
}

// main is the main part of a page.
func main(rec *httptest.ResponseRecorder) string {
	_, after, found := strings.Cut(rec.Body.String(), "<main")
	if !found {
		return rec.Body.String()
	}
	return "<main" + after
}

// each runs fn with a world on either database.
func each(t *testing.T, o worldOption, fn func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) { fn(t, newWorld(t, db, o)) })
}

func sprint(format string, args ...any) string { return fmt.Sprintf(format, args...) }
