package consent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
	"github.com/ostiary-auth/ostiary/web"
)

const issuer = "https://id.fernhill.example/auth"

// browser is one browser session, as internal/login would find it.
type browser struct{ session *flow.Session }

// Current returns the session.
func (b *browser) Current(*http.Request) (*flow.Session, error) { return b.session, nil }

// Ensure returns the session.
func (b *browser) Ensure(http.ResponseWriter, *http.Request) (*flow.Session, error) {
	return b.session, nil
}

// desk is the consent page over a database, one client, one resource and one
// request of Mina's browser.
type desk struct {
	db      *sqlstore.Store
	now     time.Time
	browser *browser
	client  registration.Client
	res     resource.Resource
	req     flow.AuthorizationRequest
	http    http.Handler
}

func newDesk(t *testing.T, db *sqlstore.Store, change func(*desk)) *desk {
	t.Helper()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	d := &desk{db: db, now: now,
		browser: &browser{&flow.Session{ID: "session-1", Subject: "mina", Email: "mina.okafor@fernhill.example", AuthTime: now}},
		client: registration.Client{ID: "quill", Kind: registration.KindDynamic, CreatedAt: now.Add(-time.Hour), UpdatedAt: now, DocumentHash: "h1",
			Metadata: registration.ClientMetadata{ClientName: "Quill Desktop", RedirectURIs: []string{"http://127.0.0.1/callback"}, TokenEndpointAuthMethod: "none",
				GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}}},
		res: resource.Resource{Identifier: "https://calendar.mcp.fernhill.example/mcp", Canonical: "https://calendar.mcp.fernhill.example/mcp",
			Name: "Team Calendar", CreatedAt: now, UpdatedAt: now, Scopes: []resource.Scope{
				{Name: "cal:read", Title: "See your calendars and events", Detail: "Titles, times, guests and notes", Required: true},
				{Name: "cal:write", Title: "Create and change events"},
				{Name: "cal:delete", Title: "Delete events", Risk: resource.RiskPermanent},
				{Name: "cal:admin", Title: "Manage everything", Restricted: true},
			}},
		req: flow.AuthorizationRequest{ID: "req-1", Reference: "7Q4M-2KXD", SessionID: "session-1", ClientID: "quill",
			RedirectURI: "http://127.0.0.1:53682/callback", Resource: "https://calendar.mcp.fernhill.example/mcp",
			Scopes: []string{"cal:write", "cal:read", "cal:delete"}, OfflineNamed: true,
			CreatedAt: now, ExpiresAt: now.Add(flow.RequestIdle)},
	}
	if change != nil {
		change(d)
	}
	d.client.Metadata.RedirectURIs = append(d.client.Metadata.RedirectURIs, d.req.RedirectURI)
	ctx := t.Context()
	if err := db.CreateClient(ctx, d.client); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateResource(ctx, d.res); err != nil {
		t.Fatal(err)
	}
	if ok, err := db.CreateRequest(ctx, d.req, 10); err != nil || !ok {
		t.Fatalf("CreateRequest: %t, %v", ok, err)
	}
	clock := func() time.Time { return d.now }
	pages, err := web.New(web.Options{Issuer: issuer, Operator: "Fernhill", Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	h, err := consent.New(consent.Options{Edge: endpoint.New(endpoint.Options{Pages: pages, Now: clock}), Pages: pages, Base: "/auth",
		Issuer: issuer, Sessions: d.browser, Forms: &flow.HMACForms{Key: []byte("a key of this test"), Now: clock},
		Requests: db, Clients: db, Resources: &resource.Registry{Store: db, Issuer: issuer}, Consents: db, Tx: db, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	h.Routes(mux, nil)
	d.http = mux
	return d
}

func (d *desk) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	d.http.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func (d *desk) post(form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/consent", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	d.http.ServeHTTP(w, r)
	return w
}

var (
	txnField = regexp.MustCompile(`name="txn" value="([^"]+)"`)
	checkbox = regexp.MustCompile(`type="checkbox" name="([^"]+)" value="([^"]+)"( checked)?`)
)

// form opens the page and returns its form as a person would leave it, five
// seconds later, with the given answer.
func (d *desk) form(t *testing.T, decision string) url.Values {
	t.Helper()
	w := d.get("/consent?request=req-1")
	if w.Code != http.StatusOK {
		t.Fatalf("GET /consent: %d %s", w.Code, w.Body)
	}
	form := filled(t, w, decision)
	d.now = d.now.Add(5 * time.Second)
	return form
}

func filled(t *testing.T, w *httptest.ResponseRecorder, decision string) url.Values {
	t.Helper()
	txn := txnField.FindStringSubmatch(w.Body.String())
	if txn == nil {
		t.Fatalf("no form in %s", w.Body)
	}
	form := url.Values{"request": {"req-1"}, "txn": {txn[1]}, "decision": {decision}}
	for _, box := range checkbox.FindAllStringSubmatch(w.Body.String(), -1) {
		if box[3] != "" {
			form.Add(box[1], box[2])
		}
	}
	return form
}

func (d *desk) stored(t *testing.T) flow.AuthorizationRequest {
	t.Helper()
	req, err := d.db.GetRequest(t.Context(), "req-1")
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// requireUnanswered fails when the request has an answer.
func (d *desk) requireUnanswered(t *testing.T) {
	t.Helper()
	if req := d.stored(t); req.Decision != "" || len(req.ApprovedScopes) != 0 || req.StayConnected || !req.DecidedAt.IsZero() {
		t.Errorf("an answer was recorded: %+v", req)
	}
}

func requireContinue(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != "/auth/authorize/continue?request=req-1" {
		t.Errorf("%d to %q, want 303 to continue\n%s", w.Code, got, w.Body)
	}
}

func requireStatus(t *testing.T, w *httptest.ResponseRecorder, want int) {
	t.Helper()
	if w.Code != want || w.Header().Get("Location") != "" {
		t.Errorf("status %d, Location %q; want %d on our own page\n%s", w.Code, w.Header().Get("Location"), want, w.Body)
	}
}

func TestCS15_PageNamesHostResourceAndScopes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testkit.OpenSQLite(t), nil)
	w := d.get("/consent?request=req-1")
	body := w.Body.String()
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, body)
	}
	for _, want := range []string{
		"Quill Desktop", "mina.okafor@fernhill.example", // who asks, as whom
		"<b>127.0.0.1</b>:53682", "http://127.0.0.1:53682/callback", // redirect host, in full in the details
		"Team Calendar", "calendar.mcp.<b>fernhill.example</b>", "https://calendar.mcp.fernhill.example/mcp", // resource
		"See your calendars and events", "Create and change events", "Delete events", "cal:write cal:read cal:delete offline_access", // scopes
		"Only continue if you started this", "Any program on this computer", // D32
		"Not verified", "Stay connected", "7Q4M-2KXD", "Nobody else at Fernhill uses it",
		"/auth/sign-in?request=req-1&amp;switch=1",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	var boxes []string
	for _, b := range checkbox.FindAllStringSubmatch(body, -1) {
		boxes = append(boxes, b[1]+"="+b[2]+b[3])
	}
	if want := []string{"scope=cal:write checked", "scope=cal:delete", "stay_connected=yes checked"}; !slices.Equal(boxes, want) {
		t.Errorf("checkboxes %q, want %q", boxes, want)
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Frame-Options": "DENY"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestOnlyContinueIfYouStartedThisIsOnEveryPage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*desk){
		"loopback":   nil,
		"other site": func(d *desk) { d.req.RedirectURI = "https://app.example/cb" },
		"known host": func(d *desk) { d.req.RedirectURI = "https://claude.ai/api/mcp/auth_callback" },
		"operator": func(d *desk) {
			d.client.Kind, d.req.RedirectURI = registration.KindOperator, "https://app.example/cb"
		},
		"private-use": func(d *desk) { d.req.RedirectURI = "com.example.app:/cb" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := newDesk(t, testkit.OpenSQLite(t), change).get("/consent?request=req-1").Body.String()
			if !strings.Contains(body, "Only continue if you started this") {
				t.Error("the sentence is missing")
			}
			if box := strings.Contains(body, "note warn"); box != (name != "known host" && name != "operator") {
				t.Errorf("amber box: %t", box)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		d := newDesk(t, db, nil)
		form := d.form(t, "allow")
		requireContinue(t, d.post(form))
		want := d.req
		want.Decision, want.DecidedAt, want.DecidedBy = flow.DecisionAllow, d.now, "mina"
		want.ApprovedScopes, want.StayConnected = []string{"cal:write", "cal:read"}, true // cal:delete was off at first
		got := d.stored(t)
		if want.ExpiresAt = got.ExpiresAt; !cmp.Equal(got, want, cmp.Comparer(func(a, b url.Values) bool { return a.Encode() == b.Encode() })) {
			t.Errorf("stored request:\n%s", cmp.Diff(want, got))
		}
		t.Run("AR-15 replay", func(t *testing.T) {
			form.Set("scope", "cal:delete")
			requireStatus(t, d.post(form), http.StatusBadRequest)
			if again := d.stored(t); !cmp.Equal(got, again) {
				t.Errorf("the replay changed the answer:\n%s", cmp.Diff(got, again))
			}
		})
		t.Run("AR-15 back button", func(t *testing.T) { requireContinue(t, d.get("/consent?request=req-1")) })
	})
}

func TestAnswerChoices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		edit   func(url.Values)
		want   flow.Decision
		scopes []string
		stay   bool
	}{
		{"SC-07 unticked", func(f url.Values) { f.Del("scope") }, flow.DecisionAllow, []string{"cal:read"}, true},
		{"SC-07 ticked too", func(f url.Values) { f.Add("scope", "cal:delete") }, flow.DecisionAllow, []string{"cal:write", "cal:read", "cal:delete"}, true},
		{"D9 not connected", func(f url.Values) { f.Del("stay_connected") }, flow.DecisionAllow, []string{"cal:write", "cal:read"}, false},
		{"CS-10 deny", func(f url.Values) { f.Set("decision", "deny") }, flow.DecisionDeny, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, testkit.OpenSQLite(t), nil)
			form := d.form(t, "allow")
			tt.edit(form)
			requireContinue(t, d.post(form))
			got := d.stored(t)
			if got.Decision != tt.want || !slices.Equal(got.ApprovedScopes, tt.scopes) || got.StayConnected != tt.stay {
				t.Errorf("answer %q %q %t, want %q %q %t", got.Decision, got.ApprovedScopes, got.StayConnected, tt.want, tt.scopes, tt.stay)
			}
		})
	}
}

func TestAnswerRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		edit   func(t *testing.T, d *desk, f url.Values)
		status int
	}{
		{"SC-08 scope that was asked for by nobody", func(_ *testing.T, _ *desk, f url.Values) { f.Add("scope", "cal:admin") }, 400},
		{"AR-13 unknown scope", func(_ *testing.T, _ *desk, f url.Values) { f.Add("scope", "other") }, 400},
		{"AR-13 required scope has no checkbox", func(_ *testing.T, _ *desk, f url.Values) { f.Add("scope", "cal:read") }, 400},
		{"AR-13 decision twice", func(_ *testing.T, _ *desk, f url.Values) { f.Add("decision", "allow") }, 400},
		{"unknown decision", func(_ *testing.T, _ *desk, f url.Values) { f.Set("decision", "maybe") }, 400},
		{"no decision", func(_ *testing.T, _ *desk, f url.Values) { f.Del("decision") }, 400},
		{"CS-01 no txn", func(_ *testing.T, _ *desk, f url.Values) { f.Del("txn") }, 403},
		{"CS-01 forged txn", func(_ *testing.T, _ *desk, f url.Values) { f.Set("txn", strings.Repeat("A", 54)) }, 403},
		{"CS-01 stale txn", func(t *testing.T, d *desk, f url.Values) {
			d.now = d.now.Add(flow.RequestMax)
			if err := d.db.TouchRequest(t.Context(), "req-1", d.now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}, 400}, // the request is over by then as well
		{"CS-01 txn of another person in this session", func(_ *testing.T, d *desk, _ url.Values) { d.browser.session.Subject = "noor" }, 403},
		{"AR-14 request of another browser session", func(_ *testing.T, d *desk, _ url.Values) { d.browser.session.ID = "session-2" }, 403},
		{"CS-05 no session at all", func(_ *testing.T, d *desk, _ url.Values) { d.browser.session = nil }, 403},
		{"AR-15 expired", func(_ *testing.T, d *desk, _ url.Values) { d.now = d.now.Add(flow.RequestIdle) }, 400},
		{"unknown request", func(_ *testing.T, _ *desk, f url.Values) { f.Set("request", "req-2") }, 400},
		{"client switched off meanwhile", func(t *testing.T, d *desk, _ url.Values) {
			d.client.DisabledAt = d.now
			if err := d.db.UpdateClient(t.Context(), d.client); err != nil {
				t.Fatal(err)
			}
		}, 400},
		{"D9 client lost the refresh grant meanwhile", func(t *testing.T, d *desk, _ url.Values) {
			d.client.Metadata.GrantTypes = []string{"authorization_code"}
			if err := d.db.UpdateClient(t.Context(), d.client); err != nil {
				t.Fatal(err)
			}
		}, 400},
		{"resource removed meanwhile", func(t *testing.T, d *desk, _ url.Values) {
			if err := d.db.DeleteResource(t.Context(), d.res.Canonical); err != nil {
				t.Fatal(err)
			}
		}, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, testkit.OpenSQLite(t), nil)
			form := d.form(t, "allow")
			tt.edit(t, d, form)
			requireStatus(t, d.post(form), tt.status)
			d.requireUnanswered(t)
		})
	}
}

