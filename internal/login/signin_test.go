package login_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestSignIn(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		u := w.addUser("Ada@Fernhill.example", false)
		b := w.browser()
		page := b.get("/sign-in")
		wantPage(t, page, http.StatusOK, "Sign in to Fernhill", `name="username"`, `autocomplete="current-password"`)
		wantRedirect(t, b.signIn("", " ADA@fernhill.example ", password), "/account")
		s := b.session()
		if s == nil || s.Subject != u.ID || s.Email != "Ada@Fernhill.example" || s.Name != "Ada" || s.Operator {
			t.Errorf("session after sign-in = %+v, want the account's", s)
		}
		if !s.AuthTime.Equal(w.clock.Now()) {
			t.Errorf("AuthTime = %v, want %v", s.AuthTime, w.clock.Now())
		}
		if got, err := w.accounts.Get(t.Context(), ada); err != nil || !got.LastSignInAt.Equal(w.clock.Now()) {
			t.Errorf("LastSignInAt = %v, %v; want now", got.LastSignInAt, err)
		}
		wantRedirect(t, b.get("/sign-in"), "/account")
		wantPage(t, b.get("/sign-in?switch=1"), http.StatusOK, "Sign in to Fernhill")
		if n := count(w.events(), "user.signed_in"); n != 1 {
			t.Errorf("LG-07: %d events user.signed_in, want 1", n)
		}
	})
}

func TestSignInForRequest(t *testing.T) {
	each(t, worldOption{base: "/tenant"}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		b := w.browser()
		b.get("/tenant/sign-in")
		w.openRequest(b, "r1")
		w.clock.advance(time.Minute)
		page := b.get("/tenant/sign-in?request=r1")
		wantPage(t, page, http.StatusOK, "Quill of client-1", "Team Calendar", `name="request" value="r1"`, `action="/tenant/sign-in"`)
		if a, err := w.db.GetRequest(t.Context(), "r1"); err != nil || !a.ExpiresAt.Equal(w.clock.Now().Add(flow.RequestIdle)) {
			t.Errorf("request expires at %v, %v; want it to slide with the page", a.ExpiresAt, err)
		}
		form := url.Values{"request": {"r1"}, "txn": {txn(t, page)}, "username": {ada}, "password": {password}}
		wantRedirect(t, b.post("/tenant/sign-in", form), "/tenant"+flow.ContinueURL("", "r1"))
		wantRedirect(t, b.get("/tenant/sign-in?request=r1"), "/tenant"+flow.ContinueURL("", "r1"))
		page = b.get("/tenant/sign-in?request=r1&confirm=1")
		wantPage(t, page, http.StatusOK, "Confirm it’s you", `value="`+ada+`" readonly`)
		before := b.session()
		w.clock.advance(time.Minute)
		form.Set("txn", txn(t, page))
		wantRedirect(t, b.post("/tenant/sign-in", form), "/tenant"+flow.ContinueURL("", "r1"))
		if after := b.session(); after.ID == before.ID || !after.AuthTime.After(before.AuthTime) {
			t.Errorf("after confirming: session %v, before %v; want a new one with a later AuthTime", after, before)
		}
	})
}

func TestSignInRequestRefused(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		b, other := w.browser(), w.browser()
		b.get("/sign-in")
		other.get("/sign-in")
		a := w.openRequest(b, "r1")
		finished := w.openRequest(b, "r2")
		if ok, err := w.db.FinishRequest(t.Context(), "r2", finished.SessionID, flow.Outcome{ErrorCode: "access_denied", Now: w.clock.Now()}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		wantPage(t, other.get("/sign-in?request=r1"), http.StatusForbidden)
		wantPage(t, w.browser().get("/sign-in?request=r1"), http.StatusForbidden, "cookie")
		wantPage(t, b.get("/sign-in?request=unknown"), http.StatusBadRequest, "expired")
		wantPage(t, b.get("/sign-in?request=r2"), http.StatusBadRequest)
		w.clock.advance(a.ExpiresAt.Sub(w.clock.Now()))
		wantPage(t, b.get("/sign-in?request=r1"), http.StatusBadRequest, "expired")
	})
}

