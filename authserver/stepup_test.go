package authserver_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const (
	oneScope    = "files:read"
	twoScopes   = "files:read files:write"
	threeScopes = "files:read files:write files:delete"
)

// stepUp opens a request for these scopes and wants the step-up page.
func (k *kit) stepUp(a app, scope string) *testkit.Page {
	k.t.Helper()
	page := k.toConsent(k.person, k.authorizeURL(a, values("scope", scope)))
	if !strings.Contains(page.Heading, "more permission") {
		k.t.Fatalf("%q, want the step-up page", page.Heading)
	}
	return page
}

// notNow refuses a step-up and returns the way back.
func (k *kit) notNow(a app, scope string) {
	k.t.Helper()
	back, err := k.person.Deny(k.ctx, k.stepUp(a, scope))
	if err != nil {
		k.t.Fatal(err)
	}
	if back.Leaves == nil {
		k.t.Fatalf("%d %q, want the way back", back.Status, back.Heading)
	}
	wantErrorResponse(k.t, back.Leaves, a, "access_denied")
}

// event returns the newest audit event of a client.
func (k *kit) event(a app) audit.Event {
	k.t.Helper()
	events, err := k.DB.ListEvents(k.ctx, 100)
	if err != nil {
		k.t.Fatal(err)
	}
	i := slices.IndexFunc(events, func(e audit.Event) bool { return e.ClientID == a.id })
	if i < 0 {
		k.t.Fatal("the client has no event")
	}
	return events[i]
}

// letAsk presses the button in Connected apps.
func (k *kit) letAsk() {
	k.t.Helper()
	k.Clock.Advance(time.Second)
	home := k.open(k.person, k.URL("/account"))
	if !strings.Contains(home.Body, "Asks again for:") {
		k.t.Fatalf("Connected apps does not say what is asked again\n%s", home.Body)
	}
	if done := k.submit(k.person, home, home.Form("/let-ask"), nil); done.Status != http.StatusOK || done.Form("/let-ask") != nil {
		k.t.Fatalf("let it ask: %d, and the line is there still: %t", done.Status, done.Form("/let-ask") != nil)
	}
}

func TestSC06_StepUp(t *testing.T) {
	eachKind(t, func(t *testing.T, k *kit) {
		a := k.trustedApp(appRedirect)
		first := k.connect(a, values("scope", oneScope))
		k.sub("SC-06 what is new is added", func(t *testing.T) {
			back, err := k.person.Allow(k.ctx, k.stepUp(a, twoScopes))
			if err != nil || back.Leaves == nil {
				t.Fatalf("allow: %v", err)
			}
			got := k.redeem(a, back.Leaves.Query().Get("code"), nil)
			wantScope(t, got, twoScopes)
			if e := k.event(a); e.Name != "consent.granted" || e.Detail["scope"] != twoScopes || e.Detail["added"] != "files:write" {
				t.Errorf("D35: event %s %v", e.Name, e.Detail)
			}
			wantScope(t, k.refresh(a, got.body.RefreshToken, nil), twoScopes)
			wantScope(t, k.refresh(a, first.body.RefreshToken, nil), oneScope) // D10: its own grant
		})
		for _, scope := range []string{oneScope, "files:write", twoScopes} {
			k.sub("none new: "+scope, func(t *testing.T) {
				page := k.open(k.person, k.authorizeURL(a, values("scope", scope)))
				if page.Leaves == nil {
					t.Fatalf("%d %q, want a code without a page", page.Status, page.Heading)
				}
				wantScope(t, k.redeem(a, page.Leaves.Query().Get("code"), nil), scope)
			})
		}
		k.sub("not now: what it has stays", func(t *testing.T) {
			held := k.connect(a, values("scope", twoScopes))
			grants := len(k.live())
			k.notNow(a, threeScopes)
			if e := k.event(a); e.Name != "consent.denied" || e.Outcome != "denied" {
				t.Errorf("D35: event %s %s", e.Name, e.Outcome)
			}
			if n := len(k.live()); n != grants {
				t.Errorf("%d grants, want the %d from before", n, grants)
			}
			wantScope(t, k.refresh(a, held.body.RefreshToken, nil), twoScopes)
			if page := k.open(k.person, k.authorizeURL(a, values("scope", twoScopes))); page.Leaves == nil || page.Leaves.Query().Get("code") == "" {
				t.Errorf("%d %q: the refusal took away what was allowed", page.Status, page.Heading)
			}
		})
		k.sub("AR-11 prompt=none", func(*testing.T) {
			wantRedirect(t, k.open(k.person, k.authorizeURL(a, values("scope", threeScopes, "prompt", "none"))), a, "consent_required")
		})
	})
}