func TestCS03_OnlyPostAnswers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testkit.OpenSQLite(t), nil)
	form := d.form(t, "allow")
	requireStatus(t, d.get("/consent?"+form.Encode()), http.StatusOK)
	for _, method := range []string{"PUT", "DELETE", "PATCH"} {
		r := httptest.NewRequest(method, "/consent?"+form.Encode(), nil)
		r.Header.Set("X-HTTP-Method-Override", "POST")
		w := httptest.NewRecorder()
		d.http.ServeHTTP(w, r)
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d, want 405", method, w.Code)
		}
	}
	d.requireUnanswered(t)
}

func TestD22_QuickAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testkit.OpenSQLite(t), nil)
	form := d.form(t, "allow")
	d.now = d.req.CreatedAt.Add(599 * time.Millisecond)
	form.Set("scope", "cal:delete") // unticked write, ticked delete
	form.Del("stay_connected")
	w := d.post(form)
	requireStatus(t, w, http.StatusOK)
	d.requireUnanswered(t)
	if !strings.Contains(w.Body.String(), "That was very quick") {
		t.Error("the page does not say why it asks again")
	}
	kept := filled(t, w, "allow")
	if !slices.Equal(kept["scope"], []string{"cal:delete"}) || kept.Has("stay_connected") {
		t.Errorf("the choices were not kept: %v", kept)
	}
	requireStatus(t, d.post(kept), http.StatusOK) // the second page counts from anew
	d.requireUnanswered(t)
	d.now = d.now.Add(600 * time.Millisecond)
	requireContinue(t, d.post(kept))
	if got := d.stored(t); !slices.Equal(got.ApprovedScopes, []string{"cal:read", "cal:delete"}) {
		t.Errorf("approved %q", got.ApprovedScopes)
	}
}

func TestReviewShowsThePageAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testkit.OpenSQLite(t), nil)
	form := d.form(t, "review") // Enter in a checkbox
	form.Del("scope")
	w := d.post(form)
	requireStatus(t, w, http.StatusOK)
	d.requireUnanswered(t)
	if kept := filled(t, w, "allow"); kept.Has("scope") || kept.Get("stay_connected") != "yes" || strings.Contains(w.Body.String(), "very quick") {
		t.Errorf("the page after review: %v", kept)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*desk)
		status int // 303 is to continue
	}{
		{"not signed in", func(d *desk) { d.browser.session.Subject = "" }, 303},
		{"AR-14 request of another session", func(d *desk) { d.req.SessionID = "session-2" }, 403},
		{"no cookie", func(d *desk) { d.browser.session = nil }, 403},
		{"AR-15 expired", func(d *desk) { d.req.ExpiresAt = d.now }, 400},
		{"finished", func(d *desk) { d.req.FinishedAt = d.now }, 400},
		{"client disabled", func(d *desk) { d.client.DisabledAt = d.now }, 400},
		{"client gone", func(d *desk) { d.client.ID = "other" }, 400},
		{"resource gone", func(d *desk) { d.req.Resource = "https://gone.example" }, 400},
		{"AU-06 resource that the client may not use", func(d *desk) { d.client.Resources = []string{"https://other.example"} }, 400},
		{"SC-04 nothing left to allow", func(d *desk) { d.req.Scopes = []string{"cal:admin"} }, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, testkit.OpenSQLite(t), tt.change)
			w := d.get("/consent?request=req-1")
			if tt.status == http.StatusSeeOther {
				requireContinue(t, w)
			} else {
				requireStatus(t, w, tt.status)
			}
			if body := w.Body.String(); strings.Contains(body, "Delete events") || strings.Contains(body, `value="allow"`) {
				t.Error("the question was shown")
			}
			if strings.HasPrefix(tt.name, "AR-14") && strings.Contains(w.Body.String(), "Quill") {
				t.Error("the page tells of somebody else's request")
			}
		})
	}
	t.Run("repeated parameter", func(t *testing.T) {
		t.Parallel()
		requireStatus(t, newDesk(t, testkit.OpenSQLite(t), nil).get("/consent?request=req-1&request=req-2"), http.StatusBadRequest)
	})
}

