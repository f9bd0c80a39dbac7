package consent_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestSC06_Beyond(t *testing.T) {
	t.Parallel()
	res := resource.Resource{Scopes: []resource.Scope{{Name: "files", Implies: []string{"files:write"}},
		{Name: "files:write", Implies: []string{"files:read"}}, {Name: "files:read"}, {Name: "mail"}}}
	c := consent.Consent{Subject: "mina", ClientID: "atlas", RedirectURI: "https://atlas.example/cb", Resource: "https://mcp.example",
		Scopes: []string{"files:write"}, DocumentHash: "h1"}
	base := consent.Request{Subject: "mina", ClientID: "atlas", RedirectURI: "https://atlas.example/cb", Resource: "https://mcp.example",
		Scopes: []string{"files:write", "mail"}, DocumentHash: "h1"}
	for _, tt := range []struct {
		name   string
		change func(*consent.Consent, *consent.Request)
		want   []string // the refusal's set, nil for nothing to ask beyond
	}{
		{"one more", func(*consent.Consent, *consent.Request) {}, []string{"mail"}},
		{"two more, whatever the order", func(_ *consent.Consent, r *consent.Request) { r.Scopes = []string{"mail", "files:write", "files"} }, []string{"files", "mail"}},
		{"none more", func(_ *consent.Consent, r *consent.Request) { r.Scopes = []string{"files:write"} }, nil},
		{"nothing asked", func(_ *consent.Consent, r *consent.Request) { r.Scopes = nil }, nil},
		{"D13 an allowed scope covers what it implies", func(_ *consent.Consent, r *consent.Request) { r.Scopes = []string{"files:read"} }, nil},
		{"D13 a broader one is new", func(_ *consent.Consent, r *consent.Request) { r.Scopes = []string{"files:write", "files"} }, []string{"files"}},
		{"basic access, then a scope", func(c *consent.Consent, r *consent.Request) { c.Scopes, r.Scopes = nil, []string{"mail"} }, []string{"mail"}},
		{"D9 stay connected", func(_ *consent.Consent, r *consent.Request) { r.Scopes, r.StayConnected = nil, true }, []string{"offline_access"}},
		{"D9 stay connected and a scope", func(_ *consent.Consent, r *consent.Request) { r.StayConnected = true }, []string{"mail", "offline_access"}},
		{"D9 stay connected, allowed before", func(c *consent.Consent, r *consent.Request) { c.StayConnected, r.StayConnected = true, true }, []string{"mail"}},
		{"CS-11 metadata changed: everything is asked", func(_ *consent.Consent, r *consent.Request) { r.DocumentHash = "h2" }, nil},
		{"CS-11 other redirect URI", func(_ *consent.Consent, r *consent.Request) { r.RedirectURI = "https://atlas.example/other" }, nil},
		{"CS-11 other resource", func(_ *consent.Consent, r *consent.Request) { r.Resource = "https://mcp.example/x" }, nil},
		{"DR-18 other client", func(_ *consent.Consent, r *consent.Request) { r.ClientID = "atlas-2" }, nil},
		{"other person", func(_ *consent.Consent, r *consent.Request) { r.Subject = "noor" }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			row, r := c, base
			tt.change(&row, &r)
			var got []string
			if more := row.Beyond(res, r); more != nil {
				if got = more.Refusal().Scopes; more.Count() != len(got) {
					t.Errorf("Count %d of %q", more.Count(), got)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("beyond %q, want %q", got, tt.want)
			}
		})
	}
}

// stepUp makes the desk's client a verified one that was allowed cal:read and to
// stay connected, and asks for cal:write too.
func stepUp(d *desk) {
	d.client.VerifiedAt = d.now.Add(-time.Hour)
	d.req.Scopes = []string{"cal:read", "cal:write"}
}

// several is stepUp with three permissions more.
func several(d *desk) {
	stepUp(d)
	d.req.Scopes = []string{"cal:read", "cal:write", "cal:delete", "cal:admin"}
}

