package authserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The tests beside this file are the cases of the project's catalogue of
// attacks, each named by its id.

// state is what authorizeURL sends; every response must echo it.
const state = "st/ate="

// sub runs a subtest whose failures are its own.
func (k *kit) sub(name string, fn func(t *testing.T)) {
	parent := k.t
	parent.Run(name, func(t *testing.T) {
		k.t = t
		defer func() { k.t = parent }()
		fn(t)
	})
}

// unchanged runs fn, which must leave every row as it is.
func (k *kit) unchanged(fn func()) {
	k.t.Helper()
	k.changesOnly(fn)
}

// open is Person.Open that ends the test on failure.
func (k *kit) open(p *testkit.Person, rawURL string) *testkit.Page {
	k.t.Helper()
	page, err := p.Open(k.ctx, rawURL)
	if err != nil {
		k.t.Fatal(err)
	}
	return page
}

// toConsent is Person.ToConsent that ends the test on failure or on another page.
func (k *kit) toConsent(p *testkit.Person, rawURL string) *testkit.Page {
	k.t.Helper()
	page, err := p.ToConsent(k.ctx, rawURL)
	if err != nil {
		k.t.Fatal(err)
	}
	if page.Form("/consent") == nil || page.Leaves != nil {
		k.t.Fatalf("%d %q at %s, want the consent page", page.Status, page.Heading, page.URL.Path)
	}
	return page
}

// submit is Person.Submit that ends the test on failure.
func (k *kit) submit(p *testkit.Person, on *testkit.Page, f *testkit.Form, changes url.Values) *testkit.Page {
	k.t.Helper()
	page, err := p.Submit(k.ctx, on, f, changes)
	if err != nil {
		k.t.Fatal(err)
	}
	return page
}

// cast are the clients that decision D14 tells apart.
type cast struct {
	// trusted was added or verified by the operator, approved was approved before by k.person,
	// stranger by nobody.
	trusted, approved, stranger app
}

// newCast makes the three clients and signs k.person in.
func (k *kit) newCast() cast {
	k.t.Helper()
	c := cast{trusted: k.trustedApp(appRedirect),
		approved: k.register(appRedirect), stranger: k.register(appRedirect)}
	k.connect(c.approved, nil)
	return c
}

// refusedAtAuthorize checks R(code) both ways (D14): a client that the operator knows, or
// that this person approved before, gets a redirect; everybody else a page.
// Nothing may change in the database.
func (k *kit) refusedAtAuthorize(c cast, changes url.Values, code string) {
	k.t.Helper()
	k.unchanged(func() {
		nobody := k.Person()
		wantRedirect(k.t, k.open(nobody, k.authorizeURL(c.trusted, changes)), c.trusted, code)
		wantRedirect(k.t, k.open(k.person, k.authorizeURL(c.approved, changes)), c.approved, code)
		wantButton(k.t, k.open(k.person, k.authorizeURL(c.stranger, changes)), c.stranger, code)
		wantButton(k.t, k.open(nobody, k.authorizeURL(c.approved, changes)), c.approved, code)
	})
}

// wantRedirect checks a 303 to the client with an error response.
func wantRedirect(t *testing.T, p *testkit.Page, a app, code string) {
	t.Helper()
	if p.Status != http.StatusSeeOther || p.Leaves == nil {
		t.Fatalf("%d %q, want 303 with error=%s", p.Status, p.Heading, code)
	}
	if p.Header.Get("Cache-Control") != "no-store" || p.Header.Get("Refresh") != "" || p.Body != "" {
		t.Errorf("redirect with %v and body %q", p.Header, p.Body)
	}
	wantErrorResponse(t, p.Leaves, a, code)
}

// wantButton checks D14's page: the error response stands behind a button, and
// nothing leads there by itself.
func wantButton(t *testing.T, p *testkit.Page, a app, code string) {
	t.Helper()
	wantPage(t, p, http.StatusBadRequest)
	i := slices.IndexFunc(p.Links, func(l string) bool { return strings.HasPrefix(l, a.redirect) })
	if i < 0 {
		t.Fatalf("no button to %s among %q", a.redirect, p.Links)
	}
	u, err := url.Parse(p.Links[i])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.Body, u.Host) {
		t.Errorf("the page does not name %s", u.Host)
	}
	wantErrorResponse(t, u, a, code)
}

func wantErrorResponse(t *testing.T, u *url.URL, a app, code string) {
	t.Helper()
	if !strings.HasPrefix(u.String(), a.redirect+"?") || u.Fragment != "" {
		t.Errorf("leads to %s, want %s", u, a.redirect)
	}
	q := u.Query()
	for name, want := range map[string][]string{"error": {code}, "state": {state}, "iss": {testkit.Issuer}, "code": nil, "access_token": nil} {
		if !slices.Equal(q[name], want) {
			t.Errorf("%s = %q, want %q in %s", name, q[name], want, u)
		}
	}
	wantDescription(t, q.Get("error_description"))
}

// wantDescription checks the characters of RFC 6749 §4.1.2.1 (LG-03).
func wantDescription(t *testing.T, s string) {
	t.Helper()
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			t.Errorf("error_description %q has a character that RFC 6749 does not allow", s)
			return
		}
	}
}

// wantPage checks a page of ours that leads nowhere by itself.
func wantPage(t *testing.T, p *testkit.Page, status int) {
	t.Helper()
	if p.Status != status || p.Leaves != nil {
		t.Fatalf("%d %q leading to %v, want %d and no way out", p.Status, p.Heading, p.Leaves, status)
	}
	h := p.Header
	if !strings.HasPrefix(h.Get("Content-Type"), "text/html") || h.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Refresh") != "" || h.Get("Location") != "" {
		t.Errorf("headers of the page: %v", h)
	}
	if strings.Contains(strings.ToLower(p.Body), "http-equiv") || strings.Contains(p.Body, "<script") {
		t.Errorf("the page acts by itself or echoes input: %s", p.Body)
	}
}

// stopped checks E: the person gets a page without any way to the client,
// before any sign-in page, and nothing changes.
func (k *kit) stopped(rawURL string) {
	k.t.Helper()
	k.unchanged(func() {
		for name, p := range map[string]*testkit.Person{"signed in": k.person, "nobody": k.Person()} {
			page := k.open(p, rawURL)
			wantPage(k.t, page, http.StatusBadRequest)
			if page.Form("/sign-in") != nil || page.Form("/consent") != nil {
				k.t.Errorf("%s: a form on the page", name)
			}
			for _, l := range page.Links {
				if u, err := url.Parse(l); err != nil || u.Host != "id.example.com" {
					k.t.Errorf("%s: the page leads to %s", name, l)
				}
			}
		}
	})
}

// unburned proves that the code still works for its client.
func (k *kit) unburned(a app, code string) answer {
	k.t.Helper()
	got := k.redeem(a, code, nil)
	want(k.t, got, 200, "")
	return got
}

// values makes url.Values of one value each.
func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// addPerson adds another account and returns its owner at a browser.
func (k *kit) addPerson(name string) *testkit.Person {
	k.t.Helper()
	p := k.Person()
	p.Email, p.Password = name+"@example.com", fmt.Sprintf("the long password of %s", name)
	k.addAccount(name, p)
	return p
}