func TestShowVariants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		change     func(*desk)
		with, lack string
	}{
		{"SC-04 a restricted scope is not on the page", func(d *desk) { d.req.Scopes = []string{"cal:read", "cal:admin"} }, "See your calendars", "Manage everything"},
		{"restricted scope of a client the operator added", func(d *desk) {
			d.client.Kind, d.req.Scopes = registration.KindOperator, []string{"cal:admin"}
		}, "Manage everything", "Not verified"},
		{"D9 no refresh grant, no checkbox", func(d *desk) { d.client.Metadata.GrantTypes = []string{"authorization_code"} }, "Delete events", "Stay connected"},
		{"no scope is basic access", func(d *desk) { d.res.Scopes, d.req.Scopes = nil, nil }, "basic access", `name="scope"`},
		{"D13 undeclared scope is shown as code", func(d *desk) { d.res.Scopes, d.req.Scopes = nil, []string{"odd:thing"} }, "<code>odd:thing</code>", "basic access"},
		{"DR-11 hostile name", func(d *desk) { d.client.Metadata.ClientName = "<img src=x onerror=alert(1)>\u202eevil" }, "&lt;img src=x", "<img src=x"},
		{"no name: the client_id", func(d *desk) { d.client.Metadata.ClientName = "" }, "“quill”", "Quill Desktop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newDesk(t, testkit.OpenSQLite(t), tt.change).get("/consent?request=req-1")
			body := w.Body.String()
			if w.Code != http.StatusOK || !strings.Contains(body, tt.with) || strings.Contains(body, tt.lack) {
				t.Errorf("%d: want %q and not %q in\n%s", w.Code, tt.with, tt.lack, body)
			}
		})
	}
}