func TestSL01_NewSessionID(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		w.addUser("eve@fernhill.example", false)
		b := w.browser()
		b.get("/sign-in")
		w.openRequest(b, "r1")
		before, fixed := b.session(), b.copy()
		wantRedirect(t, b.signIn("r1", ada, password), flow.ContinueURL("", "r1"))
		after := b.session()
		if after.ID == before.ID || !after.SignedIn() {
			t.Fatalf("session after sign-in = %+v, want a new id", after)
		}
		if s := fixed.session(); s != nil {
			t.Errorf("the id from before the sign-in still gives %+v, want nothing", s)
		}
		if a, err := w.db.GetRequest(t.Context(), "r1"); err != nil || a.SessionID != after.ID {
			t.Errorf("request is bound to %q, %v; want the new session", a.SessionID, err)
		}
		page := b.get("/sign-in?switch=1&request=r1")
		wantPage(t, page, http.StatusOK, "Quill of client-1")
		form := url.Values{"request": {"r1"}, "txn": {txn(t, page)}, "username": {"eve@fernhill.example"}, "password": {password}}
		wantRedirect(t, b.post("/sign-in", form), flow.ContinueURL("", "r1"))
		if a, err := w.db.GetRequest(t.Context(), "r1"); err != nil || a.SessionID != b.session().ID || b.session().Email != "eve@fernhill.example" {
			t.Errorf("after switching accounts the request is bound to %q, %v; want the session of the other account", a.SessionID, err)
		}
	})
}

func TestSL03_LoginCSRF(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		attacker, victim := w.browser(), w.browser()
		stolen := txn(t, attacker.get("/sign-in"))
		own := txn(t, victim.get("/sign-in"))
		w.openRequest(victim, "r1")
		form := func(token, request string) url.Values {
			return url.Values{"txn": {token}, "request": {request}, "username": {ada}, "password": {password}}
		}
		for _, tt := range []struct {
			name   string
			b      *browser
			form   url.Values
			header map[string]string
		}{
			{"SL-03 token of another session", victim, form(stolen, ""), nil},
			{"CS-01 no token", victim, form("", ""), nil},
			{"CS-01 token of another form", victim, form(own, "r1"), nil},
			{"CS-01 forged token", victim, form(own[:len(own)-2]+"AA", ""), nil},
			{"SL-03 no cookie", w.browser(), form(own, ""), nil},
			{"CS-02 Origin of another site", victim, form(own, ""), map[string]string{"Origin": "https://evil.example"}},
			{"CS-02 Origin null", victim, form(own, ""), map[string]string{"Origin": "null"}},
			{"CS-02 Sec-Fetch-Site", victim, form(own, ""), map[string]string{"Sec-Fetch-Site": "cross-site"}},
		} {
			before := len(w.events())
			rec := tt.b.do(http.MethodPost, "/sign-in", tt.form, tt.header)
			if rec.Code != http.StatusForbidden {
				t.Errorf("%s: status = %d, want 403", tt.name, rec.Code)
			}
			if s := tt.b.session(); s.SignedIn() || len(w.events()) != before {
				t.Errorf("%s: session = %+v, %d new events; want nothing changed", tt.name, s, len(w.events())-before)
			}
		}
		w.clock.advance(flow.RequestMax + time.Second)
		if rec := victim.post("/sign-in", form(own, "")); rec.Code != http.StatusForbidden {
			t.Errorf("CS-01 stale token: status = %d, want 403", rec.Code)
		}
		for _, method := range []string{http.MethodPut, http.MethodDelete} {
			if rec := victim.do(method, "/sign-in", form(own, ""), nil); rec.Code != http.StatusMethodNotAllowed {
				t.Errorf("CS-03 %s: status = %d, want 405", method, rec.Code)
			}
		}
		rec := victim.do(http.MethodGet, "/sign-in?"+form(own, "").Encode(), nil, map[string]string{"X-Http-Method-Override": "POST"})
		if rec.Code != http.StatusForbidden && rec.Code != http.StatusOK || victim.session().SignedIn() {
			t.Errorf("CS-03 sign-in by GET: status = %d, session %+v; want nobody signed in", rec.Code, victim.session())
		}
	})
}

