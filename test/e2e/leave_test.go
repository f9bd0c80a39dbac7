package e2e

import (
	"strings"
	"testing"
)

// TestCS13_WebsiteThatGoesOnToAnApp allows a web client whose callback sends the
// browser on to the scheme of its program, as claude.ai does. A form-action that
// reached so far would stop the second hop, and the browser would say so.
func TestCS13_WebsiteThatGoesOnToAnApp(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, desk, false, artefacts(t, "leave"))
	const program = "claude://claude.ai/oauth/callback"
	w := website(t, "app.atlas.example", program)
	a := s.register(t, "Atlas Assistant", w.uri)

	b.goTo(a.authorizeURL())
	signIn(b)
	b.at("Let “Atlas Assistant” use", 200)
	b.look("consent-website")
	b.answer("allow")
	b.at("You allowed “Atlas Assistant”", 200)
	a.checkResponse(w.response(t), "")
	b.eventually("the program of the client is launched", func() bool { return b.went("GET "+program) > 0 })
	b.look("return-website")
}

// TestD14_WebsiteIsToldByTheButton denies a web client: nobody vouches for it,
// so only the person's click goes there.
func TestD14_WebsiteIsToldByTheButton(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, phone, true, artefacts(t, "leave"))
	w := website(t, "app.atlas.example", "")
	a := s.register(t, "Atlas Assistant", w.uri)

	b.goTo(a.authorizeURL())
	signIn(b)
	b.at("Let “Atlas Assistant” use", 200)
	b.answer("deny")
	b.at("You did not allow “Atlas Assistant”", 200)
	b.look("return-website-denied")
	if got := b.header("Refresh"); got != "" {
		t.Errorf("Refresh: %q, want none", got)
	}
	if w.asked() {
		t.Error("the client heard of it before the button was pressed")
	}
	b.press("main a.btn")
	b.at("Back at the client", 200)
	a.checkResponse(w.response(t), "access_denied")
}

// TestCS13_AppScheme leaves to a program by its own scheme: the return page
// stays behind and reads well as an end (D12, pages.md 4.4).
func TestCS13_AppScheme(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, phone, true, artefacts(t, "leave"))
	const program = "cursor://anysphere.cursor-mcp/oauth/callback"
	a := s.register(t, "Cursor", program)

	b.goTo(a.authorizeURL())
	signIn(b)
	b.at("Let “Cursor” use", 200)
	b.look("consent-app")
	b.answer("allow")
	b.at("You allowed “Cursor”", 200)
	if got := b.header("Refresh"); !strings.HasPrefix(got, "1; url="+program+"?") {
		t.Errorf("Refresh: %.60q, want %q after a second", got, program)
	}
	b.eventually("the program is launched", func() bool { return b.went("GET "+program) > 0 })
	b.at("You allowed “Cursor”", 200)
	b.look("return-app")
	if got := eval[string](b, `document.querySelector('main a.btn').href`); !strings.HasPrefix(got, program+"?code=") {
		t.Errorf("the button leads to %.60q", got)
	}

	// Another tab: this one now asks whether it may open the program.
	b = openTab(t, phone, true, artefacts(t, "leave"))
	b.goTo(a.authorizeURL())
	signIn(b)
	b.at("Let “Cursor” use", 200)
	b.answer("deny")
	b.at("You did not allow “Cursor”", 200)
	b.look("return-app-denied")
	if got := b.header("Refresh"); got != "" {
		t.Errorf("Refresh after a denial: %q, want none", got)
	}
	b.tick("main a.btn")
	b.eventually("the button launches the program", func() bool { return b.went("GET "+program+"?error=access_denied") > 0 })
}

// TestAR18_ErrorStaysWithUs makes a deliberate error in the name of a client
// that this person never approved: our page with a button. After an approval
// the client hears of its errors at once (D14).
func TestAR18_ErrorStaysWithUs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, desk, true, artefacts(t, "leave"))
	l := loopback(t, "127.0.0.1")
	a := s.register(t, "Quill Desktop", l.uri)

	for _, c := range []struct{ param, value, code, heading, name string }{
		{"scope", "nobody:knows", "invalid_scope", "nothing to allow", "error-scope"},
		{"prompt", "none", "login_required", "can’t go on", "error-prompt"},
		{"response_type", "token", "unsupported_response_type", "can’t go on", "error-response-type"},
	} {
		b.goTo(a.authorizeURL(c.param, c.value))
		b.at(c.heading, 400)
		b.look(c.name)
		if l.asked() {
			t.Errorf("%s: the client heard of it before the button was pressed", c.code)
		}
		b.press("main a.btn")
		b.at("Back at the client", 200)
		a.checkResponse(l.response(t), c.code)
	}

	b.goTo(a.authorizeURL())
	signIn(b)
	b.at("Let “Quill Desktop” use", 200)
	b.answer("allow")
	b.at("Back at the client", 200)
	a.redeem(l.response(t).Get("code"))
	b.goTo(a.authorizeURL("scope", "nobody:knows"))
	b.at("Back at the client", 200)
	a.checkResponse(l.response(t), "invalid_scope")
}
