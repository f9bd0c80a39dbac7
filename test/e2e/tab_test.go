package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take; a loaded machine needs most of it.
const patience = 30 * time.Second

// tab is a person's browser tab. It notes everything that the browser complains
// of, and a test fails when there was anything.
type tab struct {
	t    *testing.T
	ctx  context.Context
	view view
	js   bool
	dir  string
	axe  string // axe-core, "" where nobody looks

	mu        sync.Mutex
	problems  []string
	allowed   []string // parts of complaints that a test expects
	document  *network.Response
	requested []string // what pages were asked for
	expected  []string // complaints that were allowed
	pictures  int
}

// openTab opens a tab of this size, with or without JavaScript. Pictures are
// kept below dir.
func openTab(t *testing.T, v view, js bool, dir string) *tab {
	t.Helper()
	b := &tab{t: t, ctx: newBrowser(t), view: v, js: js, dir: dir}
	if js {
		b.axe = axeSource(t)
	}
	if err := chromedp.Listen(b.ctx, b.note); err != nil {
		t.Fatal(err)
	}
	b.call(call(log.Enable, cdp.Empty{}), call(audits.Enable, cdp.Empty{}), call(network.Enable, network.EnableParams{}),
		call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !js}),
		call(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}))
	if err := look(b.ctx, v); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

// call makes an action of a protocol command.
func call[P, R any](cmd cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, cmd, params)
		return err
	})
}

func (b *tab) call(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v", b.where(), err)
	}
}

// close fails the test when the browser complained of anything.
func (b *tab) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("the browser says: %s", p)
	}
}

// allow names a part of a complaint that is what the test is about.
func (b *tab) allow(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, part)
}

// note is told every event.
func (b *tab) note(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventResponseReceived:
		if ev.Type == network.ResourceTypeDocument && ev.Response.Status != http.StatusNoContent {
			b.document = ev.Response
		}
	case *network.EventLoadingFailed:
		if ev.BlockedReason != "" {
			b.complain(fmt.Sprintf("blocked %s: %s", ev.Type, ev.BlockedReason))
		}
	case *network.EventRequestWillBeSent:
		if ev.Type == network.ResourceTypeDocument {
			b.requested = append(b.requested, ev.Request.Method+" "+ev.Request.URL)
		}
	case *log.EventEntryAdded:
		b.complain(ev.Entry.Text + " " + ev.Entry.URL)
	case *audits.EventIssueAdded:
		// A chain of redirects is how OAuth works.
		if ev.Issue.Code != audits.InspectorIssueCodeBounceTrackingIssue {
			b.complain("issue " + string(ev.Issue.Code))
		}
	case *runtime.EventExceptionThrown:
		b.complain("exception " + ev.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.complain(fmt.Sprintf("console.%s", ev.Type))
	}
}

func (b *tab) complain(what string) {
	// A page with an error status is one of ours, and tests look at its status.
	if strings.HasPrefix(what, "Failed to load resource: the server responded with a status of 4") && !strings.Contains(what, "/static/") {
		return
	}
	for _, part := range b.allowed {
		if strings.Contains(what, part) {
			b.expected = append(b.expected, what)
			return
		}
	}
	b.problems = append(b.problems, what)
}

// went counts how often the browser asked for an address in the place of the
// page, as "METHOD address" that begins so. Hops of redirects count too.
func (b *tab) went(prefix string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requested {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// complaints are those of the allowed ones that came.
func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.expected)
}

// response is the answer that made the page.
func (b *tab) response() *network.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.document == nil {
		b.t.Fatal("there is no page")
	}
	return b.document
}

// header returns a header of the answer that made the page.
func (b *tab) header(name string) string {
	for k, v := range b.response().Headers {
		if strings.EqualFold(k, name) {
			return fmt.Sprint(v)
		}
	}
	return ""
}

// where says what the tab shows, for messages.
func (b *tab) where() string {
	s, err := ask[string](b, `location.origin + location.pathname + ' "' + document.title + '"'`)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return s
}

// ask is eval for when there may be nobody to answer.
func ask[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
}

// eval asks the page. It works without JavaScript too: the question comes from
// outside.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := ask[T](b, expression)
	if err != nil {
		b.t.Fatalf("%s: %.200s: %v", b.where(), expression, err)
	}
	return v
}

// mark is set in a document that is about to be left.
const mark = `document.documentElement.dataset.left`

