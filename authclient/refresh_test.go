package authclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const time600 = 600 * time.Second

func TestC6_OneRefreshForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	var clients []*Client
	for range 4 {
		clients = append(clients, w.client(func(o *Options) { o.Store = store }))
	}
	wantCall(t, clients[0], "", http.StatusOK)
	for round := range 3 {
		w.advance(time600)
		w.expire()
		var wg sync.WaitGroup
		for _, c := range clients {
			for range 3 {
				wg.Go(func() {
					if got, err := call(t.Context(), c, ""); err != nil || got != http.StatusOK {
						t.Errorf("call: %d, %v", got, err)
					}
				})
			}
		}
		wg.Wait()
		if got := len(w.tokens) - 1; got != round+1 {
			t.Fatalf("round %d: %d refreshes", round, got)
		}
	}
	if len(w.authorizations) != 1 {
		t.Errorf("%d authorizations", len(w.authorizations))
	}
}

// The server ends a token before its time: the first 401 refreshes, all others wait.
func TestC6_RefusedTokenIsRefreshedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	w.expire()
	together(t, 6, func() error {
		got, err := call(t.Context(), c, "")
		if err == nil && got != http.StatusOK {
			err = errors.New(http.StatusText(got))
		}
		return err
	})
	if len(w.tokens) != 2 || len(w.authorizations) != 1 {
		t.Errorf("%d token requests, %d authorizations", len(w.tokens), len(w.authorizations))
	}
}

// brokenStore fails to save grants while broken.
type brokenStore struct {
	Store
	mu     sync.Mutex
	broken bool
	saved  []string
}

func (s *brokenStore) Save(ctx context.Context, k Key, v []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken && k.Kind == KindGrant {
		return errors.New("the disk is full")
	}
	s.saved = append(s.saved, string(v))
	return s.Store.Save(ctx, k, v)
}

func (s *brokenStore) set(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// C6: a rotated token that is not on disk is not used, and not lost.
func TestC6_RotatedTokenIsSavedBeforeUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := &brokenStore{Store: NewMemoryStore()}
	c := w.client(func(o *Options) { o.Store = store })
	wantCall(t, c, "", http.StatusOK)
	w.advance(time600)
	w.expire()
	store.set(true)
	for range 2 {
		if _, err := call(t.Context(), c, ""); err == nil || !strings.Contains(err.Error(), "disk is full") {
			t.Fatalf("call with a broken store: %v", err)
		}
	}
	if len(w.tokens) != 2 || len(w.mcpRequests) != 1 {
		t.Fatalf("%d token requests, %d requests", len(w.tokens), len(w.mcpRequests))
	}
	store.set(false)
	wantCall(t, c, "", http.StatusOK)
	if len(w.tokens) != 2 || len(w.authorizations) != 1 {
		t.Errorf("%d token requests, %d authorizations", len(w.tokens), len(w.authorizations))
	}
	if last := store.saved[len(store.saved)-1]; !strings.Contains(last, w.refreshToken()) {
		t.Errorf("the store has %s", last)
	}
}

// refreshToken is the only live one.
func (w *world) refreshToken() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for token := range w.refresh {
		return token
	}
	return ""
}

// C6: the end of the request that began a refresh does not interrupt it.
func TestC6_RefreshOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	c := w.client(func(o *Options) { o.Store = store })
	wantCall(t, c, "", http.StatusOK)
	w.advance(time600)
	ctx, cancel := context.WithCancel(t.Context())
	w.hook("POST /token", func(rw http.ResponseWriter, r *http.Request) {
		cancel()
		w.serveAS(rw, r)
	})
	if _, err := call(ctx, c, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	wantCall(t, c, "", http.StatusOK)
	if len(w.authorizations) != 1 || len(w.tokens) != 2 {
		t.Errorf("%d authorizations, %d token requests", len(w.authorizations), len(w.tokens))
	}
}

