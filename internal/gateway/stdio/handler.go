package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	modernVersion = "2026-07-28"

	codeSessionNotFound = -32001 // as the SDKs answer it
	codeUnavailable     = -32000
)

// failure is an error answer of the bridge itself.
type failure struct {
	status int
	rpc    jsonrpc.Error
	retry  time.Duration // when to try again, if that is known
}

func (f *failure) Error() string { return f.rpc.Message }

func refuse(status int, code int64, message string) *failure {
	return &failure{status: status, rpc: jsonrpc.Error{Code: code, Message: message}}
}

var errNoSession = refuse(http.StatusNotFound, codeSessionNotFound, "no session of yours has this id; begin a new one")

// ServeHTTP serves the Streamable HTTP transport to requests that passed Protect;
// others get 401.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := resourceserver.TokenFromContext(r.Context())
	if !ok {
		b.fail(w, refuse(http.StatusUnauthorized, codeUnavailable, "the request has not passed the middleware"), nil)
		return
	}
	version := r.Header.Get(headerVersion)
	modern := isModern(version)
	switch {
	case version != "" && !isVersion(version):
		b.fail(w, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the header MCP-Protocol-Version is not a revision of the protocol"), nil)
	case r.Method == http.MethodPost:
		b.post(w, r, token, modern)
	case r.Method == http.MethodGet && !modern:
		b.get(w, r, token)
	case r.Method == http.MethodDelete && !modern:
		b.delete(w, r, token)
	default:
		w.Header().Set("Allow", map[bool]string{true: "POST", false: "GET, POST, DELETE"}[modern])
		b.fail(w, refuse(http.StatusMethodNotAllowed, jsonrpc.CodeInvalidRequest, "this method is not served"), nil)
	}
}

// delete ends a session.
func (b *Bridge) delete(w http.ResponseWriter, r *http.Request, t *resourceserver.Token) {
	s, err := b.sessionOf(r, t)
	if err != nil {
		b.fail(w, err, nil)
		return
	}
	defer b.release(s)
	s.end("its client has ended the session")
	w.WriteHeader(http.StatusNoContent)
}

// sessionOf returns the session that r names, which the caller releases.
func (b *Bridge) sessionOf(r *http.Request, t *resourceserver.Token) (*session, error) {
	id := r.Header.Get(headerSession)
	if id == "" {
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the header Mcp-Session-Id is missing; a session begins with initialize")
	}
	if s := b.find(t, id); s != nil {
		return s, nil
	}
	return nil, errNoSession
}

// get opens the stream for what belongs to no request.
func (b *Bridge) get(w http.ResponseWriter, r *http.Request, t *resourceserver.Token) {
	if !accepts(r, "text/event-stream") {
		b.fail(w, refuse(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must have text/event-stream"), nil)
		return
	}
	s, err := b.sessionOf(r, t)
	if err != nil {
		b.fail(w, err, nil)
		return
	}
	defer b.release(s)
	ex := newExchange()
	defer s.unregister(ex)
	a := &answer{w: w}
	for _, raw := range append([][]byte{nil}, s.listen(ex)...) { // nil: the header goes out at once
		if a.event(raw) != nil {
			return
		}
	}
	a.follow(r.Context(), ex, s.gone, b.heartbeat)
}

// post passes on what a client says, and answers with what the server says to it.
func (b *Bridge) post(w http.ResponseWriter, r *http.Request, t *resourceserver.Token, modern bool) {
	list, batch, err := b.read(w, r)
	if err != nil {
		b.fail(w, err, nil)
		return
	}
	p := &posting{answer: answer{w: w}, bridge: b, list: list, batch: batch, modern: modern}
	first := list[0]
	begins := !batch && first.isCall() && first.request().Method == methodInitialize
	switch {
	case modern:
		if err = checkModern(r.Header, list, batch); err == nil {
			p.session, err = b.openShared(r.Context(), t)
		}
	case begins && r.Header.Get(headerSession) == "":
		if p.session, err = b.open(r.Context(), t); err == nil {
			p.begins = true
		}
	default:
		p.session, err = b.sessionOf(r, t)
	}
	if err != nil {
		b.fail(w, b.explain(r.Context(), err, r.Header.Get(headerVersion)), first.top["id"])
		return
	}
	defer b.release(p.session)
	p.serve(r.Context())
}

// read returns the messages of the body.
func (b *Bridge) read(w http.ResponseWriter, r *http.Request) ([]message, bool, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, false, refuse(http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json")
	}
	if !accepts(r, "application/json") || !accepts(r, "text/event-stream") {
		return nil, false, refuse(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must have application/json and text/event-stream")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, b.opts.MaxMessage))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, false, refuse(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, "the body is too large")
	}
	if err != nil {
		return nil, false, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the body could not be read")
	}
	list, batch, err := readMessages(body)
	if err != nil {
		return nil, false, refuse(http.StatusBadRequest, jsonrpc.CodeParseError, err.Error())
	}
	return list, batch, nil
}

func accepts(r *http.Request, kind string) bool {
	family, _, _ := strings.Cut(kind, "/")
	for _, value := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case kind, family + "/*", "*/*":
				return true
			}
		}
	}
	return false
}