// allowed is what Mina allowed two days ago.
func (d *desk) allowed(t *testing.T, change func(*consent.Consent)) {
	t.Helper()
	at := d.now.Add(-48 * time.Hour)
	c := consent.Consent{Subject: "mina", ClientID: d.client.ID, RedirectURI: d.req.RedirectURI, Resource: d.res.Identifier,
		Scopes: []string{"cal:read"}, StayConnected: true, DocumentHash: "h1", CreatedAt: at, UpdatedAt: at}
	if change != nil {
		change(&c)
	}
	if err := d.db.PutConsent(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// stepUpDesk is a desk with a remembered consent.
func stepUpDesk(t *testing.T, db *sqlstore.Store, change func(*desk)) *desk {
	t.Helper()
	d := newDesk(t, db, change)
	d.allowed(t, nil)
	return d
}

func TestD11_WhichPage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*desk)
		row    func(*consent.Consent)
		want   string // how many more, "" for the full page
	}{
		{"verified client", stepUp, nil, "one more permission"},
		{"client of the operator", func(d *desk) { stepUp(d); d.client.VerifiedAt, d.client.Kind = time.Time{}, registration.KindOperator }, nil, "one more permission"},
		{"document client on its own site", func(d *desk) {
			website("https://app.quill.example/cb")(d)
			d.req.Scopes = []string{"cal:read", "cal:write"}
		}, nil, "one more permission"},
		{"several", several, nil, "3 more permissions"},
		{"D9 stay connected is one", func(d *desk) { stepUp(d); d.req.Scopes = d.req.Scopes[:1] }, func(c *consent.Consent) { c.StayConnected = false }, "one more permission"},
		{"D9 stay connected that nobody asks for is none", func(d *desk) { stepUp(d); d.req.OfflineNamed = false },
			func(c *consent.Consent) { c.StayConnected = false }, "one more permission"},
		{"D13 what the allowed one implies is not new", func(d *desk) { several(d); d.res.Scopes[0].Implies = []string{"cal:delete"} }, nil, "2 more permissions"},
		{"SC-04 a scope that may not be granted is not new", func(d *desk) {
			website("https://app.quill.example/cb")(d)
			d.req.Scopes = []string{"cal:read", "cal:write", "cal:admin"}
		}, nil, "one more permission"},
		{"prompt=consent", func(d *desk) { stepUp(d); d.req.Prompt = []string{"consent"} }, nil, "one more permission"},
		{"prompt=consent, nothing new", func(d *desk) { stepUp(d); d.req.Prompt, d.req.Scopes = []string{"consent"}, d.req.Scopes[:1] }, nil, ""},
		{"client that registered itself", func(d *desk) { stepUp(d); d.client.VerifiedAt = time.Time{} }, nil, ""},
		{"CI-18 document client on this computer", func(d *desk) { stepUp(d); d.client.VerifiedAt = time.Time{}; document(d) }, nil, ""},
		{"document client on another site", func(d *desk) { stepUp(d); d.client.VerifiedAt = time.Time{}; website("https://borealis.example/cb")(d) }, nil, ""},
		{"CS-11 changed since", stepUp, func(c *consent.Consent) { c.DocumentHash = "h0" }, ""},
		{"CS-11 allowed at another redirect URI", stepUp, func(c *consent.Consent) { c.RedirectURI = "http://127.0.0.1/other" }, ""},
		{"CS-11 allowed at another MCP server", stepUp, func(c *consent.Consent) { c.Resource = "https://other.example" }, ""},
		{"allowed by somebody else", stepUp, func(c *consent.Consent) { c.Subject = "noor" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, testkit.OpenSQLite(t), tt.change)
			d.allowed(t, tt.row)
			w := d.get("/consent?request=req-1")
			body := w.Body.String()
			if w.Code != http.StatusOK {
				t.Fatalf("%d\n%s", w.Code, body)
			}
			if tt.want != "" && !strings.Contains(body, "<bdi>“Quill Desktop”</bdi> asks for "+tt.want+"</h1>") ||
				tt.want == "" && !strings.Contains(body, "<h1>Let <bdi>“Quill Desktop”</bdi> use Team Calendar?</h1>") {
				t.Errorf("want %q, or the full page, in\n%s", tt.want, body)
			}
		})
	}
}

