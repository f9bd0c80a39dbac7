package account_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/account"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/web"
)

const (
	issuer   = "https://as.example"
	calendar = "https://mcp.example/calendar"
	files    = "https://mcp.example/files"
)

// world is a server with the pages of this package, and two people.
type world struct {
	t        *testing.T
	db       *sqlstore.Store
	now      time.Time
	sessions *login.Sessions
	site     http.Handler
}

func each(t *testing.T, base string, fn func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) { fn(t, newWorld(t, db, base)) })
}

func newWorld(t *testing.T, db *sqlstore.Store, base string) *world {
	t.Helper()
	w := &world{t: t, db: db, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return w.now }
	var err error
	if w.sessions, err = login.NewSessions(login.SessionOptions{Store: db, Requests: db, Tx: db, Now: now}); err != nil {
		t.Fatal(err)
	}
	pages, err := web.New(web.Options{Issuer: issuer + base, Operator: "Fernhill", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	edge := endpoint.New(endpoint.Options{Log: slog.New(slog.DiscardHandler), Pages: pages, Now: now})
	h, err := account.New(account.Options{Edge: edge, Pages: pages, Base: base, Sessions: w.sessions,
		Forms: &flow.HMACForms{Key: []byte("form key"), Now: now}, SessionStore: db, Grants: db, Clients: db, Resources: db,
		Consents: db, Audit: db, Tx: db, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	h.Routes(mux, nil)
	u, err := url.Parse(issuer + base)
	if err != nil {
		t.Fatal(err)
	}
	w.site = edge.Site(endpoint.SiteOptions{Issuer: u, Pages: mux})
	w.fill()
	return w
}

// fill makes what the people of the tests use.
func (w *world) fill() {
	w.t.Helper()
	ctx := w.t.Context()
	var errs []error
	for _, id := range []string{"ada", "eve"} {
		errs = append(errs, w.db.CreateUser(ctx, login.User{ID: id, Email: id + "@x.example", EmailKey: id + "@x.example", CreatedAt: w.now, UpdatedAt: w.now}))
	}
	errs = append(errs,
		w.db.CreateClient(ctx, registration.Client{ID: "quill", Kind: registration.KindDynamic, CreatedAt: w.now, UpdatedAt: w.now,
			Metadata: registration.ClientMetadata{ClientName: "Quill <b>Desktop</b>", TokenEndpointAuthMethod: "none"}}),
		w.db.CreateResource(ctx, resource.Resource{Identifier: calendar, Canonical: calendar, Name: "Team Calendar", CreatedAt: w.now, UpdatedAt: w.now,
			Scopes: []resource.Scope{{Name: "read", Title: "See events"}, {Name: "write", Title: "Change events"}}}))
	for _, err := range errs {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// allow makes a redeemed grant and the remembered consent.
func (w *world) allow(id, subject, client, resource string, scopes ...string) {
	w.t.Helper()
	w.allowAt(id, subject, client, resource, "http://127.0.0.1:1234/cb", scopes...)
}

// allowAt is allow for a client whose responses go to redirectURI.
func (w *world) allowAt(id, subject, client, resource, redirectURI string, scopes ...string) {
	w.t.Helper()
	g := grant.Grant{ID: id, ClientID: client, Subject: subject, Resource: resource, Scopes: scopes, RedirectURI: redirectURI,
		Salt: []byte("salt"), Generation: 2, AdvancedAt: w.now, CodeExpiresAt: w.now.Add(-time.Hour),
		RefreshExpiresAt: w.now.Add(30 * 24 * time.Hour), ExpiresAt: w.now.Add(90 * 24 * time.Hour), CreatedAt: w.now.Add(-time.Hour)}
	if err := w.db.CreateGrant(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
	if err := w.db.PutConsent(w.t.Context(), consent.Consent{Subject: subject, ClientID: client, RedirectURI: g.RedirectURI, Resource: resource,
		Scopes: scopes, CreatedAt: w.now, UpdatedAt: w.now}); err != nil {
		w.t.Fatal(err)
	}
}

// browser is somebody's browser.
type browser struct {
	w      *world
	cookie string
}

// signedIn returns a browser in which subject is signed in.
func (w *world) signedIn(subject, agent string) *browser {
	w.t.Helper()
	u, err := w.db.GetUser(w.t.Context(), subject)
	if err != nil {
		w.t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, issuer+"/sign-in", nil)
	r.Header.Set("User-Agent", agent)
	r = r.WithContext(audit.WithSource(r.Context(), audit.Source{IP: "192.0.2.7"}))
	if _, err := w.sessions.SignIn(rec, r, u, func(context.Context) error { return nil }); err != nil {
		w.t.Fatal(err)
	}
	return &browser{w: w, cookie: rec.Result().Cookies()[0].Value}
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
	r.Header.Set("Accept", "text/html")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	if b.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "__Host-sid", Value: b.cookie})
	}
	rec := httptest.NewRecorder()
	b.w.site.ServeHTTP(rec, r)
	return rec
}

func (b *browser) get(target string) *httptest.ResponseRecorder {
	return b.do(http.MethodGet, target, nil, nil)
}

func (b *browser) post(target, txn string) *httptest.ResponseRecorder {
	return b.do(http.MethodPost, target, url.Values{"txn": {txn}}, nil)
}

// page is the body of a page that must be there.
func (b *browser) page(target string) string {
	b.w.t.Helper()
	rec := b.get(target)
	if rec.Code != http.StatusOK {
		b.w.t.Fatalf("GET %s = %d, want 200", target, rec.Code)
	}
	return rec.Body.String()
}

var (
	disconnectLink = regexp.MustCompile(`action="([^"]*/account/apps/[^"]+/disconnect)"`)
	endLink        = regexp.MustCompile(`action="([^"]*/account/sessions/[^"]+/end)"`)
	hiddenTxn      = regexp.MustCompile(`name="txn" value="([^"]+)"`)
)

// all returns what the pattern's group matches on the page, in order.
func all(pattern *regexp.Regexp, page string) []string {
	var found []string
	for _, m := range pattern.FindAllStringSubmatch(page, -1) {
		found = append(found, m[1])
	}
	return found
}

// lastTxn is the token of the last form; the header's forms come first.
func lastTxn(t *testing.T, page string) string {
	t.Helper()
	found := all(hiddenTxn, page)
	if len(found) == 0 {
		t.Fatalf("page has no form:\n%s", page)
	}
	return found[len(found)-1]
}

func wantRedirect(t *testing.T, rec *httptest.ResponseRecorder, location string) {
	t.Helper()
	if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != location {
		t.Fatalf("answer = %d to %q, want 303 to %q", rec.Code, rec.Header().Get("Location"), location)
	}
}

func wantWords(t *testing.T, page string, words ...string) {
	t.Helper()
	for _, s := range words {
		if !strings.Contains(page, s) {
			t.Errorf("page lacks %q:\n%s", s, page)
		}
	}
}

// live returns the ids of the grants that have not ended.
func (w *world) live() map[string]bool {
	w.t.Helper()
	grants, err := w.db.ListGrants(w.t.Context(), grant.Filter{LiveAt: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	live := map[string]bool{}
	for _, g := range grants {
		live[g.ID] = true
	}
	return live
}

func (w *world) remembered(subject, client, resource string) bool {
	w.t.Helper()
	_, err := w.db.GetConsent(w.t.Context(), subject, client, "http://127.0.0.1:1234/cb", resource)
	return err == nil
}

func TestNotSignedIn(t *testing.T) {
	each(t, "/tenant", func(t *testing.T, w *world) {
		stranger := &browser{w: w}
		wantRedirect(t, stranger.get("/tenant/"), "/tenant/account")
		for _, target := range []string{"/tenant/account", "/tenant/account/apps/x/disconnect", "/tenant/account/sessions/end-others"} {
			wantRedirect(t, stranger.get(target), "/tenant/sign-in")
		}
		for _, target := range []string{"/tenant/account/apps/x/disconnect", "/tenant/account/sessions/x/end", "/tenant/account/sessions/end-others"} {
			wantRedirect(t, stranger.post(target, ""), "/tenant/sign-in")
		}
	})
}

func TestConnectedApps(t *testing.T) {
	each(t, "", func(t *testing.T, w *world) {
		b := w.signedIn("ada", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
		wantWords(t, b.page("/account"), "No app can use MCP servers as you", "Firefox on Linux", "192.0.2.7")
		w.allow("g1", "ada", "quill", calendar, "read")
		w.allow("g2", "ada", "quill", calendar, "write", "admin")
		w.allow("g3", "ada", "quill", files, "read")
		w.allow("g4", "ada", "gone", calendar)
		w.allow("g5", "eve", "quill", calendar, "read")
		page := b.page("/account")
		wantWords(t, page, "Quill &lt;b&gt;Desktop&lt;/b&gt;", "Team Calendar", "mcp.example", "See events", "Change events",
			"<code>admin</code>", "127.0.0.1", "gone")
		if n := len(all(disconnectLink, page)); n != 3 {
			t.Errorf("%d entries, want one for each client and MCP server of this person: 3", n)
		}
		if strings.Count(page, "See events") != 1 {
			t.Error("a permission is listed twice, or for an MCP server that does not declare it")
		}
		for _, secret := range []string{"g1", "salt"} {
			if strings.Contains(page, `"`+secret) {
				t.Errorf("page shows %q", secret)
			}
		}
	})
}

func TestCS14_Disconnect(t *testing.T) {
	each(t, "/tenant", func(t *testing.T, w *world) {
		b := w.signedIn("ada", "")
		w.allow("g1", "ada", "quill", calendar, "read")
		w.allow("g2", "ada", "quill", calendar, "write")
		w.allow("other-server", "ada", "quill", files, "read")
		w.allow("other-person", "eve", "quill", calendar, "read")
		target := ""
		for _, link := range all(disconnectLink, b.page("/tenant/account")) {
			if strings.Contains(b.page(link), "Team Calendar") {
				target = link
			}
		}
		ask := b.page(target)
		wantWords(t, ask, "Disconnect", "Quill", "10 minutes")
		wantRedirect(t, b.post(target, lastTxn(t, ask)), "/tenant/account?disconnected="+strings.Split(target, "/")[4])

		if live := w.live(); live["g1"] || live["g2"] || !live["other-server"] || !live["other-person"] {
			t.Errorf("live grants = %v, want both of the group ended and the others kept", live)
		}
		for _, id := range []string{"g1", "g2"} {
			if g, err := w.db.GetGrant(t.Context(), id); err != nil || g.EndReason != grant.ReasonDisconnected || len(g.Salt) != 0 {
				t.Errorf("grant %s = %+v, %v; want it disconnected and its salt erased", id, g, err)
			}
		}
		if w.remembered("ada", "quill", calendar) || !w.remembered("ada", "quill", files) || !w.remembered("eve", "quill", calendar) {
			t.Error("the remembered consent of the group must go, and no other")
		}
		events, err := w.db.ListEvents(t.Context(), 10)
		if err != nil || len(events) != 1 || events[0].Name != "grant.ended" || events[0].Actor != "ada" || events[0].ClientID != "quill" ||
			events[0].Resource != calendar || events[0].RequestID == "" {
			t.Errorf("LG-07: events = %+v, %v; want one grant.ended by ada", events, err)
		}

		banner := "/tenant/account?disconnected=" + strings.Split(target, "/")[4]
		wantWords(t, b.page(banner), "is disconnected", "It can no longer get new access", "10 minutes")
		if strings.Contains(b.page("/tenant/account?disconnected=x"), "is disconnected") {
			t.Error("a link that somebody made up shows the banner")
		}
		if rec := b.get(target); rec.Code != http.StatusNotFound {
			t.Errorf("the page of the disconnected app = %d, want 404", rec.Code)
		}
		w.now = w.now.Add(11 * time.Minute)
		if strings.Contains(b.page(banner), "is disconnected") {
			t.Error("the banner stays for ever")
		}
	})
}

func TestDisconnectRefused(t *testing.T) {
	each(t, "", func(t *testing.T, w *world) {
		ada, eve := w.signedIn("ada", ""), w.signedIn("eve", "")
		adaElsewhere := w.signedIn("ada", "")
		w.allow("g1", "ada", "quill", calendar, "read")
		w.allow("g2", "ada", "quill", files, "read")
		w.allow("g3", "eve", "quill", calendar, "read")
		targets := all(disconnectLink, ada.page("/account"))
		eves := all(disconnectLink, eve.page("/account"))[0]
		own := lastTxn(t, ada.page(targets[0]))
		if targets[0] == eves || targets[1] == eves {
			t.Fatal("two people's groups have one key")
		}
		for _, tt := range []struct {
			name   string
			b      *browser
			target string
			txn    string
			header map[string]string
			status int
		}{
			{"CS-01 no token", ada, targets[0], "", nil, 403},
			{"CS-01 forged token", ada, targets[0], "AAAA", nil, 403},
			{"CS-01 token of another app", ada, targets[1], own, nil, 403},
			{"CS-01 token of another session", adaElsewhere, targets[0], own, nil, 403},
			{"CS-01 token of another page", ada, targets[0], lastTxn(t, ada.page("/account/sessions/end-others")), nil, 403},
			{"CS-02 Origin of another site", ada, targets[0], own, map[string]string{"Origin": "https://evil.example"}, 403},
			{"CS-02 Origin null", ada, targets[0], own, map[string]string{"Origin": "null"}, 403},
			{"CS-02 Sec-Fetch-Site", ada, targets[0], own, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
			{"another person's key", ada, eves, lastTxn(t, eve.page(eves)), nil, 403},
		} {
			if rec := tt.b.do(http.MethodPost, tt.target, url.Values{"txn": {tt.txn}}, tt.header); rec.Code != tt.status {
				t.Errorf("%s: %d, want %d", tt.name, rec.Code, tt.status)
			}
		}
		if rec := ada.get(eves); rec.Code != http.StatusNotFound {
			t.Errorf("another person's key: %d, want 404", rec.Code)
		}
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if rec := ada.do(method, targets[0], url.Values{"txn": {own}}, nil); rec.Code != http.StatusMethodNotAllowed {
				t.Errorf("CS-03 %s: %d, want 405", method, rec.Code)
			}
		}
		ada.do(http.MethodGet, targets[0]+"?txn="+own, nil, map[string]string{"X-Http-Method-Override": "POST"})
		ada.do(http.MethodHead, targets[0]+"?txn="+own, nil, nil)
		if live := w.live(); len(live) != 3 || !w.remembered("ada", "quill", calendar) {
			t.Errorf("live grants = %v, want nothing changed", live)
		}
		if events, err := w.db.ListEvents(t.Context(), 10); err != nil || len(events) != 0 {
			t.Errorf("events = %v, %v; want none", events, err)
		}
	})
}

func TestReuseNotice(t *testing.T) {
	each(t, "", func(t *testing.T, w *world) {
		b := w.signedIn("ada", "")
		end := func(id, resource, reason string, at time.Time) {
			t.Helper()
			w.allow(id, "ada", "quill", resource, "read")
			if _, err := w.db.EndGrant(t.Context(), id, reason, at); err != nil {
				t.Fatal(err)
			}
		}
		notes := func() int { return strings.Count(b.page("/account"), "Someone may have copied this app’s access") }
		end("old", calendar, grant.ReasonRefreshReuse, w.now.AddDate(0, 0, -31))
		if n := notes(); n != 0 {
			t.Errorf("%d notes of what is 31 days old, want none", n)
		}
		end("g1", calendar, grant.ReasonRefreshReuse, w.now.AddDate(0, 0, -2))
		wantWords(t, b.page("/account"), "<b>Team Calendar</b>", "on 19 November at 12:00 UTC")
		end("g2", calendar, grant.ReasonCodeReuse, w.now.Add(-time.Hour))
		end("g3", calendar, grant.ReasonRefreshReuse, w.now.Add(-2*time.Hour))
		wantWords(t, b.page("/account"), "today at 11:00 UTC")
		if n := notes(); n != 1 {
			t.Errorf("%d notes for one app at one server, want 1, the newest", n)
		}
		end("g4", files, grant.ReasonRefreshReuse, w.now)
		if n := notes(); n != 2 {
			t.Errorf("%d notes for two servers, want 2", n)
		}
	})
}

func TestEndSessions(t *testing.T) {
	each(t, "", func(t *testing.T, w *world) {
		here, there, eve := w.signedIn("ada", ""), w.signedIn("ada", "curl/8"), w.signedIn("eve", "")
		third := w.signedIn("ada", "")
		page := here.page("/account")
		links := all(endLink, page)
		if len(links) != 2 {
			t.Fatalf("%d sessions can be ended, want the 2 others", len(links))
		}
		token := lastTxn(t, page)
		if rec := here.post(links[0], ""); rec.Code != http.StatusForbidden {
			t.Errorf("CS-01 no token: %d, want 403", rec.Code)
		}
		if rec := here.post("/account/sessions/unknown/end", token); rec.Code != http.StatusNotFound {
			t.Errorf("unknown session: %d, want 404", rec.Code)
		}
		if rec := eve.post(links[0], token); rec.Code != http.StatusForbidden {
			t.Errorf("another person: %d, want 403", rec.Code)
		}
		w.signedIn("eve", "")
		if rec := eve.post(links[0], lastTxn(t, eve.page("/account"))); rec.Code != http.StatusNotFound {
			t.Errorf("another person's session: %d, want 404", rec.Code)
		}
		wantRedirect(t, here.post(links[0], token), "/account")
		if n := len(all(endLink, here.page("/account"))); n != 1 {
			t.Errorf("%d other sessions, want 1", n)
		}

		ask := here.page("/account/sessions/end-others")
		if rec := here.post("/account/sessions/end-others", token); rec.Code != http.StatusForbidden {
			t.Errorf("CS-01 token of another form: %d, want 403", rec.Code)
		}
		wantRedirect(t, here.post("/account/sessions/end-others", lastTxn(t, ask)), "/account?ended=sessions")
		for _, b := range []*browser{there, third} {
			wantRedirect(t, b.get("/account"), "/sign-in")
		}
		here.page("/account?ended=sessions")
		eve.page("/account")
		events, err := w.db.ListEvents(t.Context(), 10)
		if err != nil || len(events) != 2 {
			t.Errorf("LG-07: events = %v, %v; want two", events, err)
		}
	})
}

func TestNewChecksOptions(t *testing.T) {
	t.Parallel()
	if _, err := account.New(account.Options{}); err == nil {
		t.Error("New without options: no error")
	}
}
