package login_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestSL02_Cookies(t *testing.T) {
	for _, tt := range []struct {
		name     string
		o        worldOption
		prefix   string
		secure   bool
		lifeDays float64
	}{
		{"SL-02 production", worldOption{}, "__Host-", true, 30},
		{"SL-02 development (D4)", worldOption{development: true}, "dev-", false, 8.0 / 24},
		{"SL-02 below a path", worldOption{base: "/tenant"}, "__Host-", true, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, tt.o, func(t *testing.T, w *world) {
				w.addUser(ada, false)
				b := w.browser()
				form := url.Values{"txn": {txn(t, b.get(tt.o.base+"/sign-in"))}, "username": {ada}, "password": {password}}
				set := b.last
				wantRedirect(t, b.post(tt.o.base+"/sign-in", form), tt.o.base+"/account")
				set = append(set, b.last...)
				var names []string
				for _, c := range set {
					names = append(names, c.Name)
					if c.Secure != tt.secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
						t.Errorf("cookie %s: %s; want Secure=%v, HttpOnly, SameSite=Lax, Path=/ and no Domain", c.Name, c.Raw, tt.secure)
					}
					if life := time.Duration(c.MaxAge) * time.Second; c.Name == tt.prefix+"sid" && life.Hours() != tt.lifeDays*24 {
						t.Errorf("cookie %s lives %v, want %v days", c.Name, life, tt.lifeDays)
					}
				}
				if want := []string{tt.prefix + "sid", tt.prefix + "sid", tt.prefix + "device"}; !slices.Equal(names, want) {
					t.Errorf("cookies set = %v, want %v", names, want)
				}
			})
		})
	}
}

func TestSL09_SessionLimits(t *testing.T) {
	for _, tt := range []struct {
		name        string
		development bool
		step        time.Duration // between two pages
		lives       time.Duration // how long pages keep the session alive
	}{
		{"SL-09 idle", false, 12 * time.Hour, 0},
		{"SL-09 absolute", false, 11 * time.Hour, 30 * 24 * time.Hour},
		{"SL-09 absolute in development mode", true, 7 * time.Hour, 8 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, worldOption{development: tt.development}, func(t *testing.T, w *world) {
				w.addUser(ada, false)
				b := w.browser()
				wantRedirect(t, b.signIn("", ada, password), "/account")
				began := w.clock.Now()
				for b.session().SignedIn() {
					w.clock.advance(tt.step)
					if w.clock.Now().Sub(began) > 40*24*time.Hour {
						t.Fatal("the session never ends")
					}
				}
				ended := w.clock.Now().Sub(began)
				if ended <= tt.lives-tt.step || ended >= tt.lives+2*tt.step {
					t.Errorf("session ended %v after sign-in, want about %v", ended, tt.lives)
				}
			})
		})
	}
}

// D33: a session in which nobody signed in outlives the forms of its pages, and
// not by much.
func TestD33_AnonymousSessionEnds(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		b := w.browser()
		b.get("/sign-in")
		for _, step := range []struct {
			after time.Duration
			lives bool
		}{{90*time.Minute - time.Second, true}, {90*time.Minute - time.Second, true}, {90 * time.Minute, false}} {
			w.clock.advance(step.after)
			if s := b.session(); (s != nil) != step.lives {
				t.Fatalf("after another %v: session = %+v, want one: %v", step.after, s, step.lives)
			}
		}
	})
}