func TestSignInProblems(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		w.addUser("off@fernhill.example", false)
		if _, err := w.accounts.Add(t.Context(), login.NewUser{Email: "none@fernhill.example"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.accounts.Disable(t.Context(), "off@fernhill.example", false); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name, email, password string
			status                int
			words                 string
		}{
			{"wrong password", ada, "wrong", 422, "The email address or password is not right"},
			{"SL-05 unknown account", "eve@fernhill.example", "wrong", 422, "The email address or password is not right"},
			{"no password", ada, "", 422, "There is a problem"},
			{"no address", "", password, 422, "There is a problem"},
			{"disabled, right password", "off@fernhill.example", password, 422, "Your account is switched off"},
			{"disabled, wrong password", "off@fernhill.example", "wrong", 422, "The email address or password is not right"},
			{"SL-18 no password, any password", "none@fernhill.example", password, 422, "The email address or password is not right"},
			{"SL-18 no password, empty password", "none@fernhill.example", "", 422, "There is a problem"},
			{"SL-07 1025 bytes", ada, strings.Repeat("x", 1025), 400, ""},
			{"SL-07 long address", strings.Repeat("x", 1025), password, 400, ""},
			{"SL-07 100000 code points", ada, strings.Repeat("é", 30000), 413, ""},
			{"SL-07 one MiB", ada, strings.Repeat("x", 1<<20), 413, ""},
			{"SL-07 NUL", ada, "a\x00b", 400, ""},
			{"SL-07 invalid UTF-8", ada, "a\xffb", 400, ""},
		} {
			b := w.browser()
			rec := b.signIn("", tt.email, tt.password)
			wantPage(t, rec, tt.status, tt.words)
			if b.session().SignedIn() {
				t.Errorf("%s: signed in", tt.name)
			}
			if strings.Contains(rec.Body.String(), password) {
				t.Errorf("%s: the page repeats the password", tt.name)
			}
		}
		if n := count(w.events(), "user.sign_in_failed"); n != 5 {
			t.Errorf("LG-07: %d events user.sign_in_failed, want 5: %v", n, w.events())
		}
	})
}

// SL-05: the answers for a known and an unknown account are the same, byte for
// byte but for what was typed and the form's own token.
func TestSL05_UnknownAccountLooksTheSame(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		page := func(email string) string {
			rec := w.browser().signIn("", email, "wrong")
			wantPage(t, rec, http.StatusUnprocessableEntity)
			return hiddenTxn.ReplaceAllString(strings.ReplaceAll(rec.Body.String(), email, "WHO"), "")
		}
		if known, unknown := page(ada), page("eve@fernhill.example"); known != unknown {
			t.Errorf("pages differ:\n%s\n%s", known, unknown)
		}
	})
}

func TestSL04_GuessesAreSlowedDown(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		owner := w.browser()
		wantRedirect(t, owner.signIn("", ada, password), "/account")

		// From here on every guess comes from another address.
		refused, looked, guesses := 0, 0, 0
		guess := func(email string) int {
			guesses++
			b := w.browser()
			b.ip = sprint("198.51.%d.%d", guesses/250, 1+guesses%250)
			rec := b.signIn("", email, "wrong")
			if rec.Code == http.StatusTooManyRequests && rec.Header().Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
			return rec.Code
		}
		for range 1000 {
			switch code := guess(ada); code {
			case http.StatusTooManyRequests:
				refused++
			case http.StatusUnprocessableEntity:
				looked++
			default:
				t.Fatalf("guess = %d, want 422 or 429", code)
			}
		}
		if looked != 5 || refused != 995 {
			t.Errorf("of 1000 guesses %d were looked at, %d refused; want 5 and 995", looked, refused)
		}
		for i, minutes := range []int{1, 2, 4, 8, 15, 15} {
			w.clock.advance(time.Duration(minutes)*time.Minute - time.Second)
			if code := guess(ada); code != http.StatusTooManyRequests {
				t.Errorf("a second before wait %d (%d min) is over: %d, want 429", i, minutes, code)
			}
			w.clock.advance(time.Second)
			if code := guess(ada); code != http.StatusUnprocessableEntity {
				t.Errorf("after wait %d (%d min): %d, want 422", i, minutes, code)
			}
		}
		if n := count(w.events(), "user.sign_in_failed"); n != 11 {
			t.Errorf("%d events for the guesses, want one for each that was looked at", n)
		}

		delete(owner.cookies, "__Host-sid")
		if rec := owner.signIn("", ada, password); rec.Code != http.StatusSeeOther {
			t.Errorf("the owner on a known device: %d, want 303", rec.Code)
		}
		stranger := w.browser()
		if rec := stranger.signIn("", ada, password); rec.Code != http.StatusTooManyRequests {
			t.Errorf("right password elsewhere while blocked: %d, want 429: a guesser must not learn that it was right", rec.Code)
		}
		for i := range 5 {
			if code := guess("eve@fernhill.example"); code != http.StatusUnprocessableEntity {
				t.Errorf("guess %d at an unknown account: %d, want 422", i, code)
			}
		}
		if code := guess("eve@fernhill.example"); code != http.StatusTooManyRequests {
			t.Errorf("sixth guess at an unknown account: %d, want 429 as for a known one", code)
		}
	})
}