// explain turns what went wrong before the child was asked into an answer.
func (b *Bridge) explain(ctx context.Context, err error, version string) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, errLegacy), errors.Is(err, errUnclear):
		f = refuse(http.StatusBadRequest, mcp.CodeUnsupportedProtocolVersion, err.Error())
		f.rpc.Data, _ = json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: legacyVersions, Requested: version})
		return f
	case errors.Is(err, errFull), errors.Is(err, errSubjectFull), errors.Is(err, errClosed), errors.Is(err, errTooManyCalls),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refuse(http.StatusServiceUnavailable, codeUnavailable, err.Error())
	case errors.Is(err, errDuplicate):
		return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, err.Error())
	}
	b.opts.Log.ErrorContext(ctx, "MCP server could not be started", slog.Any("cause", err))
	return refuse(http.StatusBadGateway, jsonrpc.CodeInternalError, "the MCP server could not be started")
}

// fail writes err as a JSON-RPC error to the message with this id.
func (b *Bridge) fail(w http.ResponseWriter, err error, id json.RawMessage) {
	var f *failure
	if !errors.As(err, &f) {
		f = refuse(http.StatusInternalServerError, jsonrpc.CodeInternalError, "the request could not be served")
	}
	switch {
	case f.retry > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retry.Seconds()))))
	case f.status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	}
	writeJSON(w, f.status, rpcError(id, &f.rpc))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// answer is the HTTP answer, an event stream once there is an event.
type answer struct {
	w      http.ResponseWriter
	stream bool
}

const writeTimeout = time.Minute // for one message; a client that takes longer is gone

// event writes a message, or a comment without one.
func (a *answer) event(raw []byte) error {
	rc := http.NewResponseController(a.w)
	if !a.stream {
		a.stream = true
		h := a.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store, no-transform")
		h.Set("X-Accel-Buffering", "no") // nginx would collect events otherwise
		a.w.WriteHeader(http.StatusOK)
	}
	line := append(append([]byte("event: message\ndata: "), raw...), '\n', '\n')
	if raw == nil {
		line = []byte(": \n\n")
	}
	_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	if _, err := a.w.Write(line); err != nil {
		return err
	}
	return rc.Flush()
}

// follow writes what ex gets until the stream, the session or the request ends.
func (a *answer) follow(ctx context.Context, ex *exchange, gone <-chan struct{}, heartbeat time.Duration) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var raw []byte
		select {
		case e := <-ex.out:
			raw = e.raw
		case <-beat.C:
		case <-ex.gone:
			return
		case <-gone:
			return
		case <-ctx.Done():
			return
		}
		if a.event(raw) != nil {
			return
		}
	}
}
