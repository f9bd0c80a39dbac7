package authclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	callbackPath    = "/callback"
	loopbackTimeout = 5 * time.Minute
	closeTimeout    = 2 * time.Second
)

// Loopback opens the system's browser and listens on 127.0.0.1 for its return (RFC
// 8252 §7.3). The zero Loopback is ready to use.
type Loopback struct {
	// Open shows the URL in a browser. Default: the system's own way, without a shell.
	Open func(ctx context.Context, authorizationURL string) error
	// Path is the redirect URI's path. Default "/callback".
	Path string
	// Port is the redirect URI's port, for a client that is registered with one and a
	// server that does not ignore it (RFC 8252 §7.3). Default: one that the system
	// chooses, each time another.
	Port uint16
	// Timeout bounds how long the browser may stay away. Default 5 minutes.
	Timeout time.Duration
	// Notify, when set, is told the URL before the browser is opened, for who must
	// open it by hand.
	Notify func(authorizationURL string)
}

// Begin implements Authorizer: it listens for the answer.
func (l *Loopback) Begin(ctx context.Context) (Attempt, error) {
	return l.listen(ctx, strconv.Itoa(int(l.Port)))
}

// beginAt implements redirector: it listens where it listened before, or anywhere if
// that is taken.
func (l *Loopback) beginAt(ctx context.Context, redirectURI string) (Attempt, error) {
	u, err := url.Parse(redirectURI)
	if err != nil || u.Hostname() != loopbackHost || u.Path != l.path() || l.Port != 0 {
		return l.Begin(ctx)
	}
	a, err := l.listen(ctx, u.Port())
	if err != nil {
		return l.Begin(ctx)
	}
	return a, nil
}

// loopbackHost is an address and no name, which could lead elsewhere (RFC 8252 §8.3).
const loopbackHost = "127.0.0.1"

func (l *Loopback) path() string {
	if l.Path == "" {
		return callbackPath
	}
	return l.Path
}

func (l *Loopback) listen(ctx context.Context, port string) (Attempt, error) {
	if !strings.HasPrefix(l.path(), "/") || strings.ContainsAny(l.path(), "?#%{} ") {
		return nil, fmt.Errorf("the Path %q of Loopback is not a path", l.Path)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", net.JoinHostPort(loopbackHost, port))
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	a := &loopbackAttempt{loopback: l, listener: listener, host: listener.Addr().String(), arrived: make(chan url.Values, 1)}
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 64 << 10}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

// loopbackAttempt is a listener for one answer.
type loopbackAttempt struct {
	loopback *Loopback
	listener net.Listener
	host     string
	server   *http.Server
	arrived  chan url.Values

	mu    sync.Mutex
	state Secret // of the request that was shown; "" before
	done  bool
}

// RedirectURI implements Attempt.
func (a *loopbackAttempt) RedirectURI() string { return "http://" + a.host + a.loopback.path() }

// Authorize implements Attempt.
func (a *loopbackAttempt) Authorize(ctx context.Context, authorizationURL string) (url.Values, error) {
	u, err := parseURL("authorization URL", authorizationURL)
	if err != nil {
		return nil, err
	}
	state := u.Query().Get("state")
	if state == "" {
		return nil, errors.New("the authorization URL has no state")
	}
	a.mu.Lock()
	a.state = Secret(state)
	a.mu.Unlock()
	if err := a.show(ctx, authorizationURL); err != nil {
		return nil, err
	}
	timeout := a.loopback.Timeout
	if timeout <= 0 {
		timeout = loopbackTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case v := <-a.arrived:
		return v, nil
	case <-timer.C:
		return nil, fmt.Errorf("%w (%s)", ErrNoAnswer, timeout)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// show opens the browser. Who is told the URL can open it by hand, so a browser that
// does not start is then no failure.
func (a *loopbackAttempt) show(ctx context.Context, authorizationURL string) error {
	if a.loopback.Notify != nil {
		a.loopback.Notify(authorizationURL)
	}
	open := a.loopback.Open
	if open == nil {
		open = OpenBrowser
	}
	if err := open(ctx, authorizationURL); err != nil && a.loopback.Notify == nil {
		return fmt.Errorf("open the browser: %w", err)
	}
	return nil
}

// Close implements Attempt. The page that says that one may close it is finished first.
func (a *loopbackAttempt) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = a.server.Close()
	}
	_ = a.listener.Close() // the server may not have come to know it
	return err
}

// ServeHTTP takes one answer: a GET of the redirect URI, at this very address (so that
// no page on a name of its own reaches it), with the state of this request. Anything
// else changes nothing, so that no other page in the browser can end the login.
func (a *loopbackAttempt) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host != a.host, r.URL.Path != a.loopback.path():
		writePage(w, http.StatusNotFound, "Nothing is here", "This address waits for a login that another program began.")
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		writePage(w, http.StatusMethodNotAllowed, "Nothing is here", "This address waits for a login that another program began.")
	default:
		a.take(w, r)
	}
}

func (a *loopbackAttempt) take(w http.ResponseWriter, r *http.Request) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	a.mu.Lock()
	mine := err == nil && a.state != "" && len(v["state"]) == 1 && a.state.Equal(Secret(v.Get("state")))
	taken := mine && !a.done
	if taken {
		a.done = true
		a.arrived <- v
	}
	a.mu.Unlock()
	switch {
	case taken && v.Get("error") != "":
		writePage(w, http.StatusOK, "Not connected", "Nothing was allowed. You can close this window and go back to the program.")
	case taken:
		writePage(w, http.StatusOK, "You can close this window", "Go back to the program that opened it: it goes on by itself.")
	case mine:
		writePage(w, http.StatusGone, "This login is over", "You can close this window.")
	default:
		writePage(w, http.StatusBadRequest, "This is not the login that was begun", "Begin again in the program that you use.")
	}
}

// writePage writes a page of our words alone: nothing of the request is in it.
func writePage(w http.ResponseWriter, status int, title, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the code
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Connection", "close")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, loopbackPage, title, title, text)
}

const loopbackPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
:root { color-scheme: light dark }
body { font: 1.0625rem/1.5 system-ui, sans-serif; max-width: 30rem; margin: 20vh auto 0; padding: 0 1.5rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
</style>
<h1>%s</h1>
<p>%s</p>
</html>
`
