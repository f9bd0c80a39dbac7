package e2e

import (
	"strings"
	"testing"
)

// tokensOf finishes a flow that ended at the client with a code.
func (a *app) tokensOf(b *tab, l *listener, wantScope string) tokens {
	a.t.Helper()
	b.at("Back at the client", 200)
	got := l.response(a.t)
	a.checkResponse(got, "")
	reply := a.redeem(got.Get("code"))
	if reply.Scope != wantScope {
		a.t.Fatalf("tokens are for %q (error %q), want %q", reply.Scope, reply.Error, wantScope)
	}
	return reply
}

// refusedOf finishes a flow that ended at the client with access_denied.
func (a *app) refusedOf(b *tab, l *listener) {
	a.t.Helper()
	b.at("Back at the client", 200)
	a.checkResponse(l.response(a.t), "access_denied")
}

// TestStepUp takes a verified app from one permission to all: asked for alone,
// refused until it is not asked about any more, and allowed to ask again.
func TestStepUp(t *testing.T) {
	t.Parallel()
	for _, v := range []view{desk, phone} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "Team Calendar", append([]string{"calendar.share=Share a calendar"}, calendar...))
			b := openTab(t, v, v == desk, artefacts(t, "step-up"))
			l := loopback(t, "127.0.0.1")
			a := s.register(t, "Quill Desktop", l.uri)
			s.Run(t, "", "client", "verify", a.id, "--yes")
			const one, two = "calendar.read", "calendar.read calendar.write"
			const all = "calendar.read calendar.write calendar.delete calendar.share"

			b.goTo(a.authorizeURL("scope", one))
			signIn(b)
			b.at("Let “Quill Desktop” use", 200)
			b.answer("allow")
			first := a.tokensOf(b, l, one)
			b.goTo(a.authorizeURL("scope", one)) // nothing new: no page
			a.tokensOf(b, l, one)

			b.goTo(a.authorizeURL("scope", two))
			b.at("“Quill Desktop” asks for one more permission", 200)
			if eval[bool](b, `!!document.querySelector('main input[type=checkbox]')`) {
				t.Error("one new permission has a checkbox: the buttons are the choice")
			}
			b.look("one-more")
			b.tick("section details summary")
			b.look("one-more-already-allowed")
			b.answer("allow")
			second := a.tokensOf(b, l, two)

			b.goTo(a.authorizeURL("scope", all))
			b.at("“Quill Desktop” asks for 2 more permissions", 200)
			b.look("two-more")
			b.tick(`input[value="calendar.delete"]`)
			b.answer("allow")
			third := a.tokensOf(b, l, two+" calendar.share")

			for range 3 {
				b.goTo(a.authorizeURL("scope", all))
				b.at("“Quill Desktop” asks for one more permission", 200)
				b.answer("deny")
				a.refusedOf(b, l)
			}
			b.goTo(a.authorizeURL("scope", all)) // the client answers, not a page
			a.refusedOf(b, l)
			for _, reply := range []tokens{first, second, third} {
				if next := a.refresh(reply.RefreshToken); next.Scope != reply.Scope {
					t.Errorf("after the refusals a refresh gives %q (%s), want %q as before", next.Scope, next.Error, reply.Scope)
				}
			}

			b.goTo(s.Issuer + "/account")
			b.at("Your account", 200)
			b.look("asks-again")
			if got := eval[string](b, `document.querySelector('.list .note').textContent`); !strings.Contains(got, "Asks again for: Delete events") {
				t.Errorf("Connected apps says %q", got)
			}
			b.press(`form[action$="/let-ask"] button`)
			b.at("Your account", 200)
			b.until(`!document.querySelector('form[action$="/let-ask"]')`)
			b.goTo(a.authorizeURL("scope", all))
			b.at("“Quill Desktop” asks for one more permission", 200)
			b.look("asks-again-permanent")
			b.answer("allow")
			a.tokensOf(b, l, all)
		})
	}
}

// TestA34_NoStepUpForUnverifiedApps: an app on this computer that nobody verified
// has the whole page each time, with what was allowed before marked.
func TestA34_NoStepUpForUnverifiedApps(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, desk, true, artefacts(t, "step-up"))
	l := loopback(t, "127.0.0.1")
	a := s.register(t, "Quill Desktop", l.uri)
	b.goTo(a.authorizeURL("scope", "calendar.read"))
	signIn(b)
	b.at("Let “Quill Desktop” use", 200)
	b.answer("allow")
	a.tokensOf(b, l, "calendar.read")
	for range 4 { // refusals change nothing: there is nothing to be silent about
		b.goTo(a.authorizeURL("scope", "calendar.read calendar.write"))
		b.at("Let “Quill Desktop” use", 200)
		b.answer("deny")
		a.refusedOf(b, l)
	}
	b.goTo(a.authorizeURL("scope", "calendar.read calendar.write"))
	b.at("Let “Quill Desktop” use", 200)
	if got := eval[string](b, `document.querySelector('.perms').textContent`); !strings.Contains(got, "See your calendars") || !strings.Contains(got, "Allowed before") {
		t.Errorf("the page needs %q, want what was allowed marked", got)
	}
	b.look("unverified")
	b.answer("allow")
	a.tokensOf(b, l, "calendar.read calendar.write")
}