// What is refused three times within an hour is answered without asking, in every
// process, until the person lets the app ask or a day has passed.
func TestStepUpRefusedThreeTimes(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		k.connect(a, values("scope", oneScope))
		other := &kit{Server: k.Again(t), t: t, ctx: k.ctx}
		other.person = other.Person()
		refuse := func() {
			t.Helper()
			k.notNow(a, twoScopes)
			other.notNow(a, twoScopes)
			k.Clock.Advance(50 * time.Minute)
			k.notNow(a, twoScopes)
		}
		quiet := func(t *testing.T, k *kit, changes url.Values) {
			t.Helper()
			before := len(k.grants())
			k.Clock.Advance(time.Second) // events are found by their time
			page := k.open(k.person, k.authorizeURL(a, changed(values("scope", twoScopes), changes)))
			wantRedirect(t, page, a, "access_denied")
			if !strings.Contains(page.Leaves.Query().Get("error_description"), k.URL("/account")) {
				t.Errorf("the developer is told %q", page.Leaves.Query().Get("error_description"))
			}
			if e := k.event(a); e.Name != "consent.denied_again" || e.Outcome != "denied" || e.Detail["scope"] != twoScopes || e.GrantID != "" || e.Subject == "" {
				t.Errorf("D35: event %+v", e)
			}
			if n := len(k.grants()); n != before {
				t.Errorf("%d grants, want %d", n, before)
			}
		}
		refuse()
		k.sub("answered at once", func(t *testing.T) { quiet(t, k, nil) })
		k.sub("in another process", func(t *testing.T) { quiet(t, other, nil) })
		k.sub("A30 prompt=consent asks nobody either", func(t *testing.T) { quiet(t, k, values("prompt", "consent")) })
		k.sub("AR-11 prompt=none", func(t *testing.T) {
			wantRedirect(t, k.open(k.person, k.authorizeURL(a, values("scope", twoScopes, "prompt", "none"))), a, "consent_required")
		})
		k.sub("what is allowed is given still", func(t *testing.T) {
			page := k.open(k.person, k.authorizeURL(a, values("scope", oneScope)))
			wantScope(t, k.redeem(a, page.Leaves.Query().Get("code"), nil), oneScope)
		})
		k.sub("after signing in", func(t *testing.T) {
			fresh := k.Person()
			page, err := fresh.ToConsent(k.ctx, k.authorizeURL(a, values("scope", twoScopes)))
			if err != nil || page.Leaves == nil {
				t.Fatalf("%v, want the way back", err)
			}
			wantErrorResponse(t, page.Leaves, a, "access_denied")
		})
		k.sub("another set is asked for", func(*testing.T) { k.stepUp(a, threeScopes) })
		k.sub("let it ask", func(t *testing.T) {
			k.letAsk()
			if e := k.event(a); e.Name != "consent.let_ask" || e.Actor == "" || e.Actor != e.Subject {
				t.Errorf("D35: event %+v", e)
			}
			k.stepUp(a, twoScopes)
		})
		k.sub("a day later", func(t *testing.T) {
			refuse()
			k.Clock.Advance(12 * time.Hour)
			again := k.Person()
			page, err := again.ToConsent(k.ctx, k.authorizeURL(a, values("scope", twoScopes)))
			if err != nil || page.Leaves == nil {
				t.Fatalf("half a day later: %v, want the answer without a page", err)
			}
			k.Clock.Advance(12 * time.Hour)
			if _, err := k.Person().ToConsent(k.ctx, k.authorizeURL(a, values("scope", twoScopes))); err != nil {
				t.Fatal(err)
			}
			k.person = k.Person()
			k.stepUp(a, twoScopes)
		})
	})
}