// A34: the full page goes on tagging what was allowed before.
func TestA34_UnverifiedSeesEverything(t *testing.T) {
	t.Parallel()
	d := stepUpDesk(t, testkit.OpenSQLite(t), func(d *desk) { stepUp(d); d.client.VerifiedAt = time.Time{} })
	body := d.get("/consent?request=req-1").Body.String()
	if n := strings.Count(body, "Allowed before"); n != 1 || !strings.Contains(body, "See your calendars") || !strings.Contains(body, "Create and change events") {
		t.Errorf("%d permissions tagged, want 1 and all shown\n%s", n, body)
	}
}

func TestCS15_StepUpPage(t *testing.T) {
	t.Parallel()
	d := stepUpDesk(t, testkit.OpenSQLite(t), stepUp)
	body := d.get("/consent?request=req-1").Body.String()
	for _, want := range []string{
		"<title>“Quill Desktop” asks for one more permission – Fernhill</title>",
		"In <b>Team Calendar</b>, acting as you, <b>mina.okafor@fernhill.example</b>.",
		"It would also be able to", "Create and change events", `<span class="tag ok">New</span>`,
		"Already allowed since 19 November (2)", "See your calendars and events", "Stay connected",
		"<b>127.0.0.1</b>:53682", "calendar.mcp.<b>fernhill.example</b>", "Verified by Fernhill", // the facts of the full page
		"Only continue if you started this", "choose Not now.", // D32
		"Allow this too", "Not now", "the app keeps what it already has", `href="/auth/account#apps"`, "Change what it already has",
		"<dd>cal:write</dd>", "<dd>cal:read cal:write offline_access</dd>", "http://127.0.0.1:53682/callback", "7Q4M-2KXD",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if checkbox.MatchString(body) || strings.Count(body, ">New<") != 1 || strings.Contains(body, "Don’t allow") {
		t.Errorf("one new permission: want no checkbox, one tag, the page's own buttons\n%s", body)
	}
}

func TestStepUpAnswers(t *testing.T) {
	t.Parallel()
	onlyStay := func(d *desk) { stepUp(d); d.req.Scopes = d.req.Scopes[:1] }
	noStay := func(c *consent.Consent) { c.StayConnected = false }
	for _, tt := range []struct {
		name   string
		change func(*desk)
		row    func(*consent.Consent)
		boxes  []string
		edit   func(url.Values)
		want   flow.Decision
		scopes []string
		stay   bool
	}{
		{"one new: the button is the choice", stepUp, nil, nil, nil, flow.DecisionAllow, []string{"cal:read", "cal:write"}, true},
		{"one new: not now", stepUp, nil, nil, func(f url.Values) { f.Set("decision", "deny") }, flow.DecisionDeny, nil, false},
		{"several: all ticked, permanent ones too", several, nil, []string{"scope=cal:write checked", "scope=cal:delete checked", "scope=cal:admin checked"},
			nil, flow.DecisionAllow, []string{"cal:read", "cal:write", "cal:delete", "cal:admin"}, true},
		{"SC-07 several: one unticked", several, nil, nil, func(f url.Values) { f["scope"] = []string{"cal:write", "cal:admin"} },
			flow.DecisionAllow, []string{"cal:read", "cal:write", "cal:admin"}, true},
		{"several: all unticked is not now", several, nil, nil, func(f url.Values) { f.Del("scope") }, flow.DecisionDeny, nil, false},
		{"unticking never removes what it has", func(d *desk) { several(d); d.req.OfflineNamed = false }, nil, nil,
			func(f url.Values) { f["scope"] = []string{"cal:write"} }, flow.DecisionAllow, []string{"cal:read", "cal:write"}, true},
		{"SC-07 only what is requested", func(d *desk) { stepUp(d); d.req.Scopes = []string{"cal:write"} }, nil, nil, nil, flow.DecisionAllow, []string{"cal:write"}, true},
		{"a new required one has no checkbox", func(d *desk) { several(d); d.res.Scopes[1].Required = true }, nil,
			[]string{"scope=cal:delete checked", "scope=cal:admin checked"}, func(f url.Values) { f.Del("scope") }, flow.DecisionAllow, []string{"cal:read", "cal:write"}, true},
		{"D9 stay connected alone", onlyStay, noStay, nil, nil, flow.DecisionAllow, []string{"cal:read"}, true},
		{"D9 stay connected among several", stepUp, noStay, []string{"scope=cal:write checked", "stay_connected=yes checked"}, nil,
			flow.DecisionAllow, []string{"cal:read", "cal:write"}, true},
		{"D9 stay connected unticked", stepUp, noStay, nil, func(f url.Values) { f.Del("stay_connected") }, flow.DecisionAllow, []string{"cal:read", "cal:write"}, false},
		{"D9 stay connected, all else unticked", stepUp, noStay, nil, func(f url.Values) { f.Del("scope") }, flow.DecisionAllow, []string{"cal:read"}, true},
		{"D9 not allowed and not asked for stays so", func(d *desk) { stepUp(d); d.req.OfflineNamed = false }, noStay, nil, nil,
			flow.DecisionAllow, []string{"cal:read", "cal:write"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, testkit.OpenSQLite(t), tt.change)
			d.allowed(t, tt.row)
			if tt.boxes != nil {
				var boxes []string
				for _, b := range checkbox.FindAllStringSubmatch(d.get("/consent?request=req-1").Body.String(), -1) {
					boxes = append(boxes, b[1]+"="+b[2]+b[3])
				}
				if !slices.Equal(boxes, tt.boxes) {
					t.Errorf("checkboxes %q, want %q", boxes, tt.boxes)
				}
			}
			form := d.form(t, "allow")
			if tt.edit != nil {
				tt.edit(form)
			}
			requireContinue(t, d.post(form))
			got := d.stored(t)
			if got.Decision != tt.want || !slices.Equal(got.ApprovedScopes, tt.scopes) || got.StayConnected != tt.stay || got.ExtendsConsent != (tt.want == flow.DecisionAllow) {
				t.Errorf("answer %q %q %t extends %t, want %q %q %t", got.Decision, got.ApprovedScopes, got.StayConnected, got.ExtendsConsent, tt.want, tt.scopes, tt.stay)
			}
		})
	}
}

func TestStepUpAnswerRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*desk)
		edit   func(d *desk, f url.Values)
		status int
	}{
		{"SC-08 a scope that the page does not show", several, func(_ *desk, f url.Values) { f.Add("scope", "other") }, 400},
		{"AR-13 a scope that is allowed already", several, func(_ *desk, f url.Values) { f.Add("scope", "cal:read") }, 400},
		{"AR-13 the one without a checkbox", stepUp, func(_ *desk, f url.Values) { f.Add("scope", "cal:write") }, 400},
		{"AR-13 stay connected is not on the page", stepUp, func(_ *desk, f url.Values) { f.Set("stay_connected", "yes") }, 400},
		{"AR-13 decision twice", stepUp, func(_ *desk, f url.Values) { f.Add("decision", "allow") }, 400},
		{"AR-13 the page passed off as the full one", stepUp, func(_ *desk, f url.Values) {
			token, _, _ := strings.Cut(f.Get("txn"), ".")
			f.Set("txn", token+".h1")
		}, 403},
		{"AR-13 what was shown, changed", stepUp, func(_ *desk, f url.Values) { f.Set("txn", f.Get("txn")+"A") }, 403},
		{"unknown decision", stepUp, func(_ *desk, f url.Values) { f.Set("decision", "maybe") }, 400},
		{"CS-01 no txn", stepUp, func(_ *desk, f url.Values) { f.Del("txn") }, 403},
		{"CS-01 forged txn", stepUp, func(_ *desk, f url.Values) {
			_, about, _ := strings.Cut(f.Get("txn"), ".")
			f.Set("txn", strings.Repeat("A", 54)+"."+about)
		}, 403},
		{"CS-01 account switched in this session", stepUp, func(d *desk, _ url.Values) { d.browser.session.Subject = "noor" }, 403},
		{"AR-14 request of another browser session", stepUp, func(d *desk, _ url.Values) { d.browser.session.ID = "session-2" }, 403},
		{"CS-05 no session at all", stepUp, func(d *desk, _ url.Values) { d.browser.session = nil }, 403},
		{"AR-15 expired", stepUp, func(d *desk, _ url.Values) { d.now = d.now.Add(flow.RequestIdle) }, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := stepUpDesk(t, testkit.OpenSQLite(t), tt.change)
			form := d.form(t, "allow")
			tt.edit(d, form)
			requireStatus(t, d.post(form), tt.status)
			d.requireUnanswered(t)
		})
	}
}

