package authclient

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What cannot be revoked is forgotten, and said.
func TestLogoutFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*world)
		says   string
	}{
		{name: "the server is down", says: "answered 503", change: func(w *world) { w.hook("POST /revoke", answerJSON(503, `{}`)) }},
		{name: "the server is gone", says: "did not answer", change: func(w *world) { w.as.Close() }},
		{name: "it does not revoke", says: "works until it expires", change: func(w *world) { w.locked(func() { w.server = without(w.server, "revocation_endpoint") }) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			store := NewMemoryStore()
			if err := w.client(func(o *Options) { o.Store = store }).Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			tt.change(w)
			c := w.client(func(o *Options) { o.Store = store })
			if err := c.Logout(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
			if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotFound) {
				t.Errorf("status: %v", err)
			}
		})
	}
}

// MM-13: revocation goes to the issuer of the token, wherever the server has moved.
func TestMM13_LogoutAfterAMove(t *testing.T) {
	t.Parallel()
	w, next := newWorld(t), newWorld(t)
	store := NewMemoryStore()
	if err := w.client(func(o *Options) { o.Store = store }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.locked(func() { w.resource = with(w.resource, "authorization_servers", []string{next.as.URL}) })
	if err := w.client(func(o *Options) { o.Store = store }).Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(w.revocations) != 1 || len(next.seen) != 0 {
		t.Errorf("%d revocations at the old server, requests at the new: %v", len(w.revocations), next.seen)
	}
}

// Programs that share a store ask one person once.
func TestC6_OneBrowserForAllProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	together(t, 4, func() error {
		_, err := call(t.Context(), w.client(func(o *Options) { o.Store = store }), "")
		return err
	})
	if len(w.authorizations) != 1 || len(w.registrations) != 1 || len(w.mcpRequests) != 4 {
		t.Errorf("%d authorizations, %d registrations, %d requests", len(w.authorizations), len(w.registrations), len(w.mcpRequests))
	}
	// an account of its own is another login
	other := w.client(func(o *Options) { o.Store, o.Account = store, "work" })
	wantCall(t, other, "", http.StatusOK)
	if len(w.authorizations) != 2 {
		t.Errorf("%d authorizations with two accounts", len(w.authorizations))
	}
}

// Metadata may move within its origin, a little.
func TestC9_RedirectsWithinTheOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const at = "GET /.well-known/oauth-protected-resource/mcp"
	w.hook(at, func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/doc?x", http.StatusFound) })
	w.hook("GET /doc", serveDocument(w, func() map[string]any { return w.resource }))
	wantCall(t, w.client(), "", http.StatusOK)

	for name, h := range map[string]http.HandlerFunc{
		"round and round": func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, r.URL.Path, http.StatusFound) },
		"to nowhere":      func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusFound) },
		"to a file": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Location", "file:///etc/passwd")
			rw.WriteHeader(http.StatusFound)
		},
	} {
		w.hook(at, h)
		if _, err := call(t.Context(), w.client(), ""); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, want := w.asked(at), 1+(1+maxRedirects)+1+1; got != want {
		t.Errorf("asked %d times, want %d", got, want)
	}
}

func TestC10_RegistrationRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("POST /register", answerJSON(400, `{"error":"invalid_redirect_uri","error_description":"not you"}`))
	_, err := call(t.Context(), w.client(), "")
	var refused *ServerError
	if !errors.Is(err, ErrCannotRegister) || !errors.As(err, &refused) || refused.Code != "invalid_redirect_uri" {
		t.Errorf("error %v", err)
	}
	before := w.asked("POST /register")
	if _, err := call(t.Context(), w.client(func(o *Options) { o.NoDynamicRegistration = true }), ""); !errors.Is(err, ErrCannotRegister) || w.asked("POST /register") != before {
		t.Errorf("NoDynamicRegistration: %v", err)
	}
}

// C5: an initial access token goes to its issuer alone.
func TestC5_InitialAccessToken(t *testing.T) {
	t.Parallel()
	for _, mine := range []bool{true, false} {
		w := newWorld(t)
		got := ""
		w.hook("POST /register", func(rw http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			w.serveAS(rw, r)
		})
		issuer := w.as.URL
		if !mine {
			issuer = "https://other.example"
		}
		wantCall(t, w.client(func(o *Options) {
			o.Metadata.InitialAccessToken, o.Metadata.InitialAccessTokenIssuer = "initial", issuer
		}), "", http.StatusOK)
		if mine != (got == "Bearer initial") || !mine && got != "" {
			t.Errorf("of this issuer %t: sent %q", mine, got)
		}
	}
}

