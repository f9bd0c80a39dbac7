package login_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// newLink makes a set-up link and returns its token and its path with query.
func (w *world) newLink() (token, target string) {
	w.t.Helper()
	secret, link, err := w.links.New(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	target, found := strings.CutPrefix(link, issuer)
	if !found || !strings.Contains(target, "/setup?link="+secret.Reveal()) {
		w.t.Fatalf("link = %q, want it below the issuer with the token", link)
	}
	return secret.Reveal(), target
}

func accountForm(link, txn string) url.Values {
	return url.Values{"step": {"account"}, "link": {link}, "txn": {txn}, "username": {ada}, "name": {"Ada"}, "password": {password}}
}

func TestSetup(t *testing.T) {
	each(t, worldOption{base: "/tenant"}, func(t *testing.T, w *world) {
		link, target := w.newLink()
		b := w.browser()
		start := b.get(target)
		wantPage(t, start, http.StatusOK, `name="step" value="start"`)
		wantPage(t, b.get(target), http.StatusOK) // a link scanner spends nothing
		account := b.post("/tenant/setup", url.Values{"step": {"start"}, "link": {link}, "txn": {txn(t, start)}})
		wantPage(t, account, http.StatusOK, "Create the administrator", `autocomplete="new-password"`)

		bad := accountForm(link, txn(t, account))
		bad.Set("username", "ada")
		bad.Set("password", "short")
		problems := b.post("/tenant/setup", bad)
		wantPage(t, problems, http.StatusUnprocessableEntity, "name@example.com", "at least 12 characters", `value="ada"`)
		if strings.Contains(problems.Body.String(), "short\"") {
			t.Error("the form repeats the password")
		}

		before := b.session()
		wantRedirect(t, b.post("/tenant/setup", accountForm(link, txn(t, problems))), "/tenant/setup")
		s := b.session()
		if !s.SignedIn() || !s.Operator || s.Email != ada || s.ID == before.ID {
			t.Fatalf("session = %+v, want the new operator's, with a new id", s)
		}
		if users, err := w.db.ListUsers(t.Context()); err != nil || len(users) != 1 || users[0].LastSignInAt.IsZero() {
			t.Errorf("users = %+v, %v; want the operator, who has signed in", users, err)
		}
		server := b.get("/tenant/setup")
		wantPage(t, server, http.StatusOK, "Add your first MCP server")
		form := url.Values{"step": {"server"}, "txn": {txn(t, server)}, "url": {"ftp://mcp.example"}}
		wantPage(t, b.post("/tenant/setup", form), http.StatusUnprocessableEntity, "ftp://mcp.example", "There is a problem")
		form.Set("url", "")
		wantPage(t, b.post("/tenant/setup", form), http.StatusUnprocessableEntity, "There is a problem")
		form.Set("url", "https://mcp.example/tools")
		wantPage(t, b.post("/tenant/setup", form), http.StatusOK, "https://mcp.example/tools", issuer+"/tenant",
			issuer+"/.well-known/oauth-authorization-server/tenant", issuer+"/tenant/.well-known/openid-configuration")
		wantPage(t, b.post("/tenant/setup", form), http.StatusUnprocessableEntity, "added already")
		if !slices.Equal(w.added, []string{"https://mcp.example/tools"}) {
			t.Errorf("added %v, want the one server", w.added)
		}
		if events := w.events(); len(events) != 2 || count(events, "user.created") != 1 || count(events, "user.signed_in") != 1 {
			t.Errorf("LG-07: events %v, want user.created and user.signed_in", events)
		}
		wantRedirect(t, w.browser().signInBelow("/tenant", ada, password), "/tenant/account")
	})
}

// signInBelow is signIn below a path.
func (b *browser) signInBelow(base, email, password string) *httptest.ResponseRecorder {
	b.w.t.Helper()
	return b.post(base+"/sign-in", url.Values{"txn": {txn(b.w.t, b.get(base+"/sign-in"))}, "username": {email}, "password": {password}})
}

func TestSetupSkipServer(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		b := w.setUp()
		form := url.Values{"step": {"server"}, "txn": {txn(t, b.get("/setup"))}, "skip": {"yes"}, "url": {""}}
		wantPage(t, b.post("/setup", form), http.StatusOK, "Your server is ready")
		if len(w.added) != 0 {
			t.Errorf("added %v, want nothing", w.added)
		}
		form.Set("txn", "AAAA")
		if rec := b.post("/setup", form); rec.Code != http.StatusForbidden {
			t.Errorf("CS-01 forged token: %d, want 403", rec.Code)
		}
		w.clock.advance(31 * time.Minute)
		wantPage(t, b.get("/setup"), http.StatusNotFound)
	})
}

// setUp makes the first operator through the pages.
func (w *world) setUp() *browser {
	w.t.Helper()
	link, target := w.newLink()
	b := w.browser()
	wantRedirect(w.t, b.post("/setup", accountForm(link, txn(w.t, b.get(target)))), "/setup")
	return b
}