// What changes between the page and its answer: an approval is of what was shown.
func TestAR13_StepUpChangedMeanwhile(t *testing.T) {
	t.Parallel()
	scopes := func(change func(*resource.Resource)) func(*testing.T, *desk) {
		return func(t *testing.T, d *desk) {
			t.Helper()
			change(&d.res)
			if err := d.db.UpdateResource(t.Context(), d.res); err != nil {
				t.Fatal(err)
			}
		}
	}
	client := func(change func(*registration.Client)) func(*testing.T, *desk) {
		return func(t *testing.T, d *desk) {
			t.Helper()
			change(&d.client)
			if err := d.db.UpdateClient(t.Context(), d.client); err != nil {
				t.Fatal(err)
			}
		}
	}
	const again, gone, goesOn = 200, 400, 303
	for _, tt := range []struct {
		name    string
		change  func(*testing.T, *desk)
		allow   int
		heading string // of the page that asks again
		deny    int
	}{
		{"D10 disconnected: everything is asked", func(t *testing.T, d *desk) {
			t.Helper()
			if err := d.db.DeleteConsents(t.Context(), "mina", d.client.ID, ""); err != nil {
				t.Fatal(err)
			}
		}, again, "Let “Quill Desktop” use Team Calendar?", goesOn},
		{"another tab allowed one of them", func(t *testing.T, d *desk) {
			t.Helper()
			d.allowed(t, func(c *consent.Consent) { c.Scopes = []string{"cal:read", "cal:write"} })
		}, again, "“Quill Desktop” asks for 2 more permissions", goesOn},
		{"another tab allowed all of it", func(t *testing.T, d *desk) {
			t.Helper()
			d.allowed(t, func(c *consent.Consent) { c.Scopes = d.req.Scopes })
		}, goesOn, "", goesOn},
		{"SC-04 a new scope was removed", scopes(func(r *resource.Resource) { r.Scopes = r.Scopes[:3] }), again, "“Quill Desktop” asks for 2 more permissions", goesOn},
		{"a new scope is required now", scopes(func(r *resource.Resource) { r.Scopes[1].Required = true }), again, "“Quill Desktop” asks for 3 more permissions", goesOn},
		{"a new scope is worded otherwise", scopes(func(r *resource.Resource) { r.Scopes[1].Title = "Sell events" }), again, "“Quill Desktop” asks for 3 more permissions", goesOn},
		{"D13 what it has implies one now", scopes(func(r *resource.Resource) { r.Scopes[0].Implies = []string{"cal:write"} }), again, "“Quill Desktop” asks for 2 more permissions", goesOn},
		{"CI-17 the client changed", client(func(c *registration.Client) { c.DocumentHash = "h2" }), again, "Let “Quill Desktop” use Team Calendar?", goesOn},
		{"no longer verified", client(func(c *registration.Client) { c.VerifiedAt = time.Time{} }), again, "Let “Quill Desktop” use Team Calendar?", goesOn},
		{"client switched off", client(func(c *registration.Client) { c.DisabledAt = c.CreatedAt }), gone, "", gone},
		{"AU-06 client no longer for this resource", client(func(c *registration.Client) { c.Resources = []string{"https://other.example"} }), gone, "", gone},
		{"resource removed", func(t *testing.T, d *desk) {
			t.Helper()
			if err := d.db.DeleteResource(t.Context(), d.res.Canonical); err != nil {
				t.Fatal(err)
			}
		}, gone, "", gone},
	} {
		for decision, want := range map[string]int{"allow": tt.allow, "deny": tt.deny} {
			t.Run(tt.name+": "+decision, func(t *testing.T) {
				t.Parallel()
				d := stepUpDesk(t, testkit.OpenSQLite(t), several)
				form := d.form(t, decision)
				tt.change(t, d)
				w := d.post(form)
				if w.Code != want {
					t.Fatalf("%d, want %d\n%s", w.Code, want, w.Body)
				}
				if refused := decision == "deny" && want == goesOn; refused != (d.stored(t).Decision == flow.DecisionDeny) {
					t.Errorf("refusal recorded: %t, want %t", !refused, refused)
				} else if !refused {
					d.requireUnanswered(t)
				}
				if want == again {
					plain := strings.NewReplacer("<bdi>", "", "</bdi>", "").Replace(w.Body.String())
					if !strings.Contains(plain, "<h1>"+tt.heading+"</h1>") || !strings.Contains(plain, "What is asked here changed while you looked at it") {
						t.Errorf("want %q and why it is asked again in\n%s", tt.heading, plain)
					}
				}
			})
		}
	}
}

