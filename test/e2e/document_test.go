package e2e

import (
	"net/http"
	"strings"
	"testing"
)

const (
	amber     = ".note.warn"
	quillHost = "https://quill.example"
)

// TestDocumentClient connects apps that are known by a metadata document, in each
// kind of browser: a program on this computer, which can only say where it is
// from, and a website, which proves it.
func TestDocumentClient(t *testing.T) {
	t.Parallel()
	d := newDocumentSite(t, newMakers(t, "quill.example"))
	for _, j := range []struct {
		name string
		view view
		js   bool
	}{
		{"1280", desk, true}, {"390", phone, true}, {"1280-noscript", desk, false}, {"390-noscript", phone, false},
	} {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			b := openTab(t, j.view, j.js, artefacts(t, "document"))
			connectProgram(t, b, d, j.name)
			connectWebsite(t, b, d, j.name)
		})
	}
}

// connectProgram is asked about each time (D11, CI-18), with what cannot be proved.
func connectProgram(t *testing.T, b *tab, d *documentSite, folder string) {
	t.Helper()
	l := loopback(t, "127.0.0.1")
	a := d.discover(t, quillHost+"/"+folder+"/client.json", "Quill Desktop", l.uri)
	b.goTo(a.authorizeURL("scope", "calendar.read calendar.write calendar.delete"))
	b.at("Sign in to", 200)
	says(b, "the sign-in page", words(b, ".lede"), "Quill Desktop", "Team Calendar")
	signIn(b)
	b.at("Let “Quill Desktop” use", 200)
	says(b, "the app", fact(b, "App"), "“Quill Desktop”", "Not verified", "The app chose this name.", "First seen here today; nobody else at")
	says(b, "its origin", fact(b, "Says it is from"), "quill.example", "A computer program cannot prove this.")
	says(b, "where access goes", fact(b, "Access goes to"), "127.0.0.1:", "A program running on this computer.")
	says(b, "the box", words(b, amber), "Only continue if you started this", "Any program on this computer")
	if fact(b, "Comes from") != "" {
		t.Error("CI-18: the page says that a program on this computer comes from a website")
	}
	b.look("program")
	b.answer("allow")
	b.at("Back at the client", 200)
	got := l.response(t)
	a.checkResponse(got, "")
	if reply := a.redeem(got.Get("code")); reply.Scope != "calendar.read calendar.write" {
		t.Errorf("the token is for %q (%s); what cannot be undone starts unticked", reply.Scope, reply.Error)
	}

	b.goTo(a.authorizeURL("scope", "calendar.read calendar.write calendar.delete"))
	b.at("Let “Quill Desktop” use", 200)
	if n := eval[int](b, `[...document.querySelectorAll('.perm .tag')].filter(t => t.textContent === 'Allowed before').length`); n != 2 {
		t.Errorf("D11: %d permissions are tagged as allowed before, want 2", n)
	}
	b.answer("deny")
	b.at("Back at the client", 200)
	a.checkResponse(l.response(t), "access_denied")
}

// connectWebsite is remembered (D11) until it asks for more or its document changes.
func connectWebsite(t *testing.T, b *tab, d *documentSite, folder string) {
	t.Helper()
	w := website(t, "app.quill.example", "")
	a := d.discover(t, quillHost+"/"+folder+"/web.json", "Quill Online", w.uri)
	b.goTo(a.authorizeURL("scope", "calendar.read"))
	b.at("Let “Quill Online” use", 200)
	says(b, "its origin", fact(b, "Comes from"), "quill.example", "This website says where access goes.")
	says(b, "where access goes", fact(b, "Access goes to"), "app.quill.example:", "A website.")
	says(b, "the box", words(b, amber), "Only continue if you started this", "nobody here has checked", "app.quill.example")
	b.look("website")
	allow(t, b, a, w)

	asked := b.went("POST " + d.Issuer + "/consent")
	b.goTo(a.authorizeURL("scope", "calendar.read"))
	b.at("Back at the client", 200)
	a.checkResponse(w.response(t), "")
	if b.went("POST "+d.Issuer+"/consent") != asked {
		t.Error("D11: the person was asked again")
	}

	b.goTo(a.authorizeURL("scope", "calendar.read", "prompt", "consent"))
	b.at("Let “Quill Online” use", 200)
	b.goTo(a.authorizeURL("scope", "calendar.read calendar.write"))
	b.at("“Quill Online” asks for one more permission", 200)
	says(b, "the permissions", words(b, "main"), "Add and change events", "New", "Already allowed since", "(2)", "See your calendars")
	says(b, "the box", words(b, amber), "Only continue if you started this", "nobody here has checked", "app.quill.example")
	b.look("website-wider")
	allow(t, b, a, w)

	d.makers.publish(a.id, "Quill Online", a.redirectURI, map[string]any{"redirect_uris": []string{a.redirectURI, "https://quill.example/new"}})
	d.expire(t, a)
	b.goTo(a.authorizeURL("scope", "calendar.read"))
	b.at("Let “Quill Online” use", 200)
	says(b, "CI-17: the box", words(b, amber), "This app’s details changed since you last allowed it today at")
	if strings.Contains(words(b, "form.card"), "Allowed before") {
		t.Error("CI-17: a changed app is said to have been allowed before")
	}
	b.look("website-changed")
	allow(t, b, a, w)
	b.goTo(a.authorizeURL("scope", "calendar.read"))
	b.at("Back at the client", 200)
	a.checkResponse(w.response(t), "")
}