func TestSL17_Strangers(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		link, target := w.newLink()
		guess := strings.Repeat("A", 43)
		for name, target := range map[string]string{"no link": "/setup", "guessed link": "/setup?link=" + guess, "short link": "/setup?link=x"} {
			wantPage(t, w.browser().get(target), http.StatusGone, "setup-link")
			b := w.browser()
			token := txn(t, b.get("/sign-in")) // a session, and the token of another form
			if rec := b.post("/setup", accountForm(link, token)); rec.Code != http.StatusForbidden {
				t.Errorf("SL-17 %s: form of another page: %d, want 403", name, rec.Code)
			}
			if rec := w.browser().post("/setup", accountForm(link, token)); rec.Code != http.StatusForbidden {
				t.Errorf("SL-17 %s: no session: %d, want 403", name, rec.Code)
			}
			if rec := b.post("/setup", url.Values{"step": {"server"}, "url": {"https://evil.example"}}); rec.Code != http.StatusNotFound {
				t.Errorf("SL-17 %s: second step: %d, want 404", name, rec.Code)
			}
		}
		b := w.browser()
		token := txn(t, b.get(target))
		w.clock.advance(60 * time.Minute)
		wantPage(t, b.get(target), http.StatusGone, "setup-link")
		wantPage(t, b.post("/setup", accountForm(link, token)), http.StatusGone)
		if n, err := w.db.CountUsers(t.Context()); n != 0 || err != nil || len(w.added) != 0 {
			t.Errorf("%d accounts, %v, servers %v; want nothing made", n, err, w.added)
		}
	})
}

func TestSL17_SetupIsOver(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		link, target := w.newLink()
		otherLink, otherTarget := w.newLink()
		late, later := w.browser(), w.browser()
		lateForm, laterForm := accountForm(link, txn(t, late.get(target))), accountForm(otherLink, txn(t, later.get(otherTarget)))
		w.addUser(ada, true) // from a shell
		for _, b := range []*browser{late, later, w.browser()} {
			wantPage(t, b.get(target), http.StatusNotFound)
			wantPage(t, b.get(otherTarget), http.StatusNotFound)
			wantPage(t, b.get("/setup"), http.StatusNotFound)
		}
		lateForm.Set("username", "late@fernhill.example")
		wantPage(t, late.post("/setup", lateForm), http.StatusNotFound)
		wantPage(t, later.post("/setup", laterForm), http.StatusNotFound)
		if _, _, err := w.links.New(t.Context()); !errors.Is(err, login.ErrOperatorExists) {
			t.Errorf("New with an operator = %v, want ErrOperatorExists", err)
		}
		plain := w.browser()
		w.addUser("eve@fernhill.example", false)
		wantRedirect(t, plain.signIn("", "eve@fernhill.example", password), "/account")
		wantPage(t, plain.get("/setup"), http.StatusNotFound)
		if n, err := w.db.CountUsers(t.Context()); n != 2 || err != nil {
			t.Errorf("%d accounts, %v; want the two that were added", n, err)
		}
	})
}

// A set-up link is used once, even by the same browser.
func TestSL17_LinkIsUsedOnce(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.setUp()
		u, err := w.accounts.Get(t.Context(), ada)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.accounts.Remove(t.Context(), u.ID, true); err != nil {
			t.Fatal(err)
		}
		link, target := w.newLink() // set-up is open again
		b := w.browser()
		form := accountForm(link, txn(t, b.get(target)))
		wantRedirect(t, b.post("/setup", form), "/setup")
		if _, err := w.accounts.Remove(t.Context(), ada, true); err != nil {
			t.Fatal(err)
		}
		wantPage(t, w.browser().get(target), http.StatusGone, "setup-link")
	})
}

// SL-17: two servers on one database race one set-up link through the pages.
func TestSL17_PagesRace(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"sqlite": testkit.SQLitePath, "postgres": testkit.PostgresURL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := url(t)
			var worlds []*world
			for range 2 {
				db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: dsn, MaxConns: 4})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				worlds = append(worlds, newWorld(t, db, worldOption{}))
			}
			link, target := worlds[0].newLink()
			codes, post := make([]int, 8), make([]func() int, 8)
			for i := range post {
				b := worlds[i%2].browser()
				form := accountForm(link, txn(t, b.get(target)))
				form.Set("username", sprint("racer%d@fernhill.example", i))
				post[i] = func() int { return b.post("/setup", form).Code }
			}
			var wg sync.WaitGroup
			for i := range codes {
				wg.Go(func() { codes[i] = post[i]() })
			}
			wg.Wait()
			won := 0
			for _, c := range codes {
				switch c {
				case http.StatusSeeOther:
					won++
				case http.StatusGone, http.StatusNotFound:
				default:
					t.Errorf("a racer got %d, want 303, 410 or 404", c)
				}
			}
			if n, err := worlds[1].db.CountUsers(t.Context()); n != 1 || won != 1 || err != nil {
				t.Errorf("%d accounts, %d winners, %v; want one", n, won, err)
			}
		})
	}
}
