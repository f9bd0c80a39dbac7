package account_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/consent"
)

var letAskLink = regexp.MustCompile(`action="([^"]*/account/apps/[^"]+/let-ask)"><input type="hidden" name="txn" value="([^"]+)"`)

// refused makes what the person refused of quill at the resource so often that
// they are not asked any more.
func (w *world) refused(subject, resource string, scopes ...string) {
	w.t.Helper()
	r := consent.Refusal{Subject: subject, ClientID: "quill", RedirectURI: "http://127.0.0.1:1234/cb", Resource: resource, Scopes: scopes, RefusedAt: w.now}
	for range 3 {
		if err := w.db.CountRefusal(w.t.Context(), r, w.now.Add(-time.Hour)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) quiet(subject string) int {
	w.t.Helper()
	list, err := w.db.ListQuiet(w.t.Context(), subject, w.now.Add(-consent.QuietFor))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list)
}

// TestLetItAsk: the line "Asks again for", whose button forgets what was refused
// of that app, of nothing else and of nobody else.
func TestLetItAsk(t *testing.T) {
	each(t, "/tenant", func(t *testing.T, w *world) {
		ada, eve := w.signedIn("ada", ""), w.signedIn("eve", "")
		w.allow("g1", "ada", "quill", calendar, "read")
		w.allow("g2", "ada", "quill", files, "read")
		w.allow("g3", "eve", "quill", calendar, "read")
		if page := ada.page("/tenant/account"); strings.Contains(page, "Asks again for") {
			t.Errorf("nothing was refused:\n%s", page)
		}
		w.refused("ada", calendar, "delete<b>", "write")
		w.refused("ada", calendar, "offline_access", "write")
		w.refused("ada", files, "odd")
		w.refused("eve", calendar, "write")
		page := ada.page("/tenant/account")
		wantWords(t, page, "<b>Asks again for:</b> Change events · <code>delete&lt;b&gt;</code> · Stay connected</p>", "<b>Asks again for:</b> <code>odd</code></p>")
		links := letAskLink.FindAllStringSubmatch(page, -1)
		if len(links) != 2 {
			t.Fatalf("%d forms, want one an app: 2\n%s", len(links), page)
		}
		link := links[0]
		for name, rec := range map[string]int{
			"CS-01 no token":            ada.post(link[1], "").Code,
			"CS-01 token of the page":   ada.post(link[1], all(hiddenTxn, page)[0]).Code,
			"CS-01 token of eve":        eve.post(link[1], letAskLink.FindStringSubmatch(eve.page("/tenant/account"))[2]).Code,
			"token of ada, used by eve": eve.post(link[1], link[2]).Code,
		} {
			if rec != http.StatusForbidden {
				t.Errorf("%s: %d, want 403", name, rec)
			}
		}
		if rec := ada.get(link[1]); rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("CS-03 GET: %d, want 405", rec.Code)
		}
		if n := w.quiet("ada"); n != 3 {
			t.Errorf("%d sets left, want all 3", n)
		}
		for range 2 { // twice is as good, and one event
			wantRedirect(t, ada.post(link[1], link[2]), "/tenant/account#apps")
		}
		if a, e := w.quiet("ada"), w.quiet("eve"); a >= 3 || a < 1 || e != 1 {
			t.Errorf("%d of ada's sets left and %d of eve's, want those of the other app and hers", a, e)
		}
		events, err := w.db.ListEvents(t.Context(), 10)
		if err != nil || len(events) != 1 || events[0].Name != "consent.let_ask" || events[0].Actor != "ada" || events[0].Subject != "ada" ||
			events[0].ClientID != "quill" || events[0].RequestID == "" {
			t.Errorf("D35: events %+v, %v; want one consent.let_ask by ada", events, err)
		}
		if n := len(letAskLink.FindAllString(ada.page("/tenant/account"), -1)); n != 1 {
			t.Errorf("%d forms left, want the other app's", n)
		}
		w.now = w.now.Add(11 * time.Hour) // within the session's 12
		eve.page("/tenant/account")
		w.now = w.now.Add(11 * time.Hour)
		wantWords(t, eve.page("/tenant/account"), "Asks again for")
		w.now = w.now.Add(2 * time.Hour)
		if page := eve.page("/tenant/account"); strings.Contains(page, "Asks again for") {
			t.Errorf("a day later the line is still there:\n%s", page)
		}
	})
}

func TestLetItAskOfAStranger(t *testing.T) {
	each(t, "", func(t *testing.T, w *world) {
		wantRedirect(t, (&browser{w: w}).post("/account/apps/x/let-ask", ""), "/sign-in")
	})
}