// The full page was shown, and meanwhile another tab allowed a part of it.
func TestAR13_FullPageThenStepUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testkit.OpenSQLite(t), stepUp)
	form := d.form(t, "allow")
	d.allowed(t, nil)
	w := d.post(form)
	requireStatus(t, w, http.StatusOK)
	if !strings.Contains(w.Body.String(), "asks for one more permission") {
		t.Errorf("want the step-up page\n%s", w.Body)
	}
	d.requireUnanswered(t)
}

func TestD22_StepUp(t *testing.T) {
	t.Parallel()
	for _, decision := range []string{"allow", "deny", "review"} {
		t.Run(decision, func(t *testing.T) {
			t.Parallel()
			d := stepUpDesk(t, testkit.OpenSQLite(t), several)
			form := d.form(t, decision)
			form["scope"] = []string{"cal:delete"}
			if decision != "review" {
				d.now = d.req.CreatedAt.Add(599 * time.Millisecond)
			}
			w := d.post(form)
			requireStatus(t, w, http.StatusOK)
			d.requireUnanswered(t)
			kept := filled(t, w, "allow")
			if !slices.Equal(kept["scope"], []string{"cal:delete"}) || strings.Contains(w.Body.String(), "very quick") != (decision != "review") {
				t.Errorf("shown again with %v\n%s", kept, w.Body)
			}
			d.now = d.now.Add(time.Second)
			requireContinue(t, d.post(kept))
			if got := d.stored(t); !slices.Equal(got.ApprovedScopes, []string{"cal:read", "cal:delete"}) {
				t.Errorf("approved %q", got.ApprovedScopes)
			}
		})
	}
}