// C10: a secret that has expired is not used, and the client is registered anew.
func TestC10_ExpiredSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server = with(w.server, "token_endpoint_auth_methods_supported", []string{"client_secret_basic"})
	n := 0
	w.hook("POST /register", func(rw http.ResponseWriter, r *http.Request) {
		n++
		answerJSON(201, `{"client_id":"c","client_secret":"s","client_secret_expires_at":`+strconv.FormatInt(w.clock().Add(time.Hour).Unix(), 10)+`}`)(rw, r)
	})
	c := w.client(func(o *Options) { o.Authorizer = &direct{} })
	for i, step := range []struct {
		wait time.Duration
		want int
	}{{0, 1}, {59 * time.Minute, 1}, {time.Minute, 2}} {
		w.advance(step.wait)
		if err := c.Login(t.Context()); err != nil || n != step.want {
			t.Fatalf("step %d: %v, %d registrations", i, err, n)
		}
	}
	if _, secret, ok := (&http.Request{Header: w.tokenHeaders[0]}).BasicAuth(); !ok || secret != "s" {
		t.Errorf("token request with %v", w.tokenHeaders[0])
	}
}

// C5: a server that is gone ends nothing.
func TestC5_ServerIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	w.advance(time600)
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	w.hook("POST /token", hangUp)
	for range 3 {
		var gone *UnansweredError
		if _, err := call(t.Context(), c, ""); !errors.As(err, &gone) || !strings.Contains(err.Error(), w.as.URL) {
			t.Fatalf("error %v", err)
		}
	}
	if got := w.asked("POST /token"); got != 2 {
		t.Errorf("asked %d times: there is no pause", got)
	}
	w.locked(func() { delete(w.hooks, "POST /token") })
	w.advance(maxPause)
	wantCall(t, c, "", http.StatusOK)
	if len(w.authorizations) != 1 {
		t.Errorf("%d authorizations", len(w.authorizations))
	}
}

// A store that fails is an error, and never taken for absence.
func TestStoreThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(func(o *Options) { o.Store = failingStore{} })
	if _, err := call(t.Context(), c, ""); !errors.Is(err, errStore) {
		t.Errorf("call: %v", err)
	}
	if err := c.Logout(t.Context()); !errors.Is(err, errStore) {
		t.Errorf("Logout: %v", err)
	}
	if _, err := c.Status(t.Context()); !errors.Is(err, errStore) {
		t.Errorf("Status: %v", err)
	}
	if w.n > 0 || len(w.registrations) > 0 {
		t.Error("a person was asked with nowhere to keep the answer")
	}
}

var errStore = errors.New("the keyring is locked")

type failingStore struct{}

func (failingStore) Load(context.Context, Key) ([]byte, error)       { return nil, errStore }
func (failingStore) Save(context.Context, Key, []byte) error         { return errStore }
func (failingStore) Delete(context.Context, Key) error               { return errStore }
func (failingStore) Lock(context.Context, Key) (func() error, error) { return nil, errStore }

// Whoever waits for another's turn can go away.
func TestWaitingCanBeEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	opened, finish := make(chan string, 1), make(chan struct{})
	open := func(ctx context.Context, u string) error {
		opened <- u
		<-finish
		return browse(ctx, u)
	}
	c := w.client(func(o *Options) { o.Authorizer = &Loopback{Open: open} })
	first := make(chan error, 1)
	go func() { first <- c.Login(t.Context()) }()
	<-opened
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call(ctx, c, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("who waited: %v", err)
	}
	close(finish)
	if err := <-first; err != nil {
		t.Error(err)
	}
	wantCall(t, c, "", http.StatusOK)
}

// Texts of servers are printed, as such and in quotes.
func TestTheirs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"plain": "plain", "a\x1b[31mb": `a\u{1b}[31mb`, "a\nb": `a\nb`, "a\u202eb": `a\u{202e}b`, "café": "café"} {
		if got := theirs(in); got != want {
			t.Errorf("theirs(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"plain": `"plain"`, "a\x1b[31mb": `"a\x1b[31mb"`, "a\u202eb": `"a\u202eb"`, "café": `"café"`} {
		if got := quoted(in); got != want {
			t.Errorf("quoted(%q) = %s, want %s", in, got, want)
		}
	}
	for _, got := range []string{theirs(strings.Repeat("x", 10_000)), quoted(strings.Repeat("é", 10_000))} {
		if len(got) > 2*maxTheirs {
			t.Errorf("%d bytes", len(got))
		}
	}
}

// An error that wraps several wraps no nil (package errors).
func TestRefusalsWrapNoNil(t *testing.T) {
	t.Parallel()
	for _, err := range []error{refused("a"), refusedUnless(nil, "b"), refusedUnless(ErrIssuerSlash, "c")} {
		several, ok := err.(interface{ Unwrap() []error })
		if !ok || slices.Contains(several.Unwrap(), nil) || !errors.Is(err, ErrRefused) {
			t.Errorf("%v wraps %v", err, several)
		}
	}
}
