package web_test

import (
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/web"
	"github.com/ostiary-auth/ostiary/web/webtest"
)

var update = flag.Bool("update", false, "write the golden files")

func newRenderer(t testing.TB) *web.Renderer {
	t.Helper()
	rd, err := web.New(webtest.Options())
	if err != nil {
		t.Fatal(err)
	}
	return rd
}

func write(t testing.TB, rd *web.Renderer, status int, p web.Page) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	if err := rd.Write(w, httptest.NewRequest("GET", "/", nil), status, p); err != nil {
		t.Fatalf("Write(%T): %v", p, err)
	}
	return w
}

// assetHash is replaced in golden files: the style sheet is not their business.
var assetHash = regexp.MustCompile(`(/static/\w+)\.[0-9a-f]{16}\.`)

func TestGolden(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	for _, s := range webtest.States() {
		t.Run(s.Name, func(t *testing.T) {
			w := write(t, rd, s.Status, s.Page)
			if w.Code != s.Status {
				t.Errorf("status = %d, want %d", w.Code, s.Status)
			}
			got := assetHash.ReplaceAllString(w.Body.String(), "$1.")
			file := filepath.Join("testdata", s.Name+".html")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("page differs from %s (-want +got); run with -update and look:\n%s", file, diff)
			}
		})
	}
}

// TestPageShape holds what pages.md §2 asks of every page.
func TestPageShape(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	for _, s := range webtest.States() {
		body := write(t, rd, s.Status, s.Page).Body.String()
		if n := strings.Count(body, "<h1"); n != 1 {
			t.Errorf("%s has %d h1", s.Name, n)
		}
		for _, want := range []string{`class="skip" href="#main"`, `id="main"`, `>Fernhill</a>`, "<span>id.fernhill.example</span>", `<html lang="en" dir="ltr">`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", s.Name, want)
			}
		}
		// RFC 9700 §4.2, CSP: nothing inline, nothing from elsewhere, no script.
		for _, bad := range []string{"<script", " style=", " onclick", "javascript:", "#ZgotmplZ", "src=", "autofocus autofocus", "<no value>"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s contains %s", s.Name, bad)
			}
		}
	}
}

func TestWithoutHelp(t *testing.T) {
	t.Parallel()
	rd, err := web.New(web.Options{Issuer: "http://localhost:8414/auth"})
	if err != nil {
		t.Fatal(err)
	}
	body := write(t, rd, 200, web.SignIn{Txn: "x"}).Body.String()
	for _, bad := range []string{">Help<", ">Privacy<", "Can’t sign in", `name="request"`} {
		if strings.Contains(body, bad) {
			t.Errorf("page without help contains %q", bad)
		}
	}
	for _, want := range []string{`action="/auth/sign-in"`, "Sign in to localhost", `href="/auth/static/style.`, "<span>localhost:8414</span>"} {
		if !strings.Contains(body, want) {
			t.Errorf("page below a path lacks %q", want)
		}
	}
	if body := write(t, rd, 500, web.Error{Case: web.CaseServer}).Body.String(); !strings.Contains(body, "tell the people who run localhost") {
		t.Errorf("error page without contact: %s", body)
	}
}

func TestNewRefusesRelativeIssuer(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{"", "/auth", "://"} {
		if _, err := web.New(web.Options{Issuer: issuer}); err == nil {
			t.Errorf("New accepted issuer %q", issuer)
		}
	}
}

// TestCS15 asserts that the consent page names where access goes, to which
// resource, and each scope.
func TestCS15ConsentShowsWhatMatters(t *testing.T) {
	t.Parallel()
	body := write(t, newRenderer(t), 200, webtest.Consent()).Body.String()
	for name, want := range map[string]string{
		"redirect host":     `<span class="host big"><b>127.0.0.1</b>:53682</span>`,
		"resource host":     `<span class="host">calendar.mcp.<b>fernhill.example</b></span>`,
		"resource":          "https://calendar.mcp.fernhill.example/mcp",
		"required scope":    "See your calendars and events",
		"optional scope":    `name="scope" value="calendar:write" checked`,
		"permanent, off":    `name="scope" value="calendar:delete">`,
		"stay connected":    `name="stay_connected" value="yes" checked`,
		"account":           "mina.okafor@fernhill.example",
		"app, quoted":       "<bdi>“Quill Desktop”</bdi>",
		"D32 plain words":   "Only continue if you started this",
		"D22 guard":         `class="acts guard"`,
		"request reference": "7Q4M-2KXD",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("CS-15: consent page lacks the %s: %s", name, want)
		}
	}
	first := strings.Index(body, "<button")
	if !strings.HasPrefix(body[first:], `<button class="vh" name="decision" value="review" tabindex="-1" aria-hidden="true">`) {
		t.Errorf("the form's default button answers: %.120s", body[first:])
	}
}

func TestD32WordsOnEveryConsentPage(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	for _, s := range webtest.States() {
		if _, ok := s.Page.(web.Consent); !ok {
			continue
		}
		if body := write(t, rd, s.Status, s.Page).Body.String(); strings.Count(body, "Only continue if you started this") != 1 {
			t.Errorf("%s does not say it once", s.Name)
		}
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	a := web.Account{Apps: []web.ConnectedApp{
		{ConnectedAt: webtest.Now(), LastUsedAt: webtest.Now()},
		{ConnectedAt: webtest.Now().AddDate(-1, 0, 0), EndsAt: webtest.Now()},
		{ConnectedAt: webtest.Now().AddDate(0, -1, 0)},
	}}
	body := write(t, rd, 200, a).Body.String()
	for _, want := range []string{"Connected today at 10:42 UTC. Last used just now.", "Connected 21 November 2025. Not used yet. Disconnects by itself in 1 day.", "Connected 21 October. "} {
		if !strings.Contains(body, want) {
			t.Errorf("account page lacks %q", want)
		}
	}
}
