package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/test/testkit/launch"
)

// journey is one person at one kind of browser, from the set-up link to
// signing out.
type journey struct {
	name     string
	view     view
	js       bool
	postgres bool
	// skip leaves the first MCP server out of set-up.
	skip bool
	// host is where the client's program listens.
	host string
}

var (
	desk  = view{name: "1280", width: 1280, height: 800, scheme: "light"}
	phone = view{name: "390", width: 390, height: 844, scheme: "dark"}
)

// TestFlow takes a person through everything, in two sizes, with and without
// JavaScript.
func TestFlow(t *testing.T) {
	t.Parallel()
	for _, j := range []journey{
		{name: "1280", view: desk, js: true, host: "localhost"},
		{name: "390", view: phone, js: true, skip: true, host: "127.0.0.1", postgres: true},
		{name: "1280-noscript", view: desk, skip: true, host: "::1"},
		{name: "390-noscript", view: phone, host: "localhost"},
	} {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			database := ""
			if j.postgres {
				database = testkit.EmptyPostgresURL(t)
			}
			s := &site{Ostiary: launch.ServeOstiary(t, database)}
			b := openTab(t, j.view, j.js, artefacts(t, "flow"))
			setUp(t, b, s, j.skip)

			l := loopback(t, j.host)
			a := s.register(t, "Quill Desktop", l.uri)
			refreshToken := allowSubset(t, b, a, l)
			answeredBefore(b)
			deny(t, b, a, l)
			disconnect(t, b, a, refreshToken)
			signOut(b)
			expired(b, s)
		})
	}
}

// setUp makes the first account by the printed link (D3), and the first MCP
// server in the browser or, when the person skips that, from the shell.
func setUp(t *testing.T, b *tab, s *site, skip bool) {
	t.Helper()
	link := s.setupLink(t)
	b.goTo(link)
	b.at("Set up", 200)
	b.look("setup-start")
	b.press("main .btn")
	b.at("Create the administrator", 200)
	b.look("setup-account")
	b.fill("#username", email)
	b.fill("#name", "Maria Lindqvist")
	b.fill("#password", password)
	b.press("main .btn")
	b.at("Add your first MCP server", 200)
	b.look("setup-server")
	s.resource = fmt.Sprintf("http://127.0.0.1:%d/mcp", launch.FreePort(t))
	if skip {
		b.press("button[name=skip]")
	} else {
		b.fill("#url", "ftp://mcp.fernhill.example/mcp")
		b.press("main .btn")
		b.until("document.querySelector('#problem')")
		b.look("setup-server-problem")
		b.fill("#url", s.resource)
		b.fill("#name", "Team Calendar")
		b.press("main .btn")
	}
	b.at("ready", 200)
	b.look("setup-done")
	b.press("main .btn")
	b.at("Your account", 200)
	b.look("account-empty")
	giveScopes(t, s, skip)
	signOut(b)

	// Set-up is over: for somebody who finds the link there is nothing (SL-17).
	b.goTo(link)
	b.at("Page not found", 404)
	b.look("setup-over")
}

// giveScopes does what an operator does next: say what the server's scopes mean.
func giveScopes(t *testing.T, s *site, add bool) {
	t.Helper()
	if add {
		s.addResource(t, s.resource, "Team Calendar", calendar)
		return
	}
	args := []string{"resource", "update", s.resource}
	for _, scope := range calendar {
		args = append(args, "--scope", scope)
	}
	s.Run(t, "", args...)
}

func signOut(b *tab) {
	b.t.Helper()
	b.press(`header form[action$="/sign-out"] button`)
	b.at("You are signed out", 200)
	b.look("signed-out")
}

// signIn gives the right password.
func signIn(b *tab) {
	b.t.Helper()
	b.at("Sign in to", 200)
	b.fill("#email", email)
	b.fill("#password", password)
	b.press("main .btn")
}

// signInAtLast tries a wrong password first.
func signInAtLast(b *tab) {
	b.t.Helper()
	b.at("Sign in to", 200)
	b.look("sign-in")
	b.fill("#email", email)
	b.fill("#password", "wrong")
	b.press("main .btn")
	b.until("document.querySelector('#problem')")
	if got := b.response().Status; got != 422 {
		b.t.Errorf("a wrong password has status %d, want 422", got)
	}
	if got := eval[string](b, `document.querySelector('#email').value`); got != email {
		b.t.Errorf("the page forgot the email address: %q", got)
	}
	if got := eval[string](b, `document.querySelector('#password').value`); got != "" {
		b.t.Error("the page repeats the password")
	}
	b.look("sign-in-problem")
	b.fill("#password", password)
	b.press("main .btn")
}