func TestAllowedBefore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*consent.Consent)
		want   int
	}{
		{"SC-06 the allowed one is tagged, all are shown", func(*consent.Consent) {}, 1},
		{"loopback port aside", func(c *consent.Consent) { c.RedirectURI = "http://127.0.0.1:1/callback" }, 1},
		{"CS-11 other redirect URI", func(c *consent.Consent) { c.RedirectURI = "http://127.0.0.1/other" }, 0},
		{"DR-18 other client of the same name", func(c *consent.Consent) { c.ClientID = "quill-2" }, 0},
		{"CS-11 metadata changed since", func(c *consent.Consent) { c.DocumentHash = "h0" }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, testkit.OpenSQLite(t), nil)
			c := consent.Consent{Subject: "mina", ClientID: "quill", RedirectURI: d.req.RedirectURI, Resource: d.res.Identifier,
				Scopes: []string{"cal:write"}, DocumentHash: "h1", CreatedAt: d.now, UpdatedAt: d.now}
			tt.change(&c)
			if err := d.db.PutConsent(context.Background(), c); err != nil {
				t.Fatal(err)
			}
			body := d.get("/consent?request=req-1").Body.String()
			if n := strings.Count(body, "Allowed before"); n != tt.want || len(checkbox.FindAllString(body, -1)) != 3 {
				t.Errorf("%d permissions tagged, want %d; %d checkboxes", n, tt.want, len(checkbox.FindAllString(body, -1)))
			}
		})
	}
}

func TestPageKeepsTheRequestAlive(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testkit.OpenSQLite(t), nil)
	for range 10 { // 10 x 29 minutes, a page each
		d.now = d.now.Add(29 * time.Minute)
		w := d.get("/consent?request=req-1")
		if d.now.Before(d.req.CreatedAt.Add(flow.RequestMax)) != (w.Code == http.StatusOK) {
			t.Errorf("after %v: %d", d.now.Sub(d.req.CreatedAt), w.Code)
		}
	}
	if got, want := d.stored(t).ExpiresAt, d.req.CreatedAt.Add(flow.RequestMax); !got.Equal(want) {
		t.Errorf("ExpiresAt %v, want %v: 4 h in all (D33)", got, want)
	}
}

func TestOthersAreCounted(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testkit.OpenSQLite(t), nil)
	for i := range 3 {
		if err := d.db.PutConsent(t.Context(), consent.Consent{Subject: fmt.Sprint("person-", i), ClientID: "quill", RedirectURI: "x:", Resource: "r",
			CreatedAt: d.now, UpdatedAt: d.now}); err != nil {
			t.Fatal(err)
		}
	}
	if body := d.get("/consent?request=req-1").Body.String(); !strings.Contains(body, "3 other people at Fernhill") {
		t.Errorf("the page does not count three people:\n%s", body)
	}
}

// document makes the client one that is known by its metadata document.
func document(d *desk) {
	d.client.ID, d.client.Kind = "https://quill.example/oauth/client.json", registration.KindCIMD
	d.req.ClientID = d.client.ID
}

// website makes its response go to a website.
func website(uri string) func(*desk) {
	return func(d *desk) {
		document(d)
		d.client.Metadata.RedirectURIs, d.req.RedirectURI = []string{uri}, uri
	}
}

var (
	plate   = regexp.MustCompile(`<dt>(Says it is from|Comes from)</dt><dd><span class="host(?: big)?">(.*?)</span>`)
	warning = regexp.MustCompile(`(?s)<div class="note warn">.*?</div>`)
)