// TestRefusalsCount: which answers of which pages are refusals of a step-up, and
// that one answer counts once.
func TestRefusalsCount(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		d := stepUpDesk(t, db, several)
		refuse := func(id, decision string, edit func(url.Values)) {
			t.Helper()
			req := d.req
			req.ID = id
			if ok, err := db.CreateRequest(t.Context(), req, 100); err != nil || !ok {
				t.Fatalf("CreateRequest: %t, %v", ok, err)
			}
			w := d.get("/consent?request=" + id)
			form := filled(t, w, decision)
			form.Set("request", id)
			if edit != nil {
				edit(form)
			}
			d.now = d.now.Add(time.Minute)
			if w := d.post(form); w.Code != http.StatusSeeOther {
				t.Fatalf("%d\n%s", w.Code, w.Body)
			}
			requireStatus(t, d.post(form), http.StatusBadRequest) // AR-15: the second time is no refusal
		}
		quiet := func() []string {
			t.Helper()
			list, err := db.ListQuiet(t.Context(), "mina", d.now.Add(-consent.QuietFor))
			if err != nil || len(list) > 1 {
				t.Fatalf("ListQuiet: %v, %v", list, err)
			}
			if len(list) == 0 {
				return nil
			}
			if list[0].ClientID != "quill" || list[0].Resource != d.res.Identifier || !list[0].RefusedAt.Equal(d.now) {
				t.Errorf("quiet: %+v", list[0])
			}
			return list[0].Scopes
		}
		refuse("1", "deny", nil)
		refuse("2", "allow", func(f url.Values) { f.Del("scope") }) // nothing new chosen
		refuse("3", "allow", nil)                                   // an approval is none, and changes nothing here: issuing does
		if got := quiet(); got != nil {
			t.Fatalf("quiet after two refusals: %q", got)
		}
		refuse("4", "deny", nil)
		if got := quiet(); !cmp.Equal(got, []string{"cal:admin", "cal:delete", "cal:write"}) {
			t.Fatalf("after three refusals quiet: %q", got)
		}
		if err := db.DeleteConsents(t.Context(), "mina", "quill", ""); err != nil {
			t.Fatal(err)
		}
		if got := quiet(); got != nil {
			t.Errorf("D10: quiet although the consent is forgotten: %q", got)
		}
		d.client.VerifiedAt = time.Time{} // the full page: nothing is remembered, nothing counts
		if err := db.UpdateClient(t.Context(), d.client); err != nil {
			t.Fatal(err)
		}
		d.allowed(t, nil)
		for _, id := range []string{"5", "6", "7", "8"} {
			refuse(id, "deny", nil)
		}
		if got := quiet(); got != nil {
			t.Errorf("D11: refusals of the full page count: %q", got)
		}
	})
}

// A page whose consent is forgotten in the moment of the refusal: the refusal
// stands and counts for nothing.
func TestRefusalOfAForgottenConsent(t *testing.T) {
	t.Parallel()
	d := stepUpDesk(t, testkit.OpenSQLite(t), stepUp)
	form := d.form(t, "deny")
	if err := d.db.DeleteConsents(t.Context(), "mina", "", ""); err != nil {
		t.Fatal(err)
	}
	requireContinue(t, d.post(form))
	if got := d.stored(t); got.Decision != flow.DecisionDeny {
		t.Errorf("decision %q, want the refusal", got.Decision)
	}
}

func TestCS03_StepUpOnlyPostAnswers(t *testing.T) {
	t.Parallel()
	d := stepUpDesk(t, testkit.OpenSQLite(t), stepUp)
	form := d.form(t, "allow")
	requireStatus(t, d.get("/consent?"+form.Encode()), http.StatusOK)
	r := httptest.NewRequest("PUT", "/consent?"+form.Encode(), nil)
	w := httptest.NewRecorder()
	d.http.ServeHTTP(w, r)
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d, want 405", w.Code)
	}
	d.requireUnanswered(t)
}