// DO-02: whoever opens page after page without keeping the cookie makes a
// bounded number of rows, and is in nobody else's way.
func TestDO02_AnonymousSessionsOfOneSource(t *testing.T) {
	each(t, worldOption{anonymous: 3}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		known := w.browser()
		wantRedirect(t, known.signIn("", ada, password), "/account")
		open := func(ip string) *httptest.ResponseRecorder {
			b := w.browser()
			b.ip = ip
			return b.get("/sign-in")
		}
		var first *browser
		for _, ip := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"} {
			first = w.browser()
			first.ip = "[" + ip + "]"
			wantPage(t, first.get("/sign-in"), http.StatusOK)
		}
		refused := open("[2001:db8::4]")
		wantPage(t, refused, http.StatusTooManyRequests)
		if refused.Header().Get("Retry-After") != "60" || len(refused.Result().Cookies()) != 0 {
			t.Errorf("Retry-After %q, cookies %v; want 60 and none", refused.Header().Get("Retry-After"), refused.Result().Cookies())
		}
		wantPage(t, open("[2001:db8:0:1::1]"), http.StatusOK)
		wantRedirect(t, known.get("/sign-in"), "/account")
		wantRedirect(t, first.signIn("", ada, password), "/account")
		wantPage(t, open("[2001:db8::5]"), http.StatusOK) // the sign-in made room
		wantPage(t, open("[2001:db8::6]"), http.StatusTooManyRequests)
		w.clock.advance(flow.RequestMax)
		wantPage(t, open("[2001:db8::6]"), http.StatusOK)
	})
}

// last_seen_at is written at most once a minute, so that a page costs no write.
func TestSessionTouch(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		u := w.addUser(ada, false)
		b := w.browser()
		wantRedirect(t, b.signIn("", ada, password), "/account")
		seen := func() time.Time {
			list, err := w.db.ListSessions(t.Context(), u.ID, w.clock.Now())
			if err != nil || len(list) != 1 {
				t.Fatalf("ListSessions = %v, %v; want one", list, err)
			}
			return list[0].LastSeenAt
		}
		began := w.clock.Now()
		w.clock.advance(59 * time.Second)
		b.session()
		if got := seen(); !got.Equal(began) {
			t.Errorf("last seen %v after 59 s, want it untouched at %v", got, began)
		}
		w.clock.advance(time.Second)
		b.session()
		if got := seen(); !got.Equal(began.Add(time.Minute)) {
			t.Errorf("last seen %v after 60 s, want %v", got, began.Add(time.Minute))
		}
	})
}

func TestSL09_SignOut(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		b := w.browser()
		wantPage(t, b.get("/sign-out"), http.StatusOK, "You are signed out")
		wantRedirect(t, b.signIn("", ada, password), "/account")
		thief := b.copy()
		page := b.get("/sign-out")
		wantPage(t, page, http.StatusOK, "Sign out of Fernhill?")
		for name, form := range map[string]url.Values{"CS-01 no token": {}, "CS-01 forged token": {"txn": {"AAAA"}}} {
			if rec := b.post("/sign-out", form); rec.Code != http.StatusForbidden || !b.session().SignedIn() {
				t.Errorf("%s: %d, session %v; want 403 and still signed in", name, rec.Code, b.session())
			}
		}
		wantRedirect(t, b.post("/sign-out", url.Values{"txn": {txn(t, page)}}), "/sign-out")
		if _, has := b.cookies["__Host-sid"]; has {
			t.Error("the browser still has the cookie")
		}
		if s := thief.session(); s != nil {
			t.Errorf("a copy of the cookie still gives %+v", s)
		}
		wantPage(t, b.get("/sign-out"), http.StatusOK, "You are signed out")
		if n := count(w.events(), "user.signed_out"); n != 1 {
			t.Errorf("LG-07: %d events user.signed_out, want 1", n)
		}
	})
}

// ST-02: what the database holds opens nothing when it is sent as a cookie.
func TestST02_StoredValuesAreNoSession(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		u := w.addUser(ada, false)
		b := w.browser()
		wantRedirect(t, b.signIn("", ada, password), "/account")
		rows, err := w.db.ListSessions(t.Context(), u.ID, w.clock.Now())
		if err != nil || len(rows) != 1 {
			t.Fatalf("ListSessions = %v, %v; want one", rows, err)
		}
		if rows[0].ID == b.cookies["__Host-sid"] || strings.Contains(rows[0].ID, b.cookies["__Host-sid"]) {
			t.Error("ST-01: the row holds the cookie's value")
		}
		for _, value := range []string{rows[0].ID, rows[0].ID[:43], "", "x", strings.Repeat("A", 43)} {
			c := w.browser()
			c.cookies["__Host-sid"] = value
			if s := c.session(); s != nil {
				t.Errorf("cookie %q gives %+v, want nothing", value, s)
			}
		}
	})
}