func TestC5_RefusedRefresh(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		answer         http.HandlerFunc
		wantErr        bool
		authorizations int
		registrations  int
		tokenRequests  int // after two calls
	}{
		// the third asks whether the client is known still
		{name: "invalid_grant drops tokens only", answer: answerJSON(400, `{"error":"invalid_grant"}`), authorizations: 2, registrations: 1, tokenRequests: 4},
		{name: "invalid_client registers again", answer: answerJSON(401, `{"error":"invalid_client"}`), authorizations: 2, registrations: 2, tokenRequests: 3},
		{name: "unauthorized_client too", answer: answerJSON(400, `{"error":"unauthorized_client"}`), authorizations: 2, registrations: 2, tokenRequests: 3},
		{name: "another refusal asks the person", answer: answerJSON(400, `{"error":"invalid_target"}`), authorizations: 2, registrations: 1, tokenRequests: 3},
		{name: "503 keeps the tokens and backs off", answer: answerJSON(503, `busy`), wantErr: true, authorizations: 1, registrations: 1, tokenRequests: 2},
		{name: "500 too", answer: answerJSON(500, `<html>`), wantErr: true, authorizations: 1, registrations: 1, tokenRequests: 2},
		{name: "429 too", answer: answerJSON(429, `{"error":"slow"}`), wantErr: true, authorizations: 1, registrations: 1, tokenRequests: 2},
		{name: "temporarily_unavailable too", answer: answerJSON(400, `{"error":"temporarily_unavailable"}`), wantErr: true, authorizations: 1, registrations: 1, tokenRequests: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.client(func(o *Options) { o.Authorizer = &direct{} })
			wantCall(t, c, "", http.StatusOK)
			w.advance(time600)
			w.expire()
			w.hook("POST /token", func(rw http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				if r.PostForm.Get("grant_type") != "refresh_token" {
					w.serveAS(rw, r)
					return
				}
				w.locked(func() { w.tokens = append(w.tokens, r.PostForm) })
				tt.answer(rw, r)
			})
			for range 2 {
				if got, err := call(t.Context(), c, ""); (err != nil) != tt.wantErr || err == nil && got != http.StatusOK {
					t.Fatalf("call: %d, %v", got, err)
				}
			}
			if len(w.authorizations) != tt.authorizations || len(w.registrations) != tt.registrations || len(w.tokens) != tt.tokenRequests {
				t.Errorf("%d authorizations, %d registrations, %d token requests", len(w.authorizations), len(w.registrations), len(w.tokens))
			}
		})
	}
}

// C6: before a login is given up the store is read again.
func TestC6_InvalidGrantReadsTheStoreAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	c := w.client(func(o *Options) { o.Store = store })
	wantCall(t, c, "", http.StatusOK)
	g := *c.session.current()
	w.advance(time600)
	w.expire()
	// a program that does not know our lock was faster
	w.hook("POST /token", func(rw http.ResponseWriter, r *http.Request) {
		w.locked(func() { w.access["theirs"] = []string{"read"} })
		g.AccessToken, g.RefreshToken, g.Expiry = "theirs", "their-refresh", w.clock().Add(time.Hour)
		if err := save(r.Context(), store, c.grantKey(c.pointerOf(&g)), &g); err != nil {
			t.Error(err)
		}
		answerJSON(400, `{"error":"invalid_grant"}`)(rw, r)
	})
	wantCall(t, c, "", http.StatusOK)
	if len(w.authorizations) != 1 || c.session.current().AccessToken != "theirs" {
		t.Errorf("%d authorizations, token %q", len(w.authorizations), c.session.current().AccessToken)
	}
}

func TestC5_RetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	w.advance(time600)
	w.expire()
	w.hook("POST /token", answerJSON(503, `{}`, "Retry-After", "30"))
	asked := func() int { return w.asked("POST /token") - 1 }
	for _, step := range []struct {
		wait time.Duration
		want int
	}{{0, 1}, {29 * time.Second, 1}, {time.Second, 2}, {10 * time.Second, 2}} {
		w.advance(step.wait)
		_, err := call(t.Context(), c, "")
		var refused *ServerError
		if !errors.As(err, &refused) || refused.RetryAfter != 30*time.Second || asked() != step.want {
			t.Fatalf("after %v: %d requests, %v", step.wait, asked(), err)
		}
	}
	w.locked(func() { delete(w.hooks, "POST /token") })
	w.advance(time.Minute)
	wantCall(t, c, "", http.StatusOK)
	if len(w.authorizations) != 1 {
		t.Errorf("%d authorizations", len(w.authorizations))
	}
}

// A token that lives is used while the server that would refresh it is down.
func TestC5_OutageWhileTheTokenLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	w.advance(time600 - 5*time.Second)
	w.hook("POST /token", answerJSON(503, `{}`))
	wantCall(t, c, "", http.StatusOK)
	if got := w.asked("POST /token"); got != 2 {
		t.Errorf("%d token requests: it was not tried", got)
	}
}

// A server that does not rotate sends no refresh token: the old one stays.
func TestC6_NoRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	first := w.refreshToken()
	w.hook("POST /token", func(rw http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tokens = append(w.tokens, r.PostForm)
		w.access["same"] = []string{"read"}
		answerJSON(200, `{"access_token":"same","token_type":"Bearer","expires_in":600}`)(rw, r)
	})
	for range 2 {
		w.advance(time600)
		wantCall(t, c, "", http.StatusOK)
		if got := w.tokens[len(w.tokens)-1].Get("refresh_token"); got != first {
			t.Errorf("refresh_token %q, want %q", got, first)
		}
	}
	// the scopes that were granted are known still
	wantCall(t, c, "read", http.StatusOK)
}