// until waits until the condition holds in a finished page that is not the one
// that was left last.
func (b *tab) until(condition string) {
	b.t.Helper()
	whole := fmt.Sprintf(`document.readyState === 'complete' && !%s && !!(%s)`, mark, condition)
	deadline := time.Now().Add(patience)
	for {
		// While one page follows the other there is nobody to ask, hence no check.
		ok, err := ask[bool](b, whole)
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) || b.ctx.Err() != nil {
			b.picture("stuck")
			b.t.Fatalf("%s: never came to %s (%v)", b.where(), condition, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// eventually waits until what the browser tells of has happened.
func (b *tab) eventually(what string, happened func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.picture("stuck")
			b.t.Fatalf("%s: never came to this: %s", b.where(), what)
		}
	}
}

// tries repeats what a busy machine may be too slow for.
func (b *tab) tries(what string, fast func() bool) {
	b.t.Helper()
	for range 5 {
		if fast() {
			return
		}
	}
	b.t.Fatalf("%s: this machine is too slow for this: %s", b.where(), what)
}

// at waits for the page with this heading and the status.
func (b *tab) at(heading string, status int64) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector('h1')?.textContent.includes(%q)`, heading))
	if got := b.response().Status; got != status {
		b.t.Errorf("%s has status %d, want %d", b.where(), got, status)
	}
}

// leave does something that brings another page.
func (b *tab) leave(step chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	eval[any](b, mark+`='yes';0`)
	b.call(step)
}

// goTo types an address.
func (b *tab) goTo(rawURL string) {
	b.t.Helper()
	b.leave(call(page.Navigate, page.NavigateParams{URL: rawURL}))
}

// back presses the browser's button.
func (b *tab) back() {
	b.t.Helper()
	h, err := chromedp.Run(b.ctx, chromedp.NavigationEntries())
	if err != nil || h.CurrentIndex < 1 {
		b.t.Fatalf("history: entry %d, %v", h.CurrentIndex, err)
	}
	b.leave(call(page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: h.Entries[h.CurrentIndex-1].ID}))
}

// press clicks what brings another page.
func (b *tab) press(selector string) {
	b.t.Helper()
	b.leave(chromedp.Click(chromedp.CSS(selector)))
}

// tick clicks what stays on the page.
func (b *tab) tick(selector string) {
	b.t.Helper()
	b.call(chromedp.Click(chromedp.CSS(selector)))
}

// fill pastes a value over what a field holds.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	b.call(chromedp.Focus(chromedp.CSS(selector)))
	eval[any](b, fmt.Sprintf(`document.querySelector(%q).select();0`, selector))
	b.call(call(input.InsertText, input.InsertTextParams{Text: value}))
}

// answer waits until the consent buttons are armed (D22) and presses one.
func (b *tab) answer(decision string) {
	b.t.Helper()
	b.until(`document.getAnimations().every(a => a.playState === 'finished')`)
	b.press(`button[value=` + decision + `]`)
}

// sticksOut lists what is wider than the card that it lies in.
const sticksOut = `[...document.querySelectorAll('.card *')].filter(e => !e.closest('.code, .vh') &&
	e.getBoundingClientRect().right > e.closest('.card').getBoundingClientRect().right).map(e => e.outerHTML.slice(0, 60))`

// look keeps pictures of the page, light and dark, and lets axe-core see it in
// the tab's own scheme: TestPages has the others. Without JavaScript there is one
// picture.
func (b *tab) look(name string) {
	b.t.Helper()
	b.until(`document.getAnimations().every(a => a.playState === 'finished')`)
	if wide := eval[bool](b, `document.documentElement.scrollWidth > document.documentElement.clientWidth`); wide {
		b.t.Errorf("%s (%s) scrolls sideways", b.where(), name)
	}
	if over := eval[[]string](b, sticksOut); len(over) > 0 {
		b.t.Errorf("%s (%s): out of their card stick %q", b.where(), name, over)
	}
	b.pictures++
	name = fmt.Sprintf("%02d-%s.%d", b.pictures, name, b.view.width)
	if !b.js {
		b.picture(name + "-noscript")
		return
	}
	eval[any](b, b.axe+";0")
	schemes := []string{"dark", "light"}
	if b.view.scheme == "dark" {
		slices.Reverse(schemes)
	}
	for _, scheme := range schemes {
		if err := look(b.ctx, view{width: b.view.width, height: b.view.height, scheme: scheme}); err != nil {
			b.t.Fatal(err)
		}
		b.picture(name + "-" + scheme)
	}
	checkPage(b.ctx, b.t, name)
}

func (b *tab) picture(name string) {
	b.t.Helper()
	keep(b.ctx, b.t, filepath.Join(b.dir, name+".png"))
}
