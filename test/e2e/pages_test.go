package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/ostiary-auth/ostiary/web"
	"github.com/ostiary-auth/ostiary/web/webtest"
)

// view is one way of looking at a page.
type view struct {
	name          string
	width, height int64
	scheme        string
}

var views = []view{
	{"1280-light", 1280, 800, "light"},
	{"1280-dark", 1280, 800, "dark"},
	{"390-light", 390, 844, "light"},
	{"390-dark", 390, 844, "dark"},
}

// servePages serves every sample page at /page/{name}, as the product does.
func servePages(t *testing.T) string {
	t.Helper()
	opts := webtest.Options()
	opts.Issuer = "http://id.fernhill.example"
	rd, err := web.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	rd.Routes(mux, nil)
	for _, s := range webtest.States() {
		mux.HandleFunc("GET /page/"+s.Name, func(w http.ResponseWriter, r *http.Request) {
			if err := rd.Write(w, r, s.Status, s.Page); err != nil {
				t.Errorf("write %s: %v", s.Name, err)
			}
		})
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// look sets the window's size and the colour scheme.
func look(ctx context.Context, v view) error {
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(v.width, v.height)); err != nil {
		return err
	}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}}})
	return err
}

// axeRun reports what axe-core finds: WCAG 2.0 to 2.2, A and AA, and best practice.
const axeRun = `axe.run(document, {runOnly: ['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice']})
	.then(r => JSON.stringify(r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).join(', '))))`

// armed waits for the page's animations.
const armed = `Promise.all(document.getAnimations().map(a => a.finished)).then(all => all.length)`

// checkPage asks the open page for everything that must hold in any window.
func checkPage(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[string](axeRun, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: axe: %v", name, err)
	}
	var violations []string
	if err := json.Unmarshal([]byte(raw), &violations); err != nil {
		t.Fatalf("%s: axe said %q: %v", name, raw, err)
	}
	for _, v := range violations {
		t.Errorf("%s: axe: %s", name, v)
	}
	wide, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > document.documentElement.clientWidth`))
	if err != nil || wide {
		t.Errorf("%s scrolls sideways (%v)", name, err)
	}
}

func keep(ctx context.Context, t *testing.T, file string) {
	t.Helper()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatalf("screenshot: %v", err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPages looks at every page and state in two sizes and two themes, keeps a
// picture of each, and lets axe-core look at the half of them. Stops that differ in words alone
// are looked at once.
func TestPages(t *testing.T) {
	t.Parallel()
	base, axe, dir, ctx := servePages(t), axeSource(t), artefacts(t, "pages"), newBrowser(t)
	for _, s := range webtest.States() {
		if err := chromedp.Do(ctx, chromedp.Navigate(base+"/page/"+s.Name)); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		// The consent buttons are dim until they arm (D22).
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[int](armed, chromedp.EvalAwaitPromise)); err != nil {
			t.Fatalf("%s: animations: %v", s.Name, err)
		}
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[any](axe+";0")); err != nil {
			t.Fatalf("%s: load axe: %v", s.Name, err)
		}
		some := views
		if strings.HasPrefix(s.Name, "error-") && !strings.Contains(s.Name, "-facts") && !strings.Contains(s.Name, "-return") {
			some = views[:1]
		}
		for _, v := range some {
			if err := look(ctx, v); err != nil {
				t.Fatal(err)
			}
			name := s.Name + "." + v.name
			keep(ctx, t, filepath.Join(dir, name+".png"))
			if v == views[0] || v == views[3] { // each size and each theme once
				checkPage(ctx, t, name)
			}
		}
	}
}

// TestConsentFits holds pages.md §1.2: who asks, where access goes and what it
// could do are visible without scrolling on a usual screen, and 320 px suffice.
func TestConsentFits(t *testing.T) {
	t.Parallel()
	base, ctx := servePages(t), newBrowser(t)
	if err := look(ctx, view{width: 1280, height: 800, scheme: "light"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"consent", "consent-document", "consent-document-app", "consent-document-website", "consent-document-known",
		"consent-document-different-site", "consent-document-changed-known", "consent-document-verified"} {
		if err := chromedp.Do(ctx, chromedp.Navigate(base+"/page/"+name)); err != nil {
			t.Fatal(err)
		}
		height, err := chromedp.Run(ctx, chromedp.Evaluate[int](`document.documentElement.scrollHeight`))
		if err != nil || height > 800 {
			t.Errorf("%s is %d px high, want at most 800 (%v)", name, height, err)
		}
	}
	for _, name := range []string{"step-up", "step-up-loopback", "step-up-document"} {
		if err := chromedp.Do(ctx, chromedp.Navigate(base+"/page/"+name)); err != nil {
			t.Fatal(err)
		}
		bottom, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`document.querySelector('.acts').getBoundingClientRect().bottom`))
		if err != nil || bottom > 800 {
			t.Errorf("the buttons of %s end at %.0f px, want at most 800 (%v)", name, bottom, err)
		}
	}
	if err := look(ctx, view{width: 320, height: 640, scheme: "light"}); err != nil {
		t.Fatal(err)
	}
	for _, s := range webtest.States() {
		if err := chromedp.Do(ctx, chromedp.Navigate(base+"/page/"+s.Name)); err != nil {
			t.Fatal(err)
		}
		if wide, err := chromedp.Run(ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); err != nil || wide > 320 {
			t.Errorf("WCAG 1.4.10: %s is %d px wide in a window of 320 (%v)", s.Name, wide, err)
		}
	}
}

// TestEnterInCheckboxOnlyReviews presses Enter in a checkbox of the consent
// page: the form's default button asks to see the page again and never answers.
func TestEnterInCheckboxOnlyReviews(t *testing.T) {
	t.Parallel()
	posted := make(chan string, 1)
	rd, err := web.New(web.Options{Issuer: "http://id.fernhill.example"})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	rd.Routes(mux, nil)
	mux.HandleFunc("GET /consent", func(w http.ResponseWriter, r *http.Request) { _ = rd.Write(w, r, 200, webtest.Consent()) })
	mux.HandleFunc("POST /consent", func(w http.ResponseWriter, r *http.Request) {
		posted <- r.PostFormValue("decision")
		fmt.Fprint(w, "done")
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	ctx := newBrowser(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(srv.URL+"/consent")); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.RunResponse(ctx, chromedp.SendKeys(chromedp.CSS(`input[name=scope]`), "\r")); err != nil {
		t.Fatal(err)
	}
	if got := <-posted; got != "review" {
		t.Errorf("Enter in a checkbox posted decision=%q, want review", got)
	}
}