// allow answers the consent page, and redeems the code.
func allow(t *testing.T, b *tab, a *app, l *listener) tokens {
	t.Helper()
	b.answer("allow")
	b.at("Back at the client", 200)
	got := l.response(t)
	a.checkResponse(got, "")
	reply := a.redeem(got.Get("code"))
	if reply.RefreshToken == "" {
		t.Fatalf("redeem: %q", reply.Error)
	}
	return reply
}

// TestCI19_Lookalikes shows apps that could be mistaken for others, and the one
// that they could be mistaken for.
func TestCI19_Lookalikes(t *testing.T) {
	t.Parallel()
	d := newDocumentSite(t, newMakers(t, "quill.example", "claude.ai", "claude.ai.evil.example", "xn--80ak6aa92e.example"))
	b := openTab(t, phone, true, artefacts(t, "document"))
	b.goTo(d.Issuer + "/account")
	signIn(b)
	b.at("Your account", 200)
	const program = "http://127.0.0.1:5173/callback"
	for _, c := range []struct {
		name, id, client, redirectURI string
		operator                      bool     // is warned too
		origin                        []string // of the row, which has its term first
		box                           []string
	}{
		{"known name and host", "https://claude.ai.evil.example/client.json", "Claude Code", program, true, []string{"Says it is from", "claude.ai.evil.example"},
			[]string{"Any program on this computer", "claude.ai.evil.example can be mistaken for another address", "Its name can be mistaken"}},
		{"punycode", "https://xn--80ak6aa92e.example/client.json", "Orchard", "https://xn--80ak6aa92e.example/callback", true,
			[]string{"Comes from", "xn--80ak6aa92e.example", "Browsers may show it as аррӏе.example"}, []string{"nobody here has checked", "xn--80ak6aa92e.example can be mistaken for another address"}},
		{"different site", quillHost + "/elsewhere.json", "Quill Online", "https://login.borealis.example/callback", false,
			[]string{"Comes from", "quill.example"}, []string{"a different website than the app’s. Continue only if you know login.borealis.example"}},
		{"alphabets mixed", quillHost + "/mixed.json", "Quіll Desktop", program, true, []string{"Says it is from", "quill.example"}, []string{"Any program", "Its name can be mistaken"}},
		{"an app of a device", quillHost + "/device.json", "Quill Pocket", "com.example.quill:/callback", false, []string{"Says it is from", "quill.example", "An app on a device cannot prove this."},
			[]string{"Any app on this device"}},
		{"without a name", quillHost + "/unnamed.json", "", program, false, []string{"Says it is from", "quill.example"}, []string{"Any program on this computer"}},
		{"the known one", "https://claude.ai/oauth/mcp-oauth-client-metadata", "Claude", "https://claude.ai/api/mcp/auth_callback", false, []string{"Comes from", "claude.ai"}, nil},
	} {
		b.goTo(d.discover(t, c.id, c.client, c.redirectURI).authorizeURL())
		b.at("use Team Calendar", 200)
		says(b, c.name+": the origin", fact(b, c.origin[0]), c.origin[1:]...)
		says(b, c.name+": the box", words(b, amber), c.box...)
		if n := eval[int](b, `document.querySelectorAll(`+quote(amber)+`+' p').length`); n != len(c.box) {
			t.Errorf("%s: %d warnings, want %d: %s", c.name, n, len(c.box), words(b, amber))
		}
		if c.client == "" {
			says(b, c.name, fact(b, "App"), "“"+c.id+"”", "The app gave no name; this is its ID.")
		}
		if warned := strings.Contains(d.Run(t, "", "client", "show", c.id), "\nwarning "); warned != c.operator {
			t.Errorf("%s: the operator is warned: %t, want %t", c.name, warned, c.operator)
		}
		if shot := "lookalike-" + strings.ReplaceAll(c.name, " ", "-"); c.operator {
			b.look(shot)
		} else { // TestPages has it
			b.picture(shot)
		}
	}
}