func TestC5_StaleRegistrationAtCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	c := w.client(func(o *Options) { o.Store, o.Authorizer = store, &direct{} })
	wantCall(t, c, "", http.StatusOK)
	refuse := true
	w.hook("POST /token", func(rw http.ResponseWriter, r *http.Request) {
		if w.locked(func() {}); refuse {
			refuse = false
			answerJSON(401, `{"error":"invalid_client"}`)(rw, r)
			return
		}
		w.serveAS(rw, r)
	})
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(w.registrations) != 2 || len(w.authorizations) != 3 {
		t.Errorf("%d registrations, %d authorizations", len(w.registrations), len(w.authorizations))
	}
	// a registration that has just been made is not made again
	w.hook("POST /token", answerJSON(401, `{"error":"invalid_client"}`))
	fresh := w.client()
	if err := fresh.Login(t.Context()); err == nil || len(w.registrations) != 3 {
		t.Errorf("%v, %d registrations", err, len(w.registrations))
	}
}

// A client of the caller's that the server refuses keeps its tokens: its secret is
// wrong, and a login would not mend it.
func TestC5_RegisteredClientRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(func(o *Options) {
		o.Registered = []RegisteredClient{{Issuer: w.as.URL, ClientID: "known", ClientSecret: "s"}}
	})
	wantCall(t, c, "", http.StatusOK)
	w.advance(time600)
	w.hook("POST /token", answerJSON(401, `{"error":"invalid_client"}`))
	for range 2 {
		var refused *ServerError
		if _, err := call(t.Context(), c, ""); !errors.As(err, &refused) || refused.Code != "invalid_client" {
			t.Fatalf("error %v", err)
		}
	}
	w.locked(func() { delete(w.hooks, "POST /token") })
	w.advance(time.Minute)
	wantCall(t, c, "", http.StatusOK)
	if len(w.authorizations) != 1 {
		t.Errorf("%d authorizations", len(w.authorizations))
	}
}

// A person who does not come back, because the server does not know the client any
// more and could only show a page, is not asked twice; the next login registers.
func TestC5_StaleRegistrationAtAuthorize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lost := false
	c := w.client(func(o *Options) {
		o.Authorizer = &direct{answer: func(*url.URL) error {
			if lost {
				return ErrNoAnswer
			}
			return nil
		}}
	})
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost = true
	if err := c.Login(t.Context()); !errors.Is(err, ErrNoAnswer) || len(w.authorizations) != 2 || len(w.registrations) != 1 {
		t.Fatalf("%v, %d authorizations, %d registrations", err, len(w.authorizations), len(w.registrations))
	}
	lost = false
	if err := c.Login(t.Context()); err != nil || len(w.registrations) != 2 {
		t.Errorf("%v, %d registrations", err, len(w.registrations))
	}
}

// A client that the server has removed is registered anew before the person is asked:
// the server could only show them a page.
func TestC5_RemovedRegistration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		answer        http.HandlerFunc // to a refresh token that nobody has
		registrations int
	}{
		{"removed", answerJSON(401, `{"error":"invalid_client"}`), 2},
		{"known", answerJSON(400, `{"error":"invalid_grant"}`), 1},
		{"no refresh tokens here", answerJSON(400, `{"error":"unauthorized_client"}`), 1},
		{"an outage", answerJSON(503, ``), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			store := NewMemoryStore()
			login := func() {
				t.Helper()
				if err := w.client(func(o *Options) { o.Store, o.Authorizer = store, &direct{} }).Login(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			login()
			w.hook("POST /token", func(rw http.ResponseWriter, r *http.Request) {
				if r.FormValue("grant_type") == "refresh_token" {
					tt.answer(rw, r)
					return
				}
				w.serveAS(rw, r)
			})
			login()
			if len(w.registrations) != tt.registrations || len(w.authorizations) != 2 {
				t.Errorf("%d registrations, %d authorizations", len(w.registrations), len(w.authorizations))
			}
			for _, asked := range w.tokens {
				if asked.Get("grant_type") == "refresh_token" && w.refresh[asked.Get("refresh_token")] != nil {
					t.Error("the question used a refresh token of somebody's")
				}
			}
		})
	}
}

// C5: an entry under the wrong key is not believed.
func TestC5_MisplacedEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	c := w.client(func(o *Options) { o.Store = store })
	p := pointer{Issuer: w.as.URL, Resource: w.url(), ClientID: "c"}
	g := &grant{Issuer: "https://other.example", Resource: w.url(), ClientID: "c", AccessToken: "stolen", TokenType: typeBearer}
	if err := errors.Join(save(t.Context(), store, c.serverKey(), p), save(t.Context(), store, c.grantKey(p), g)); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t.Context(), c, ""); err == nil || !strings.Contains(err.Error(), "of another authorization server") {
		t.Errorf("error %v", err)
	}
}
