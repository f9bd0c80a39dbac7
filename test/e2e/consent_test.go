package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// eager answers in the very moment in which a page can be answered, which no
// person does. It leaves a page alone that says so.
const eager = `addEventListener('DOMContentLoaded', () => {
	if (!document.querySelector('#problem')) document.querySelector('button[value=allow]')?.click()
})`

// TestD22_StrayClicks clicks before a person can have read: first the pointer,
// which the style sheet stops, then what passes by it, which the server stops.
func TestD22_StrayClicks(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, desk, true, artefacts(t, "consent"))
	l := loopback(t, "127.0.0.1")
	a := s.register(t, "Quill Desktop", l.uri)
	b.goTo(a.authorizeURL())
	signIn(b)
	b.at("Let “Quill Desktop” use", 200)

	b.tries("a click on a page that has just come", func() bool {
		b.goTo(a.authorizeURL())
		b.at("Let “Quill Desktop” use", 200)
		// On a busy machine the buttons may be armed before the click.
		at := eval[[]float64](b, `(r => [r.x + r.width/2, r.y + r.height/2])(document.querySelector('button[value=allow]').getBoundingClientRect())`)
		b.call(chromedp.MouseClickXY(at[0], at[1]))
		return eval[bool](b, `document.getAnimations().some(a => a.playState === 'running')`)
	})
	b.until(`document.getAnimations().every(a => a.playState === 'finished')`)
	if b.went("POST "+s.Issuer+"/consent") > 0 || l.asked() {
		t.Fatal("the click was taken for an answer")
	}

	b.call(call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: eager}))
	b.tries("an answer within 600 ms", func() bool {
		b.goTo(a.authorizeURL())
		b.until(`document.querySelector('#problem') || location.href.startsWith('` + l.uri + `')`)
		return eval[bool](b, `!!document.querySelector('#problem')`)
	})
	b.at("Let “Quill Desktop” use", 200)
	if got := eval[string](b, `document.querySelector('#problem').textContent`); !strings.Contains(got, "That was very quick") {
		t.Errorf("the page says %q", got)
	}
	b.look("too-quick")
	b.answer("allow")
	b.at("Back at the client", 200)
}

// TestEnterOnConsent presses Enter in a checkbox of the real page: it is shown
// again with the choices kept, and nothing is answered.
func TestEnterOnConsent(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, desk, false, artefacts(t, "consent"))
	l := loopback(t, "127.0.0.1")
	a := s.register(t, "Quill Desktop", l.uri)
	b.goTo(a.authorizeURL("scope", "calendar.read calendar.write"))
	signIn(b)
	b.at("Let “Quill Desktop” use", 200)
	b.until(`document.getAnimations().every(a => a.playState === 'finished')`)
	const box = `input[value="calendar.write"]`
	b.tick(box)
	b.leave(chromedp.SendKeys(chromedp.CSS(box), "\r"))
	b.at("Let “Quill Desktop” use", 200)
	if b.went("POST "+s.Issuer+"/consent") != 1 {
		t.Error("Enter did not post the form")
	}
	if eval[bool](b, fmt.Sprintf(`document.querySelector(%q).checked`, box)) {
		t.Error("the page forgot that a permission was unticked")
	}
	if l.asked() {
		t.Error("the client has an answer")
	}
	b.answer("deny")
	b.at("Back at the client", 200)
	a.checkResponse(l.response(t), "access_denied")
}

// TestConsentOfRealLife shows what stretches the page: long names and hosts,
// many permissions in groups, words of a right-to-left script.
func TestConsentOfRealLife(t *testing.T) {
	t.Parallel()
	names := "repositories:contents:read undescribed_permission_of_an_mcp_server_whose_maker_likes_long_names"
	scopes := []string{"repositories:contents:read=Read the files, branches and history of every repository you can see;required"}
	for i := range 12 {
		name := fmt.Sprintf("organisation:%02d:administration:write_everything", i)
		names += " " + name
		scopes = append(scopes, name+fmt.Sprintf("=Change the settings of department number %d and of all;detail=%s;group=Department %d",
			i, "A line which is as long as a line of detail may well become where lawyers write it", i%3))
	}
	s := newSite(t, "Enterprise Knowledge and Document Management Platform", append(scopes, "undescribed_permission_of_an_mcp_server_whose_maker_likes_long_names"))
	for _, v := range []view{desk, phone} {
		b := openTab(t, v, true, artefacts(t, "consent"))
		for i, client := range []struct{ name, host string }{
			{strings.Repeat("Donaudampfschifffahrt", 3), strings.Repeat("a-very-long-label-of-a-host-name.", 5) + "quill.example"},
			{"محرر النصوص \"Quill\" <b>", "xn--80ak6aa92e.example"},
		} {
			w := website(t, client.host, "")
			a := s.register(t, client.name, w.uri)
			b.goTo(a.authorizeURL("scope", names, "state", strings.Repeat("s", 500)))
			if i == 0 {
				signIn(b)
			}
			b.at("Enterprise Knowledge", 200)
			b.tick("details:has(> .kv) summary")
			b.look(fmt.Sprintf("real-life-%d", i))
			b.answer("allow")
			b.at("Back at the client", 200)
			if reply := a.redeem(w.response(t).Get("code")); reply.RefreshToken == "" {
				t.Errorf("redeem: %q", reply.Error)
			}
		}
		b.goTo(s.Issuer + "/account")
		b.at("Your account", 200)
		b.tick("details summary")
		b.look("real-life-account")
		b.press(`form[action$="/disconnect"] button`)
		b.at("Disconnect", 200)
		b.look("real-life-disconnect")
	}
}
