package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestCS04_NoFrames puts our pages into frames of a page on another port of the
// same host, whose frames get the person's cookies.
func TestCS04_NoFrames(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, desk, false, artefacts(t, "rules"))
	a := s.register(t, "Quill Desktop", loopback(t, "127.0.0.1").uri)
	framed := []string{"/sign-in", "/account", "/sign-out", "/setup", strings.TrimPrefix(a.authorizeURL(), s.Issuer), "/authorize?client_id=nobody"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>Win a prize</title><link rel="icon" href="data:,"><h1>Win a prize</h1><iframe src="/own"></iframe>`)
		for _, path := range framed {
			fmt.Fprintf(w, `<iframe src="%s"></iframe>`, s.Issuer+strings.ReplaceAll(path, "&", "&amp;"))
		}
	})
	mux.HandleFunc("GET /own", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "shown") })
	evil := httptest.NewServer(mux)
	t.Cleanup(evil.Close)

	b.goTo(s.Issuer + "/account")
	signIn(b)
	b.at("Your account", 200)
	b.allow("frame-ancestors")
	b.allow("ContentSecurityPolicyIssue")
	b.allow("blocked Document")
	b.goTo(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1) + "/")
	b.until(`document.querySelector('h1')`)
	blocked := func() (n int) {
		for _, c := range b.complaints() {
			if strings.Contains(c, "frame-ancestors 'none'") {
				n++
			}
		}
		return n
	}
	b.eventually("the browser refuses every frame", func() bool { return blocked() >= len(framed) })
	b.picture("frames")
	// A refused frame holds a page of the browser's own, out of the framer's reach.
	const readable = `[...document.querySelectorAll('iframe')].filter(f => { try { return f.contentDocument.body } catch { return false } }).length`
	if got := eval[int](b, readable); got != 1 {
		t.Errorf("%d frames can be read, want the framer's own", got)
	}
}

// sessionCookie returns the session cookie as the browser stores it.
func sessionCookie(b *tab, issuer string) *network.Cookie {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{issuer}})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range result.Cookies {
		// SL-02; in development mode no cookie can be Secure or __Host- (D4)
		if !strings.HasPrefix(c.Name, "dev-") || !c.HTTPOnly || c.Secure || c.SameSite != network.CookieSameSiteLax || c.Path != "/" || c.Domain != "localhost" {
			b.t.Errorf("SL-02: cookie %s: HttpOnly %t, Secure %t, SameSite %q, Path %q, Domain %q", c.Name, c.HTTPOnly, c.Secure, c.SameSite, c.Path, c.Domain)
		}
	}
	for _, c := range result.Cookies {
		if c.Name == "dev-sid" {
			return c
		}
	}
	b.t.Fatalf("there is no session cookie among %d", len(result.Cookies))
	return nil
}

// TestSL01_SL02_SessionCookie looks at the cookies before and after a sign-in.
func TestSL01_SL02_SessionCookie(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Team Calendar", calendar)
	b := openTab(t, desk, false, artefacts(t, "rules"))
	a := s.register(t, "Quill Desktop", loopback(t, "127.0.0.1").uri)
	b.goTo(a.authorizeURL())
	b.at("Sign in to", 200)
	before := sessionCookie(b, s.Issuer)
	signIn(b)
	b.at("Let “Quill Desktop” use", 200)
	after := sessionCookie(b, s.Issuer)
	if before.Value == after.Value {
		t.Error("SL-01: the session from before the sign-in goes on under its id")
	}
	for _, c := range []struct {
		cookie *network.Cookie
		want   int
	}{{before, http.StatusSeeOther}, {after, http.StatusOK}} {
		if got := accountWith(t, s, c.cookie); got != c.want {
			t.Errorf("SL-01: the account page has status %d, want %d", got, c.want)
		}
	}
	b.goTo(s.Issuer + "/account")
	b.at("Your account", 200)
	signOut(b)
	if got := accountWith(t, s, after); got != http.StatusSeeOther {
		t.Errorf("after signing out the account page has status %d, want 303 to the sign-in page", got)
	}
}

// accountWith asks for the account page with a cookie from elsewhere.
func accountWith(t *testing.T, s *site, c *network.Cookie) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Issuer+"/account", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