func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*desk)
		want   []string
		warns  []string // "" says that there is no box
	}{
		{"CI-18 on a computer: a claim", document, []string{"Says it is from", "<b>quill.example</b>"},
			[]string{"Any program on this computer"}},
		{"app on a device: a claim", func(d *desk) {
			document(d)
			d.req.RedirectURI = "com.example.quill:/cb"
		}, []string{"Says it is from", "<b>quill.example</b>"}, []string{"Any app on this device"}},
		{"website of the document's site: a fact", website("https://app.quill.example/cb"), []string{"Comes from", "<b>quill.example</b>"},
			[]string{"a website that nobody here has checked. Continue only if you know <b class=\"exact\">app.quill.example</b>"}},
		{"another site", website("https://borealis.example/cb"), []string{"Comes from", "<b>quill.example</b>"},
			[]string{"a different website than the app’s. Continue only if you know <b class=\"exact\">borealis.example</b>"}},
		{"D32 a known app", func(d *desk) {
			website("https://claude.ai/api/mcp/auth_callback")(d)
			d.client.ID, d.client.Metadata.ClientName = "https://claude.ai/oauth/mcp-oauth-client-metadata", "Claude"
			d.req.ClientID = d.client.ID
		}, []string{"Comes from", "<b>claude.ai</b>"}, []string{""}},
		{"D32 verified by the operator", func(d *desk) {
			website("https://app.quill.example/cb")(d)
			d.client.VerifiedAt = d.now
		}, []string{"Comes from", "<b>quill.example</b>"}, []string{""}},
		{"CI-17 verified by the operator, and changed since", func(d *desk) {
			website("https://app.quill.example/cb")(d)
			d.client.VerifiedAt, d.client.VerifiedUntil = d.now.Add(-time.Hour), d.now
		}, []string{"Comes from", "<b>quill.example</b>"}, []string{"a website that nobody here has checked"}},
		{"CI-19 punycode, a known host in front, a known name", func(d *desk) {
			website("https://xn--80ak6aa92e.evil.example/cb")(d)
			d.client.ID, d.client.Metadata.ClientName = "https://claude.ai.evil.example/c.json", "Claude Code"
			d.req.ClientID = d.client.ID
		}, []string{"Comes from", "claude.ai.<b>evil.example</b>"},
			[]string{"nobody here has checked", "<b class=\"exact\">claude.ai.evil.example</b> can be mistaken for another address", "name can be mistaken"}},
		{"DR-11 alphabets mixed in a name", func(d *desk) {
			document(d)
			d.client.Metadata.ClientName = "Сlaude"
		}, []string{"Says it is from", "<b>quill.example</b>"}, []string{"Any program on this computer", "name can be mistaken"}},
		{"DR-18 registered itself: no website", func(d *desk) {
			d.client.Metadata.ClientName, d.req.RedirectURI = "ChatGPT", "https://evil.example/cb"
		}, nil, []string{"nobody here has checked", "name can be mistaken"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := newDesk(t, testkit.OpenSQLite(t), tt.change).get("/consent?request=req-1").Body.String()
			var got []string
			if m := plate.FindStringSubmatch(body); m != nil {
				got = m[1:]
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("origin %q, want %q", got, tt.want)
			}
			boxes := warning.FindAllString(body, -1)
			if none := slices.Equal(tt.warns, []string{""}); none != (len(boxes) == 0) || len(boxes) > 1 {
				t.Fatalf("%d amber boxes\n%s", len(boxes), boxes)
			} else if none {
				return
			}
			rest := boxes[0]
			for _, want := range tt.warns {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("the box lacks, in its place, %q\n%s", want, boxes[0])
				}
				rest = after
			}
			if n := strings.Count(boxes[0], "<p>"); n != len(tt.warns) {
				t.Errorf("%d sentences, want %d\n%s", n, len(tt.warns), boxes[0])
			}
		})
	}
}