// Two processes are told at the same moment: each refusal counts, and a single one
// counts once whatever is pressed twice.
func TestStepUpRefusedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		k.connect(a, values("scope", oneScope))
		other := &kit{Server: k.Again(t), t: t, ctx: k.ctx}
		other.person = other.Person()
		for range 5 {
			double := k.stepUp(a, twoScopes)
			k.Clock.Advance(time.Second)
			atOnce(func() { _, _ = k.person.Submit(k.ctx, double, double.Form("/consent"), values("decision", "deny")) },
				func() { _, _ = k.person.Submit(k.ctx, double, double.Form("/consent"), values("decision", "deny")) })
			mine, theirs := k.stepUp(a, twoScopes), other.stepUp(a, twoScopes) // asked still: that was one
			k.Clock.Advance(time.Second)
			atOnce(func() {
				if _, err := k.person.Submit(k.ctx, mine, mine.Form("/consent"), values("decision", "deny")); err != nil {
					t.Error(err)
				}
			}, func() {
				if _, err := other.person.Submit(k.ctx, theirs, theirs.Form("/consent"), values("decision", "deny")); err != nil {
					t.Error(err)
				}
			})
			wantRedirect(t, k.open(k.person, k.authorizeURL(a, values("scope", twoScopes))), a, "access_denied")
			k.letAsk()
		}
	})
}

// Two tabs add one permission each: both stay.
func TestStepUpInTwoTabs(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		k.connect(a, values("scope", oneScope))
		first, second := k.stepUp(a, twoScopes), k.stepUp(a, "files:read files:delete")
		k.Clock.Advance(time.Second)
		for _, next := range []string{k.answerOnly(first, "allow"), k.answerOnly(second, "allow")} {
			if page := k.open(k.person, next); page.Leaves == nil || page.Leaves.Query().Get("code") == "" {
				t.Fatalf("%d %q, want a code", page.Status, page.Heading)
			}
		}
		if page := k.open(k.person, k.authorizeURL(a, values("scope", threeScopes))); page.Leaves == nil || page.Leaves.Query().Get("code") == "" {
			t.Errorf("%d %q, want all three remembered", page.Status, page.Heading)
		}
	})
}

// A step-up that is allowed and then, before the code is made, loses what it adds
// to: the person disconnected the app, so nothing is issued (D10, RT-11).
func TestRT11_StepUpWhileDisconnecting(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		k.connect(a, values("scope", oneScope))
		for _, again := range []bool{false, true} {
			page := k.stepUp(a, twoScopes)
			k.Clock.Advance(time.Second)
			next := k.answerOnly(page, "allow")
			k.disconnectOne()
			if again { // and allowed something else since
				k.Clock.Advance(time.Second)
				k.connect(a, values("scope", "files:delete"))
			}
			live := len(k.live())
			wantPage(t, k.open(k.person, next), http.StatusBadRequest)
			if n := len(k.live()); n != live {
				t.Errorf("connected again: %t: %d live grants, want %d", again, n, live)
			}
			k.connect(a, values("scope", oneScope))
		}
	})
}

// The account is another one when the answer comes, or when it is used.
func TestAR14_StepUpOfAnotherAccount(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		k.connect(a, values("scope", oneScope))
		page := k.stepUp(a, twoScopes)
		k.Clock.Advance(time.Second)
		noor := k.addPerson("noor")
		k.toConsent(noor, k.authorizeURL(a, values("scope", twoScopes))) // the full page: nothing is remembered of theirs
		k.unchanged(func() {
			wantPage(t, k.submit(noor, page, page.Form("/consent"), values("decision", "allow")), http.StatusForbidden)
		})
	})
}
