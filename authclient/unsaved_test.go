package authclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"testing"
)

// heldStore notes grants that are saved without their lock.
type heldStore struct {
	brokenStore
	mu     sync.Mutex
	held   map[Key]int
	unheld int
}

func newHeldStore(s Store) *heldStore {
	return &heldStore{brokenStore: brokenStore{Store: s}, held: map[Key]int{}}
}

func (s *heldStore) Save(ctx context.Context, k Key, v []byte) error {
	err := s.brokenStore.Save(ctx, k, v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && k.Kind == KindGrant && s.held[k] == 0 {
		s.unheld++
	}
	return err
}

func (s *heldStore) Lock(ctx context.Context, k Key) (func() error, error) {
	unlock, err := s.Store.Lock(ctx, k)
	if err != nil {
		return nil, err
	}
	s.note(k, 1)
	return func() error { s.note(k, -1); return unlock() }, nil
}

func (s *heldStore) note(k Key, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[k] += n
}

func (s *heldStore) wantHeld(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unheld > 0 {
		t.Errorf("%d grants were saved without their lock", s.unheld)
	}
}

// halfRefreshed returns a client whose refreshed tokens could not be stored, another
// process with the same store, and the store of the first, in order again.
func halfRefreshed(t *testing.T) (w *world, a, b *Client, store *heldStore) {
	t.Helper()
	w, store = newWorld(t), newHeldStore(NewMemoryStore())
	a = w.client(func(o *Options) { o.Store = store })
	b = w.client(func(o *Options) { o.Store = store.Store })
	wantCall(t, a, "", http.StatusOK)
	w.advance(time600)
	w.expire()
	store.set(true)
	if _, err := call(t.Context(), a, ""); err == nil {
		t.Fatal("a token that is not stored was used")
	}
	store.set(false)
	return w, a, b, store
}

// storedRefresh is the refresh token in the store, "" for none.
func storedRefresh(t *testing.T, c *Client) string {
	t.Helper()
	p, err := c.loadPointer(t.Context())
	if err != nil || p == nil {
		return ""
	}
	g, err := c.loadGrant(t.Context(), *p)
	if err != nil || g == nil {
		t.Fatalf("the pointer leads to %v, %v", g, err)
	}
	return g.RefreshToken
}

// C6: what could not be stored is stored later, under the lock, if nobody has stored
// anything else meanwhile.
func TestC6_UnsavedGrant(t *testing.T) {
	t.Parallel()
	t.Run("nothing has changed", func(t *testing.T) {
		t.Parallel()
		w, a, _, store := halfRefreshed(t)
		wantCall(t, a, "", http.StatusOK)
		if got := storedRefresh(t, a); got != w.refreshToken() || len(w.authorizations) != 1 {
			t.Errorf("stored %q, alive %q; %d authorizations", got, w.refreshToken(), len(w.authorizations))
		}
		store.wantHeld(t)
	})
	t.Run("another process has logged in", func(t *testing.T) {
		t.Parallel()
		w, a, b, store := halfRefreshed(t)
		if err := b.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := storedRefresh(t, b)
		wantCall(t, a, "", http.StatusOK)
		if got := storedRefresh(t, b); got != want || len(w.authorizations) != 2 {
			t.Errorf("stored %q, want the login's %q; %d authorizations", got, want, len(w.authorizations))
		}
		store.wantHeld(t)
	})
	t.Run("another process has logged out", func(t *testing.T) {
		t.Parallel()
		_, a, b, store := halfRefreshed(t)
		if err := b.Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.o.Authorizer = nil
		if _, err := call(t.Context(), a, ""); !errors.Is(err, ErrLoginRequired) {
			t.Errorf("call after the logout = %v, want ErrLoginRequired", err)
		}
		if got := storedRefresh(t, b); got != "" {
			t.Errorf("the login is back: %q", got)
		}
		store.wantHeld(t)
	})
}

// TestC6_LogoutRevokesTheUnsaved: the token that lives is the one that was not stored.
func TestC6_LogoutRevokesTheUnsaved(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]struct {
		do   func(ctx context.Context, b *Client) error
		want int // revocations by either
	}{
		"nothing has changed":            {func(context.Context, *Client) error { return nil }, 1},
		"another process has logged in":  {func(ctx context.Context, b *Client) error { return b.Login(ctx) }, 2},
		"another process has logged out": {func(ctx context.Context, b *Client) error { return b.Logout(ctx) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a, b, _ := halfRefreshed(t)
			if err := meanwhile.do(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if err := a.Logout(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(w.refresh) != 0 || len(w.revocations) != meanwhile.want || storedRefresh(t, a) != "" {
				t.Errorf("alive %v after %v; stored %q", w.refresh, w.revocations, storedRefresh(t, a))
			}
		})
	}
}

// TestC6_ForgottenScopesAreSavedUnderTheLock: the tokens beside them may have been
// refreshed by somebody else.
func TestC6_ForgottenScopesAreSavedUnderTheLock(t *testing.T) {
	t.Parallel()
	w, store := newWorld(t), newHeldStore(NewMemoryStore())
	c := w.client(func(o *Options) { o.Store = store })
	wantCall(t, c, "", http.StatusOK)
	before := storedRefresh(t, c)
	w.hook("GET /authorize", func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(rw, r, q.Get("redirect_uri")+"?"+url.Values{"error": {"invalid_scope"}, "state": {q.Get("state")}, "iss": {w.as.URL}}.Encode(), http.StatusFound)
	})
	var refused *ServerError
	if err := c.Login(t.Context()); !errors.As(err, &refused) || refused.Code != "invalid_scope" {
		t.Fatalf("Login = %v", err)
	}
	store.wantHeld(t)
	if s, err := c.Status(t.Context()); err != nil || len(s.Scopes) != 0 || storedRefresh(t, c) != before {
		t.Errorf("stored %+v, %v, %q", s, err, storedRefresh(t, c))
	}
}