// TestVerifiedAndBlocked follows an app through what an operator may decide about
// it, and through Connected apps.
func TestVerifiedAndBlocked(t *testing.T) {
	t.Parallel()
	d := newDocumentSite(t, newMakers(t, "quill.example"))
	b := openTab(t, desk, true, artefacts(t, "document"))
	l, w := loopback(t, "localhost"), website(t, "login.borealis.example", "")
	program := d.discover(t, quillHost+"/client.json", "Quill Desktop", l.uri)
	online := d.discover(t, quillHost+"/web.json", "Quill Online", w.uri)
	b.goTo(online.authorizeURL())
	signIn(b)
	b.at("Let “Quill Online” use", 200)
	allow(t, b, online, w)
	b.goTo(program.authorizeURL())
	b.at("Let “Quill Desktop” use", 200)
	held := allow(t, b, program, l)

	anotherPerson(t, d, program)
	if list := d.Run(t, "", "client", "list"); !strings.Contains(list, program.id) || strings.Count(list, "  not verified  ") != 2 {
		t.Errorf("the operator's list:\n%s", list)
	}
	says(b, "client show", d.Run(t, "", "client", "show", program.id), program.id, "Quill Desktop", "cimd", "not verified", "host", "quill.example", "last fetched")
	d.Run(t, "", "client", "verify", program.id, "--yes")
	b.goTo(program.authorizeURL("prompt", "consent", "scope", "calendar.read calendar.write calendar.delete"))
	b.at("“Quill Desktop” asks for", 200) // from now on what was allowed is remembered
	says(b, "the app", fact(b, "App"), "“Quill Desktop”", "Verified by", "one other person at")
	// even so any program of this computer may be waiting
	says(b, "its origin", fact(b, "Says it is from"), "quill.example", "cannot prove this")
	says(b, "D32: the box", words(b, amber), "Any program on this computer")
	if !eval[bool](b, `document.querySelector('input[value="calendar.delete"]').checked`) {
		t.Error("a permission of a verified app starts unticked")
	}
	b.look("verified")
	allow(t, b, program, l)
	b.goTo(program.authorizeURL("scope", "calendar.read calendar.delete calendar.write"))
	b.at("Back at the client", 200) // D11: not asked again
	program.checkResponse(l.response(t), "")

	connected(t, b, d)
	b.goTo(program.authorizeURL("prompt", "consent"))
	b.at("Let “Quill Desktop” use", 200)
	d.Run(t, "", "client", "block", program.id, "--yes")
	b.answer("allow") // too late
	b.at("does not allow this app", 400)
	b.goTo(program.authorizeURL())
	b.at("does not allow this app", 400)
	b.look("blocked")
	if got := program.refresh(held.RefreshToken); got.RefreshToken != "" || got.Error == "" {
		t.Errorf("a blocked app was given a token (%q)", got.Error)
	}
	b.goTo(d.Issuer + "/account")
	b.at("Your account", 200)
	if strings.Contains(words(b, "main"), "Quill Desktop") {
		t.Error("a blocked app is still listed among the connected ones")
	}
}

// anotherPerson connects the app in a browser of her own.
func anotherPerson(t *testing.T, d *documentSite, a *app) {
	t.Helper()
	const address = "noor.haddad@fernhill.example"
	d.AddUser(t, address, password)
	b := openTab(t, phone, false, artefacts(t, "document"))
	l := loopback(t, "localhost") // another port: another run of the app
	a = d.app(t, a.id, l.uri)
	b.goTo(a.authorizeURL())
	b.at("Sign in to", 200)
	b.fill("#email", address)
	b.fill("#password", password)
	b.press("main .btn")
	b.at("Let “Quill Desktop” use", 200)
	says(b, "the app", fact(b, "App"), "First seen here today; one other person at")
	b.look("another-person")
	allow(t, b, a, l)
}

