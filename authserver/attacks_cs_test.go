package authserver_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// requestOf returns the id of the stored request that a page belongs to.
func requestOf(t *testing.T, p *testkit.Page) string {
	t.Helper()
	id := p.URL.Query().Get("request")
	if id == "" {
		t.Fatalf("%s carries no request", p.URL)
	}
	return id
}

// Group CS at the pages' own handlers is in packages consent and endpoint; these
// cases need the whole server.
func TestCS05_CS07_ContinueBelongsToItsBrowser(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		page := k.toConsent(k.person, k.authorizeURL(a, nil))
		id := requestOf(t, page)
		stranger, neighbour := k.Person(), k.addPerson("noor")
		k.open(neighbour, k.URL("/sign-in")) // a session of their own
		if _, err := neighbour.SignIn(k.ctx, k.open(neighbour, k.URL("/sign-in"))); err != nil {
			t.Fatal(err)
		}
		ways := map[string]string{"continue": k.URL(flow.ContinueURL("", id)), "consent": k.URL("/consent?request=" + id),
			"sign-in": k.URL("/sign-in?request=" + id)}
		for name, rawURL := range ways {
			for who, p := range map[string]*testkit.Person{"no session": stranger, "another person's session": neighbour} {
				k.sub("CS-05 "+name+" with "+who, func(t *testing.T) {
					k.changesOnly(func() {
						if got := k.open(p, rawURL); got.Status != http.StatusForbidden || got.Leaves != nil {
							t.Errorf("%d %q leaves to %v, want 403", got.Status, got.Heading, got.Leaves)
						}
					})
				})
			}
		}
		for name, guess := range map[string]string{"guessed": strings.Repeat("0", len(id)), "changed": flip(id), "none": "", "another kind": a.id} {
			k.sub("CS-07 request "+name, func(t *testing.T) {
				k.unchanged(func() {
					if got := k.open(k.person, k.URL(flow.ContinueURL("", guess))); got.Status < 400 || got.Status > 404 || got.Leaves != nil {
						t.Errorf("%d %q leaves to %v, want a refusal", got.Status, got.Heading, got.Leaves)
					}
				})
			})
		}
		k.sub("CS-07 continue before an answer asks again", func(t *testing.T) {
			k.unchanged(func() {
				got := k.open(k.person, k.URL(flow.ContinueURL("", id)))
				if got.Form("/consent") == nil || got.Leaves != nil {
					t.Errorf("%d %q leaves to %v, want the consent page", got.Status, got.Heading, got.Leaves)
				}
			})
		})
		if n := len(k.grants()); n != 0 {
			t.Errorf("%d grants, want none", n)
		}
	})
}

func TestCS10_DenyCloseBack(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		page := k.toConsent(k.person, k.authorizeURL(a, nil))
		k.sub("CS-10 closed: nothing is granted", func(t *testing.T) {
			if n := len(k.grants()); n != 0 {
				t.Errorf("%d grants", n)
			}
		})
		k.sub("CS-10 denied: R(access_denied)", func(t *testing.T) {
			left, err := k.person.Deny(k.ctx, page)
			if err != nil || left.Leaves == nil {
				t.Fatalf("deny: %v, %v", left, err)
			}
			wantErrorResponse(t, left.Leaves, a, "access_denied")
		})
		k.sub("CS-10 back, then allowed: too late", func(t *testing.T) {
			k.changesOnly(func() {
				again, err := k.person.Submit(k.ctx, page, page.Form("/consent"), url.Values{"decision": {"allow"}})
				if err != nil || again.Status != http.StatusBadRequest || again.Leaves != nil {
					t.Errorf("allowed after denying: %d %q leaves to %v, %v; want 400", again.Status, again.Heading, again.Leaves, err)
				}
			})
		})
		if n := len(k.grants()); n != 0 {
			t.Errorf("%d grants, want none", n)
		}
	})
}