// Both forms of an internationalized host are on the page, the letters apart from
// the plate.
func TestCI19_PunycodeIsShownInBothForms(t *testing.T) {
	t.Parallel()
	body := newDesk(t, testkit.OpenSQLite(t), func(d *desk) {
		document(d)
		d.client.ID = "https://xn--qull-m9d.example/c"
		d.req.ClientID = d.client.ID
	}).get("/consent?request=req-1").Body.String()
	for _, want := range []string{`<b>xn--qull-m9d.example</b></span>`, "Browsers may show it as <bdi>quіll.example</bdi>; only the form above"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q\n%s", want, body)
		}
	}
}

func TestCI17_ChangedDocumentIsTold(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		d := newDesk(t, db, document)
		row := consent.Consent{Subject: "mina", ClientID: d.client.ID, RedirectURI: d.req.RedirectURI, Resource: d.req.Resource,
			Scopes: []string{"cal:write"}, DocumentHash: "h1", CreatedAt: d.now.AddDate(0, -1, 0), UpdatedAt: d.now.AddDate(0, 0, -18)}
		if err := db.PutConsent(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		const told = "This app’s details changed since you last allowed it on 3 November at 12:00 UTC."
		if body := d.get("/consent?request=req-1").Body.String(); strings.Contains(body, told) || !strings.Contains(body, "Allowed before") {
			t.Errorf("nothing changed yet:\n%s", body)
		}
		d.client.DocumentHash = "h2"
		if err := db.UpdateClient(t.Context(), d.client); err != nil {
			t.Fatal(err)
		}
		body := d.get("/consent?request=req-1").Body.String()
		if !strings.Contains(warning.FindString(body), told) || strings.Contains(body, "Allowed before") {
			t.Errorf("the change is not told:\n%s", body)
		}
		row.Subject, row.DocumentHash = "noor", "h0"
		if err := errors.Join(db.DeleteConsents(t.Context(), "mina", "", ""), db.PutConsent(t.Context(), row)); err != nil {
			t.Fatal(err)
		}
		if body := d.get("/consent?request=req-1").Body.String(); strings.Contains(body, "details changed") {
			t.Error("told to a person who never allowed it")
		}
	})
}

// The later of two apps with one name is the look-alike; who vouches for one, or
// blocks one, changes nothing in that.
func TestDR18_NameOfAnotherClientOfThisServer(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		d := newDesk(t, db, document)
		other := d.client
		other.ID, other.CreatedAt = "https://other.example/client.json", d.client.CreatedAt.Add(time.Minute)
		if err := db.CreateClient(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		const told = "name can be mistaken for another app’s"
		if body := d.get("/consent?request=req-1").Body.String(); strings.Contains(body, told) {
			t.Error("the first of two apps is told to be the look-alike")
		}
		other.VerifiedAt = d.now
		if err := db.UpdateClient(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if body := d.get("/consent?request=req-1").Body.String(); !strings.Contains(warning.FindString(body), told) {
			t.Errorf("the name of a verified app is not told:\n%s", body)
		}
	})
}

func TestFirstSeenAndHowManyUseADocumentsApp(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testkit.OpenSQLite(t), func(d *desk) {
		document(d)
		d.client.CreatedAt = d.now.AddDate(0, -1, 0)
	})
	if body := d.get("/consent?request=req-1").Body.String(); !strings.Contains(body, "The app chose this name. Nobody else at Fernhill uses it. First seen 21 October.") {
		t.Errorf("the page:\n%s", body)
	}
	for _, who := range []string{"noor", "mina", "ada"} {
		if err := d.db.PutConsent(t.Context(), consent.Consent{Subject: who, ClientID: d.client.ID, RedirectURI: "x:", Resource: "r",
			CreatedAt: d.now, UpdatedAt: d.now}); err != nil {
			t.Fatal(err)
		}
	}
	if body := d.get("/consent?request=req-1").Body.String(); !strings.Contains(body, "2 other people at Fernhill use it. First seen 21 October.") {
		t.Errorf("the page:\n%s", body)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := consent.New(consent.Options{}); err == nil {
		t.Error("New without options: no error")
	}
}
