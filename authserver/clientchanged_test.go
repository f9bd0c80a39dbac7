package authserver_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// A client that changes while a person looks at the consent page: what was asked
// and what is answered must be one thing.

// A redirect URI that the client gave up gets no response: somebody else may
// have it by now.
func TestDR16_NoCodeForARedirectURIThatWasGivenUp(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for name, decision := range map[string]string{"DR-16 allowed": "allow", "DR-16 denied": "deny"} {
			k.sub(name, func(t *testing.T) {
				a := k.managedApp()
				page := k.toConsent(k.person, k.authorizeURL(a.app, nil))
				k.person.Pause()
				got, _ := k.manage("PUT", a, map[string]any{"client_id": a.id, "client_name": "Atlas",
					"redirect_uris": []string{"https://app.example.net/moved"}, "token_endpoint_auth_method": registration.AuthClientSecretPost})
				if got.status != http.StatusOK {
					t.Fatalf("update: %d %s", got.status, got.raw)
				}
				after := k.submit(k.person, page, page.Form("/consent"), url.Values{"decision": {decision}})
				wantPage(t, after, http.StatusBadRequest)
				if after.Leaves != nil || len(k.grants()) > 0 {
					t.Errorf("%q leads to %v; grants %v", after.Heading, after.Leaves, k.grants())
				}
			})
		}
	})
}

// CI-17: an answer to a page is one about what the page said. A document that
// changed meanwhile makes it a new question.
func TestCI17_DocumentChangedBehindThePage(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		_, port, _ := strings.Cut(s.host.Host, ":")
		redirect := "https://client.example:" + port + "/cb" // the document's own site: it would be remembered
		a := s.publish("/client.json", nil, redirect)
		page := s.toConsent(s.person, s.authorizeURL(a, nil))
		s.publish("/client.json", map[string]any{"client_name": "Another"}, redirect)
		s.Clock.Advance(6 * time.Minute)
		s.open(s.Person(), s.authorizeURL(a, nil)) // somebody else makes it be read again
		s.Clock.Advance(time.Second)

		again := s.submit(s.person, page, page.Form("/consent"), url.Values{"decision": {"allow"}})
		if again.Status != http.StatusOK || again.Form("/consent") == nil || !strings.Contains(again.Heading, "Another") {
			t.Fatalf("%d %q at %s, want the page with what the document says now", again.Status, again.Heading, again.URL.Path)
		}
		if n := len(s.grants()); n != 0 {
			t.Errorf("%d grants by an answer about another document", n)
		}
		after, err := s.person.Allow(s.ctx, again)
		if err != nil || after.Leaves == nil {
			t.Errorf("the answer to the new page: %v, %v", after, err)
		}
	})
}

// The same between the answer and the step after it, which a browser may take
// late: the approval stands, and is not remembered for what nobody has seen.
func TestCI17_DocumentChangedBehindTheAnswer(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		_, port, _ := strings.Cut(s.host.Host, ":")
		redirect := "https://client.example:" + port + "/cb"
		a := s.publish("/client.json", nil, redirect)
		page := s.toConsent(s.person, s.authorizeURL(a, nil))
		s.person.Pause()
		next := s.answerOnly(page, "allow")
		s.publish("/client.json", map[string]any{"client_name": "Another"}, redirect)
		s.Clock.Advance(6 * time.Minute)
		s.open(s.Person(), s.authorizeURL(a, nil))
		if got := s.open(s.person, next); got.Leaves == nil || got.Leaves.Query().Get("code") == "" {
			t.Fatalf("%d %q, want the way back with a code", got.Status, got.Heading)
		}
		s.toConsent(s.person, s.authorizeURL(a, nil))
	})
}

// answerOnly presses a button of a consent page and stops before the step that
// follows, whose address it returns.
func (k *kit) answerOnly(page *testkit.Page, decision string) string {
	k.t.Helper()
	fields := url.Values{}
	for name, values := range page.Form("/consent").Values {
		fields[name] = values
	}
	fields.Set("decision", decision)
	req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.URL("/consent"), strings.NewReader(fields.Encode()))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	client := *k.Client()
	client.Jar = k.person.Jar()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	next, err := resp.Location()
	if err != nil {
		k.t.Fatalf("%s: %v", resp.Status, err)
	}
	return next.String()
}
