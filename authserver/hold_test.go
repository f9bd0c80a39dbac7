package authserver_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// rounds is how often a race between an answer and its withdrawal is run.
const rounds = 20

// atOnce runs both at the same moment.
func atOnce(a, b func()) {
	var start, done sync.WaitGroup
	start.Add(1)
	for _, fn := range []func(){a, b} {
		done.Go(func() {
			start.Wait()
			fn()
		})
	}
	start.Done()
	done.Wait()
}

// wantNoOpenGrant checks that nothing is left that could be redeemed or refreshed.
func (k *kit) wantNoOpenGrant(round int) {
	k.t.Helper()
	for _, g := range k.grants() {
		if g.EndedAt.IsZero() {
			k.t.Errorf("round %d: grant %s outlived what it rested on (generation %d)", round, g.ID, g.Generation)
		}
	}
}

// A person presses Allow at the moment in which an operator at another instance
// switches the account off: whichever comes first, no grant stays open.
func TestSL10_RT11_AllowedWhileSwitchedOff(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		other := k.Again(t)
		a := k.register(appRedirect)
		for round := range rounds {
			page := k.toConsent(k.person, k.authorizeURL(a, nil))
			k.person.Pause()
			atOnce(func() {
				if _, err := k.person.Submit(k.ctx, page, page.Form("/consent"), url.Values{"decision": {"allow"}}); err != nil {
					t.Error(err)
				}
			}, func() {
				if _, err := other.App.Accounts.Disable(k.ctx, testkit.Email, true); err != nil {
					t.Error(err)
				}
			})
			k.wantNoOpenGrant(round)
			if _, err := k.App.Accounts.Enable(k.ctx, testkit.Email); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The same for a remembered consent, used at the moment in which the person
// disconnects the app in another window.
func TestRT11_RememberedWhileDisconnecting(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		for round := range rounds {
			k.connect(a, nil)
			home := k.open(k.person, k.URL("/account"))
			sure := k.submit(k.person, home, home.Form("/disconnect"), nil)
			atOnce(func() {
				if _, err := k.person.Open(k.ctx, k.authorizeURL(a, nil)); err != nil {
					t.Error(err)
				}
			}, func() {
				if _, err := k.person.Submit(k.ctx, sure, sure.Form("/disconnect"), nil); err != nil {
					t.Error(err)
				}
			})
			k.wantNoOpenGrant(round)
		}
	})
}

// D13: a broad scope that was granted covers the narrow ones it implies, at
// refresh and when a remembered consent answers.
func TestD13_ImpliedScopes(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		const drive = "https://mcp.example.com/drive"
		if _, err := k.App.Resources.Add(k.ctx, resource.Resource{Identifier: drive, Name: "Drive", Scopes: []resource.Scope{
			{Name: "drive", Title: "Your drive", Implies: []string{"drive:read"}, Default: true},
			{Name: "drive:read", Title: "Look at your drive"}, {Name: "drive:share", Title: "Share your drive"}}}); err != nil {
			t.Fatal(err)
		}
		a := k.operatorApp(registration.AuthNone, appRedirect)
		at := func(scope string) url.Values { return url.Values{"resource": {drive}, "scope": {scope}} }
		first := k.connect(a, at("drive"))
		narrow := k.refresh(a, first.body.RefreshToken, values("scope", "drive:read"))
		want(t, narrow, 200, "")
		if narrow.body.Scope != "drive:read" {
			t.Errorf("scope = %q, want drive:read", narrow.body.Scope)
		}
		k.denied(400, "invalid_scope", func() answer {
			return k.refresh(a, narrow.body.RefreshToken, values("scope", "drive:share"))
		})
		if page := k.open(k.person, k.authorizeURL(a, at("drive:read"))); page.Leaves == nil {
			t.Errorf("asked again for an implied scope: %q", page.Heading)
		}
		if page := k.open(k.person, k.authorizeURL(a, at("drive:share"))); page.Form("/consent") == nil {
			t.Errorf("another scope was given without asking: %q", page.Heading)
		}
	})
}