// allowSubset signs in and allows all but one scope. It returns the refresh
// token that the client got.
func allowSubset(t *testing.T, b *tab, a *app, l *listener) string {
	t.Helper()
	l.stay.Store(true)
	b.goTo(a.authorizeURL("scope", "calendar.read calendar.write calendar.delete"))
	signInAtLast(b)
	b.at("Let “Quill Desktop” use", 200)
	b.look("consent")
	b.tick(`input[value="calendar.write"]`)
	b.answer("allow")
	b.at("You allowed “Quill Desktop”", 200)
	got := leave(t, b, l, "return-allowed")
	a.checkResponse(got, "")
	reply := a.redeem(got.Get("code"))
	// calendar.delete is permanent and the client unverified, so it starts unticked
	if reply.AccessToken == "" || reply.RefreshToken == "" || reply.Scope != "calendar.read" {
		t.Fatalf("tokens are for %q (refresh token: %t, error %q), want calendar.read", reply.Scope, reply.RefreshToken != "", reply.Error)
	}
	return reply.RefreshToken
}

// leave looks at the return page that brought the response while the listener
// made the browser stay, presses its button, and returns the response.
func leave(t *testing.T, b *tab, l *listener, shot string) url.Values {
	t.Helper()
	got := l.response(t)
	b.look(shot)
	l.stay.Store(false)
	b.press("main a.btn")
	b.at("Back at the client", 200)
	if again := l.response(t); again.Encode() != got.Encode() {
		t.Error("the button leads to another address than the page did")
	}
	return got
}

// answeredBefore goes back to where the answer was given.
func answeredBefore(b *tab) {
	b.t.Helper()
	for range 4 {
		b.back()
		b.until("document.querySelector('h1')")
		switch h := eval[string](b, `document.querySelector('h1').textContent`); {
		case strings.HasPrefix(h, "You allowed"):
			// The link was used: the page says so and leads nowhere.
			if b.header("Refresh") != "" || eval[bool](b, `!!document.querySelector('main a.btn')`) {
				b.t.Error("the return page of a redeemed code still leads to the client")
			}
			b.look("return-spent")
		case strings.HasPrefix(h, "You already answered"):
			b.look("answered")
			return
		default:
			b.t.Fatalf("back leads to %q", h)
		}
	}
	b.t.Fatal("back does not lead to the answered request")
}

// deny refuses: the program that waits hears of it (D14: a loopback redirect may
// be refreshed to).
func deny(t *testing.T, b *tab, a *app, l *listener) {
	t.Helper()
	l.stay.Store(true)
	b.goTo(a.authorizeURL("scope", "calendar.read calendar.write"))
	b.at("Let “Quill Desktop” use", 200)
	b.look("consent-again")
	b.answer("deny")
	b.at("You did not allow “Quill Desktop”", 200)
	a.checkResponse(leave(t, b, l, "return-denied"), "access_denied")
}

// disconnect ends what was allowed, and the client's refresh token with it.
func disconnect(t *testing.T, b *tab, a *app, refreshToken string) {
	t.Helper()
	next := a.refresh(refreshToken)
	if next.RefreshToken == "" {
		t.Fatalf("refresh before the end: %q", next.Error)
	}
	b.goTo(a.site.Issuer + "/account")
	b.at("Your account", 200)
	if !eval[bool](b, `document.querySelector('main').textContent.includes('Disconnects by itself in 30 days.')`) {
		t.Error("the account page does not say that the app has 30 days (D8)")
	}
	b.look("account")
	b.press(`form[action$="/disconnect"] button`)
	b.at("Disconnect “Quill Desktop”?", 200)
	b.look("disconnect")
	b.press(`main button.danger`)
	b.until("document.querySelector('.note.ok')")
	b.look("disconnected")
	if got := a.refresh(next.RefreshToken); got.Error != "invalid_grant" {
		t.Errorf("refresh after the end: error %q, want invalid_grant", got.Error)
	}
}

func expired(b *tab, s *site) {
	b.t.Helper()
	b.goTo(s.Issuer + "/authorize/continue?request=AAAAAAAAAAAAAAAAAAAAAA")
	b.at("This page has expired", 400)
	b.look("expired")
}