// A hostile User-Agent header neither breaks the row nor grows it.
func TestSessionUserAgent(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		u := w.addUser(ada, false)
		b := w.browser()
		token := txn(t, b.get("/sign-in"))
		agent := strings.Repeat("x", 255) + "é\xff" + strings.Repeat("y", 10000)
		rec := b.do(http.MethodPost, "/sign-in", url.Values{"txn": {token}, "username": {ada}, "password": {password}},
			map[string]string{"User-Agent": agent})
		wantRedirect(t, rec, "/account")
		rows, err := w.db.ListSessions(t.Context(), u.ID, w.clock.Now())
		if err != nil || len(rows) != 1 || rows[0].UserAgent != strings.Repeat("x", 255) || rows[0].IP != "192.0.2.1" {
			t.Errorf("row = %+v, %v; want the first 255 bytes of valid text and the address", rows, err)
		}
	})
}

func TestNewChecksOptions(t *testing.T) {
	t.Parallel()
	if _, err := login.New(login.Options{}); err == nil {
		t.Error("New without options: no error")
	}
	if _, err := login.NewSessions(login.SessionOptions{}); err == nil {
		t.Error("NewSessions without options: no error")
	}
	if _, err := login.NewAccounts(login.AccountOptions{}); err == nil {
		t.Error("NewAccounts without options: no error")
	}
	if _, err := login.NewPasswords(login.PasswordOptions{MemoryKiB: 1}); err == nil {
		t.Error("NewPasswords with 1 KiB: no error")
	}
}

// SL-15: what a peer says about the scheme or host changes no cookie and no link.
func TestSL15_ForwardedHeadersChangeNoCookie(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		forwarded := map[string]string{"X-Forwarded-Proto": "http", "X-Forwarded-Host": "evil.example", "X-Forwarded-For": "203.0.113.1",
			"Forwarded": "for=203.0.113.1;proto=http;host=evil.example"}
		b := w.browser()
		page := b.do(http.MethodGet, "/sign-in", nil, forwarded)
		set := b.last
		rec := b.do(http.MethodPost, "/sign-in", url.Values{"txn": {txn(t, page)}, "username": {ada}, "password": {password}}, forwarded)
		wantRedirect(t, rec, "/account")
		for _, c := range append(set, b.last...) {
			if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || c.Domain != "" {
				t.Errorf("cookie %s; want __Host- and Secure", c.Raw)
			}
		}
		if strings.Contains(page.Body.String(), "evil.example") {
			t.Error("the page names the forwarded host")
		}
		rows, err := w.db.ListSessions(t.Context(), b.session().Subject, w.clock.Now())
		if err != nil || len(rows) != 1 || rows[0].IP != "192.0.2.1" {
			t.Errorf("session rows = %+v, %v; want the peer's address", rows, err)
		}
	})
}

// ST-01: after set-up and sign-in the database's files hold neither password
// nor set-up link nor cookie.
func TestST01_NothingInTheDatabaseOpensAnything(t *testing.T) {
	t.Parallel()
	path := testkit.SQLitePath(t)
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: path})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, db, worldOption{})
	link, target := w.newLink()
	b := w.browser()
	wantRedirect(t, b.post("/setup", accountForm(link, txn(t, b.get(target)))), "/setup")
	anonymous := w.browser()
	anonymous.get("/sign-in")
	wantRedirect(t, w.browser().signIn("", ada, password), "/account")
	secrets := map[string]string{"password": password, "set-up link": link}
	for _, c := range []*browser{b, anonymous} {
		for name, value := range c.cookies {
			secrets[name+" of "+sprint("%p", c)] = value
		}
	}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range secrets {
			if bytes.Contains(data, []byte(value)) {
				t.Errorf("%s: the %s is in the database", filepath.Base(path+suffix), name)
			}
		}
		if suffix == "-wal" && !bytes.Contains(data, []byte(ada)) {
			t.Error("the account is not in the write-ahead log: the search looks in the wrong place")
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
