package resourceserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrTokenExpired is the context.Cause of a request whose stream was ended
// because its token expired.
var ErrTokenExpired = errors.New("the access token has expired")

// exchange is one admitted request: itself, its context and its answer, in one
// allocation.
type exchange struct {
	ctx requestContext
	out response
	req http.Request // that the handler gets
}

func (s *Server) newExchange(w http.ResponseWriter, r *http.Request, t *Token) *exchange {
	x := &exchange{ctx: requestContext{parent: r.Context(), token: t, server: s, listens: r.Method == http.MethodGet}}
	x.out = response{w: w, r: r, ctx: &x.ctx}
	return x
}

// requestContext is the context that the handler gets. It carries the token, and
// ends with it once the answer is a stream; other answers are finished, for the
// request was admitted while the token was valid. Nothing is allocated before
// somebody waits for its end.
type requestContext struct {
	parent  context.Context
	token   *Token
	server  *Server
	listens bool // a GET is a stream from the first
	life    atomic.Pointer[lifetime]
}

// lifetime is a requestContext's own end, which it has only when somebody waits.
type lifetime struct {
	context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
}

// Deadline implements context.Context. It is the parent's: whether the token's
// expiry ends the request is not known before its answer begins.
func (c *requestContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done implements context.Context.
func (c *requestContext) Done() <-chan struct{} {
	l := c.begin()
	if c.listens {
		c.arm(l)
	}
	return l.Done()
}

// Err implements context.Context.
func (c *requestContext) Err() error { return c.current().Err() }

// Value implements context.Context.
func (c *requestContext) Value(key any) any {
	if key == (tokenKey{}) {
		return c.token
	}
	return c.current().Value(key)
}

func (c *requestContext) current() context.Context {
	if l := c.life.Load(); l != nil {
		return l.Context
	}
	return c.parent
}

// begin returns the context's own lifetime, made when it is first needed.
func (c *requestContext) begin() *lifetime {
	if l := c.life.Load(); l != nil {
		return l
	}
	l := &lifetime{}
	l.Context, l.cancel = context.WithCancelCause(c.parent)
	if !c.life.CompareAndSwap(nil, l) { // somebody else was faster
		l.cancel(context.Canceled)
	}
	return c.life.Load()
}

// arm ends l when the token expires.
func (c *requestContext) arm(l *lifetime) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ends := c.ends(); l.timer == nil && !ends.IsZero() {
		l.timer = time.AfterFunc(ends.Sub(c.server.opts.Now()), func() { l.cancel(ErrTokenExpired) })
	}
}

// follow ends the context with the token from now on.
func (c *requestContext) follow() { c.arm(c.begin()) }

// ends returns from when on a new request would be refused; zero is never.
func (c *requestContext) ends() time.Time {
	if c.token.ExpiresAt.IsZero() {
		return time.Time{}
	}
	return c.token.ExpiresAt.Add(c.server.opts.ClockSkew)
}

func (c *requestContext) expired() bool {
	ends := c.ends()
	return !ends.IsZero() && !c.server.opts.Now().Before(ends)
}

func (c *requestContext) close() {
	l := c.life.Load()
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.cancel(context.Canceled)
}

// response is the http.ResponseWriter that the handler gets. It has no Unwrap:
// who wrote past it would write past the token's expiry.
type response struct {
	w           http.ResponseWriter
	r           *http.Request // as it came, for refusals
	ctx         *requestContext
	filter      *listFilter // nil unless lists are filtered
	wroteHeader bool
	stream      bool
	dead        error // why nothing more is written
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		w.w.WriteHeader(status)
		return
	}
	if w.wroteHeader {
		return
	}
	w.wroteHeader = true
	if w.ctx.listens && w.ctx.expired() {
		w.refuseExpired()
		return
	}
	w.sealSession()
	if w.ctx.listens || mediaType(w.Header()) == eventStream {
		w.stream = true
		w.ctx.follow()
	}
	if w.filter != nil && w.filter.begin(w, status) {
		return // the filter writes it
	}
	w.w.WriteHeader(status)
}

// refuseExpired answers a stream that never began before its token expired.
func (w *response) refuseExpired() {
	w.dead = ErrTokenExpired
	clear(w.Header())
	w.ctx.server.door.allowBrowsers(w.Header(), w.r)
	w.ctx.server.refuse(w.w, w.r, invalidToken("the token has expired"))
}

// sealSession binds a session id that the handler gives out to the token.
func (w *response) sealSession() {
	if ids := w.Header()[headerSession]; len(ids) > 0 {
		w.Header().Set(headerSession, w.ctx.server.sessions.seal(w.ctx.token, ids[0]))
	}
}

const eventStream = "text/event-stream"

// mediaType returns what clients take an answer for. They look at what stands
// before the parameters and forgive these much, so nothing depends on them here.
func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// Write implements http.ResponseWriter. It fails once the token of a stream has
// expired.
func (w *response) Write(b []byte) (int, error) {
	if !w.wroteHeader {
		w.WriteHeader(http.StatusOK)
	}
	if w.dead == nil && w.stream && w.ctx.expired() {
		w.dead = ErrTokenExpired
	}
	if w.dead != nil {
		return 0, w.dead
	}
	if w.filter == nil {
		return w.w.Write(b)
	}
	if w.dead = w.filter.write(b); w.dead != nil {
		return 0, w.dead
	}
	return len(b), nil
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *response) FlushError() error {
	if !w.wroteHeader {
		w.WriteHeader(http.StatusOK)
	}
	if w.dead != nil {
		return w.dead
	}
	if w.filter != nil && !w.filter.flush() {
		return nil // held back until it is whole
	}
	return http.NewResponseController(w.w).Flush()
}

// SetReadDeadline is what http.ResponseController calls.
func (w *response) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(w.w).SetReadDeadline(t)
}

// SetWriteDeadline is what http.ResponseController calls.
func (w *response) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(w.w).SetWriteDeadline(t)
}

// EnableFullDuplex is what http.ResponseController calls.
func (w *response) EnableFullDuplex() error {
	return http.NewResponseController(w.w).EnableFullDuplex()
}

// expired reports that the stream was ended because its token expired.
func (x *exchange) expired() bool {
	return errors.Is(x.out.dead, ErrTokenExpired) || errors.Is(context.Cause(&x.ctx), ErrTokenExpired)
}

// finish ends the exchange when the handler has returned; completed is false
// when it panicked, and then nothing of what was held back goes out.
func (x *exchange) finish(completed bool) {
	w := &x.out
	if completed && !w.wroteHeader {
		w.finishHeader()
	}
	if completed && w.filter != nil && w.dead == nil && !(w.stream && w.ctx.expired()) {
		w.filter.end()
	}
	x.ctx.close()
}

// finishHeader does what net/http would leave out: a handler that wrote nothing
// has set headers all the same.
func (w *response) finishHeader() {
	if w.ctx.listens && w.ctx.expired() {
		w.wroteHeader = true
		w.refuseExpired()
		return
	}
	w.sealSession()
}