// connected looks at Connected apps, and disconnects the one that was remembered.
func connected(t *testing.T, b *tab, d *documentSite) {
	t.Helper()
	b.goTo(d.Issuer + "/account")
	b.at("Your account", 200)
	says(b, "Connected apps", words(b, "ul.list"), "“Quill Desktop”", "Verified by", "quill.example", "on a computer (localhost), which cannot prove this",
		"“Quill Online”", "Not verified", "quill.example", "access goes to login.borealis.example:")
	b.look("account")
	b.press(`ul.list > li:nth-child(2) form[action$="/disconnect"] button`)
	b.at("Disconnect “Quill Online”?", 200)
	b.press(`main button.danger`)
	b.until(`document.querySelector('.note.ok')`)
	says(b, "the banner", words(b, ".note.ok"), "“Quill Online” is disconnected.")
}

// TestDocumentStops shows what people meet when an app that is known by its
// document may not be used.
func TestDocumentStops(t *testing.T) {
	t.Parallel()
	m := newMakers(t, "quill.example", "bad.evil.example", "new.example", "gone.example", "odd.example", "busy.example")
	d := newDocumentSite(t, m, "OSTIARY_CIMD_POLICY=*.evil.example=deny,new.example=ask", "OSTIARY_CIMD_PER_HOUR=1") // one of each site
	b := openTab(t, desk, true, artefacts(t, "document"))
	b.allow("status of 503")
	const program = "http://127.0.0.1:5173/callback"
	for _, id := range []string{"https://bad.evil.example/client.json", "https://new.example/client.json", "https://busy.example/two.json", quillHost + "/client.json"} {
		m.publish(id, "Quill", program, nil)
	}
	b.goTo(d.discover(t, "https://busy.example/one.json", "Quill", program).authorizeURL())
	b.at("Sign in to", 200)
	m.publish("https://odd.example/client.json", "Quill", program, map[string]any{"client_id": "https://quill.example/client.json"})
	for _, c := range []struct {
		name, id, redirectURI, heading string
		status                         int64
		text                           []string // of the page
	}{
		{"denied", "https://bad.evil.example/client.json", program, "does not allow this app", http.StatusForbidden,
			[]string{"Apps from bad.evil.example may not be used here. Nothing was shared."}},
		{"waiting", "https://new.example/client.json", program, "This app is waiting for approval", http.StatusForbidden,
			[]string{"looks at each app from new.example", "Client ID", "https://new.example/client.json"}},
		{"unread", "https://gone.example/client.json", program, "We can’t identify this app", http.StatusServiceUnavailable,
			[]string{"could not be read from gone.example", "Wait 60 seconds, then connect again"}},
		{"invalid", "https://odd.example/client.json", program, "This app’s details don’t add up", http.StatusBadRequest,
			[]string{"What odd.example says", "client_id"}},
		{"no client URL", "https://quill.example/a/../client.json", program, "We can’t identify this app", http.StatusBadRequest,
			[]string{"a web address as its ID that this server does not accept"}},
		{"budget", "https://busy.example/two.json", program, "Too many requests", http.StatusTooManyRequests, []string{"Wait ", ", then try again. Nothing was shared."}},
		{"redirect", quillHost + "/client.json", "https://collect.example/callback", "We stopped this request", http.StatusBadRequest,
			[]string{"An app calling itself “Quill”", "It asked to use", "collect.example", "Registered", "127.0.0.1:5173", "Says it is from", "quill.example"}},
	} {
		b.goTo(d.app(t, c.id, c.redirectURI).authorizeURL())
		b.at(c.heading, c.status)
		says(b, c.name, eval[string](b, `document.querySelector('main').textContent.replace(/\s+/g, ' ')`), c.text...)
		if b.header("Refresh") != "" || eval[bool](b, `!!document.querySelector('main a[href^="http"]')`) {
			t.Errorf("%s: the page leads away", c.name)
		}
		b.look("stop-" + strings.ReplaceAll(c.name, " ", "-"))
	}

	// The operator looked at it.
	waiting := d.app(t, "https://new.example/client.json", program)
	d.Run(t, "", "client", "verify", waiting.id, "--yes")
	b.goTo(waiting.authorizeURL())
	signIn(b)
	b.at("Let “Quill” use", 200)
	says(b, "the app", fact(b, "App"), "Verified by")
}