// SL-04: a device cookie is no licence to guess.
func TestSL04_GuessesOnKnownDevice(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		b := w.browser()
		wantRedirect(t, b.signIn("", ada, password), "/account")
		delete(b.cookies, "__Host-sid")
		var codes []int
		for range 7 {
			codes = append(codes, b.signIn("", ada, "wrong").Code)
		}
		if want := []int{422, 422, 422, 422, 422, 429, 429}; !slices.Equal(codes, want) {
			t.Errorf("guesses on the known device = %v, want %v", codes, want)
		}
		if rec := w.browser().signIn("", ada, password); rec.Code != http.StatusSeeOther {
			t.Errorf("sign-in elsewhere meanwhile = %d, want 303", rec.Code)
		}
	})
}

func TestSL04_GuessesFromOneSource(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		b := w.browser()
		for i := range 50 {
			if rec := b.signIn("", sprint("u%d@fernhill.example", i), "wrong"); rec.Code != http.StatusUnprocessableEntity {
				t.Fatalf("guess %d = %d, want 422", i, rec.Code)
			}
		}
		if rec := b.signIn("", ada, "wrong"); rec.Code != http.StatusTooManyRequests {
			t.Errorf("guess 51 from one source = %d, want 429", rec.Code)
		}
		elsewhere := w.browser()
		elsewhere.ip = "203.0.113.9"
		wantRedirect(t, elsewhere.signIn("", ada, password), "/account")
	})
}

// SL-06: beyond the queue the answer is 503 with Retry-After, and those who
// waited get in.
func TestSL06_ParallelSignIns(t *testing.T) {
	slow := login.PasswordOptions{MemoryKiB: 8192, Iterations: 2, AtOnce: 1, Queue: 4}
	each(t, worldOption{passwords: slow}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		people := 100
		if testkit.Race {
			people = 25
		}
		browsers := make([]*browser, people)
		forms := make([]url.Values, people)
		for i := range people {
			browsers[i] = w.browser()
			forms[i] = url.Values{"txn": {txn(t, browsers[i].get("/sign-in"))}, "username": {ada}, "password": {password}}
		}
		codes := make([]int, people)
		var wg sync.WaitGroup
		for i := range people {
			wg.Go(func() {
				rec := browsers[i].post("/sign-in", forms[i])
				codes[i] = rec.Code
				if rec.Code == http.StatusServiceUnavailable && rec.Header().Get("Retry-After") == "" {
					t.Error("503 without Retry-After")
				}
			})
		}
		wg.Wait()
		in, busy := 0, 0
		for _, c := range codes {
			switch c {
			case http.StatusSeeOther:
				in++
			case http.StatusServiceUnavailable:
				busy++
			default:
				t.Errorf("parallel sign-in = %d, want 303 or 503", c)
			}
		}
		if in < 5 || in+busy != people {
			t.Errorf("%d signed in, %d told to wait; want at least the 5 of the queue in", in, busy)
		}
		if _, err := w.passwords.Hash(t.Context(), oauth.Secret(password)); err != nil {
			t.Errorf("Hash after the rush: %v; want every slot back", err)
		}
	})
}