// D15: a HEAD of the return page looks and uses up nothing.
func TestD15_HeadUsesNothingUp(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		page := k.toConsent(k.person, k.authorizeURL(a, nil))
		k.person.Pause()
		browser := k.Browser()
		browser.Jar = k.person.Jar()
		resp, err := browser.PostForm(k.URL("/consent"), changed(page.Form("/consent").Values, values("decision", "allow")))
		for ; err == nil && resp.StatusCode == http.StatusSeeOther; resp, err = browser.Get(location(t, resp)) {
			if to := location(t, resp); strings.Contains(to, "/return/") {
				if head, err := browser.Head(to); err != nil || head.StatusCode != http.StatusOK || head.Header.Get("Refresh") != "" {
					t.Errorf("HEAD: %v, %v; want 200 without Refresh", head, err)
				}
			}
		}
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(resp.Header.Get("Refresh"), appRedirect) {
			t.Errorf("GET after HEAD: %v, %v; want 200 with the way back", resp, err)
		}
	})
}

func location(t *testing.T, resp *http.Response) string {
	t.Helper()
	to, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	return to.String()
}

// Whoever ends a grant that has ended forgets nothing: the consent may belong to
// a newer connection.
func TestD10_EndingTwiceKeepsTheNewConsent(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		admin := &grant.Admin{Store: k.DB, Now: k.Clock.Now}
		k.connect(a, nil)
		old := k.theGrant()
		if _, err := admin.End(k.ctx, old.ID); err != nil {
			t.Fatal(err)
		}
		k.connect(a, nil) // asked and remembered again
		k.unchanged(func() {
			if g, err := admin.End(k.ctx, old.ID); err != nil || g.EndReason != grant.ReasonOperator {
				t.Errorf("ended again: %+v, %v", g, err)
			}
		})
		if page := k.open(k.person, k.authorizeURL(a, nil)); page.Leaves == nil {
			t.Errorf("asked again: %q", page.Heading)
		}
	})
}

// An answer given while the person disconnects the app in another window does
// not bring back what was remembered before.
func TestD11_AnsweredWhileDisconnecting(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthNone, appRedirect)
		both, narrow := values("scope", "files:read files:write"), values("scope", "files:read", "prompt", "consent")
		for round := range rounds {
			k.connect(a, both)
			page := k.toConsent(k.person, k.authorizeURL(a, narrow))
			home := k.open(k.person, k.URL("/account"))
			sure := k.submit(k.person, home, home.Form("/disconnect"), nil)
			k.person.Pause()
			atOnce(func() {
				if _, err := k.person.Submit(k.ctx, page, page.Form("/consent"), url.Values{"decision": {"allow"}}); err != nil {
					t.Error(err)
				}
			}, func() {
				if _, err := k.person.Submit(k.ctx, sure, sure.Form("/disconnect"), nil); err != nil {
					t.Error(err)
				}
			})
			// whichever came first, writing was withdrawn
			if again := k.open(k.person, k.authorizeURL(a, both)); again.Form("/consent") == nil {
				t.Fatalf("round %d: files:write came back unasked: %q", round, again.Heading)
			}
		}
	})
}

// A client that is removed at the moment of the answer gets nothing, and the
// person a page that says so.
func TestCA15_AllowedWhileRemoved(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for round := range rounds {
			a := k.register(appRedirect)
			page := k.toConsent(k.person, k.authorizeURL(a, nil))
			k.person.Pause()
			atOnce(func() {
				after, err := k.person.Submit(k.ctx, page, page.Form("/consent"), url.Values{"decision": {"allow"}})
				if err != nil || after.Status >= http.StatusInternalServerError {
					t.Errorf("round %d: %+v, %v", round, after, err)
				}
			}, func() {
				if _, err := k.App.Clients.Remove(k.ctx, a.id); err != nil {
					t.Error(err)
				}
			})
			k.wantNoOpenGrant(round)
		}
	})
}