// A password hash made with other parameters is replaced at the next sign-in.
func TestRehash(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		before, err := w.accounts.Get(t.Context(), ada)
		if err != nil {
			t.Fatal(err)
		}
		stronger := newWorld(t, w.db, worldOption{passwords: login.PasswordOptions{MemoryKiB: 128, Iterations: 2, AtOnce: 1}})
		wantRedirect(t, stronger.browser().signIn("", ada, password), "/account")
		after, err := w.accounts.Get(t.Context(), ada)
		if err != nil || !strings.Contains(after.PasswordHash, "$m=128,t=2,p=1$") || !strings.Contains(before.PasswordHash, "$m=64,t=1,p=1$") {
			t.Errorf("hash before %q, after %q, %v; want new parameters", before.PasswordHash, after.PasswordHash, err)
		}
		wantRedirect(t, stronger.browser().signIn("", ada, password), "/account")
		if again, err := w.accounts.Get(t.Context(), ada); err != nil || again.PasswordHash != after.PasswordHash {
			t.Errorf("hash changed again without need: %v", err)
		}
	})
}

// hangUp cancels a request after so many looks at its counters.
type hangUp struct {
	login.GuessStore
	looks  int
	cancel context.CancelFunc
}

func (h *hangUp) GetGuess(ctx context.Context, name string, now time.Time) (login.Guess, error) {
	g, err := h.GuessStore.GetGuess(ctx, name, now)
	if h.looks--; h.looks == 0 {
		h.cancel()
	}
	return g, err
}

// SL-04: whoever hangs up while the password is hashed has guessed all the same.
func TestSL04_GuessOfWhoHangsUp(t *testing.T) {
	var sender *hangUp
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		w := newWorld(t, db, worldOption{guesses: func(s login.GuessStore) login.GuessStore {
			sender = &hangUp{GuessStore: s}
			return sender
		}})
		w.addUser(ada, false)
		for range 5 {
			b := w.browser()
			form := url.Values{"txn": {txn(t, b.get("/sign-in"))}, "username": {ada}, "password": {"wrong"}}
			b.ctx, sender.cancel = context.WithCancel(t.Context())
			sender.looks = 4 // account and source, before and after the wait for a slot
			b.post("/sign-in", form)
			if b.ctx.Err() == nil {
				t.Fatal("the sender did not hang up")
			}
		}
		if n := count(w.events(), "user.sign_in_failed"); n != 5 {
			t.Errorf("%d events user.sign_in_failed, want 5", n)
		}
		if rec := w.browser().signIn("", ada, "wrong"); rec.Code != http.StatusTooManyRequests {
			t.Errorf("sixth guess = %d, want 429", rec.Code)
		}
	})
}

// The operator removes the client, or the MCP server, while somebody signs in.
func TestSignInForWhatIsGone(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		b := w.browser()
		b.get("/sign-in")
		now := w.clock.Now()
		if ok, err := w.db.CreateRequest(t.Context(), flow.AuthorizationRequest{ID: "r1", Reference: "REF", SessionID: b.session().ID,
			ClientID: "removed", Resource: "https://mcp.example", CreatedAt: now, ExpiresAt: now.Add(flow.RequestIdle)}, 100); !ok || err != nil {
			t.Fatalf("CreateRequest = %v, %v", ok, err)
		}
		wantPage(t, b.get("/sign-in?request=r1"), http.StatusBadRequest, "expired")
	})
}

// A second click sends the form again when the first answer is there already.
func TestSignInDoubleClick(t *testing.T) {
	each(t, worldOption{}, func(t *testing.T, w *world) {
		w.addUser(ada, false)
		w.addUser("eve@fernhill.example", false)
		b := w.browser()
		b.get("/sign-in")
		w.openRequest(b, "r1")
		form := url.Values{"request": {"r1"}, "txn": {txn(t, b.get("/sign-in?request=r1"))}, "username": {ada}, "password": {password}}
		old := b.copy()
		for range 2 {
			wantRedirect(t, b.post("/sign-in", form), flow.ContinueURL("", "r1"))
		}
		if n := count(w.events(), "user.signed_in"); n != 1 {
			t.Errorf("%d sign-ins, want 1", n)
		}
		wantPage(t, old.post("/sign-in", form), http.StatusForbidden)
		form.Set("username", "eve@fernhill.example")
		if wantPage(t, b.post("/sign-in", form), http.StatusForbidden); b.session().Email != ada {
			t.Errorf("session of %q, want it unchanged: CS-01", b.session().Email)
		}
	})
}
