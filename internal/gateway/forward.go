package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// errUpstream is an answer that is not passed on.
type errUpstream struct{ reason, location string }

// Error returns the reason.
func (e *errUpstream) Error() string { return e.reason }

// forwarder sends requests that were let in to the upstream.
type forwarder struct {
	upstream *upstream
	id       *identifier
	proxy    httputil.ReverseProxy // copied for each request
	prefix   string                // of paths below the resource's, cut off
	remove   map[string]bool       // Options.RemoveHeaders, in lower case
	maxBody  int64
	log      *slog.Logger
}

func newForwarder(o Options, u *upstream, id *identifier) *forwarder {
	f := &forwarder{upstream: u, id: id, maxBody: o.MaxBody, log: o.Log, remove: map[string]bool{}}
	for _, name := range o.RemoveHeaders {
		f.remove[string(appendFolded(nil, name))] = true
	}
	if r, err := url.Parse(o.ResourceServer.Resource); err == nil {
		f.prefix = strings.TrimSuffix(r.EscapedPath(), "/")
	}
	f.proxy = httputil.ReverseProxy{
		Transport:      u.transport(o.Timeout),
		FlushInterval:  -1, // every write: a JSON answer is one, a stream must not wait
		ModifyResponse: f.judge,
		BufferPool:     &buffers{},
		ErrorLog:       slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return f
}

// exchange is one request on its way.
type exchange struct {
	*forwarder
	identity http.Header
	body     []byte
}

// ServeHTTP forwards r, which passed Protect.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := resourceserver.TokenFromContext(r.Context())
	if !ok { // Protect stands before us: a mistake of ours opens nothing
		writeJSON(w, http.StatusUnauthorized, oauthBody("unauthorized", "the request did not pass the gateway's door"))
		return
	}
	if r.Method != http.MethodPost && r.Method != http.MethodGet && r.Method != http.MethodDelete {
		w.Header().Set("Allow", "GET, POST, DELETE")
		writeJSON(w, http.StatusMethodNotAllowed, oauthBody("invalid_request", "MCP uses GET, POST and DELETE"))
		return
	}
	x := &exchange{forwarder: f}
	var err error
	if x.identity, err = f.id.headers(token); err != nil {
		f.log.WarnContext(r.Context(), "the caller's identity cannot be told to the upstream", slog.Any("cause", err))
		writeJSON(w, http.StatusForbidden, oauthBody("access_denied", "your identity cannot be told to the MCP server"))
		return
	}
	if x.body, err = f.readBody(w, r); err != nil {
		refuseBody(w, err)
		return
	}
	proxy := f.proxy
	proxy.Rewrite, proxy.ErrorHandler = x.rewrite, x.fail
	proxy.ServeHTTP(w, r)
}

// maxReserved bounds what is reserved for a body before it has arrived.
const maxReserved = 64 << 10

// readBody reads all of a body: one of known length goes out as such, whatever
// framing it came in, and can be sent again on another connection when the
// upstream closed the first before it read anything.
func (f *forwarder) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.Method != http.MethodPost {
		return nil, errUnexpectedBody
	}
	if r.ContentLength > f.maxBody {
		return nil, &http.MaxBytesError{Limit: f.maxBody}
	}
	body := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), maxReserved)+bytes.MinRead))
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, f.maxBody))
	return body.Bytes(), err
}

// rewrite makes the request that goes out. It runs after everything that
// ReverseProxy does with headers, so it has the last word.
func (x *exchange) rewrite(p *httputil.ProxyRequest) {
	out := p.Out
	cleanRequest(out.Header, x.remove)
	for name, values := range x.identity {
		out.Header[name] = values
	}
	u := *x.upstream.url
	if rest := strings.TrimPrefix(p.In.URL.EscapedPath(), x.prefix); rest != "" && rest != "/" {
		u = *u.JoinPath(rest)
	}
	u.RawQuery = withoutToken(out.URL.RawQuery)
	out.URL, out.Host = &u, ""
	out.Trailer, out.TransferEncoding = nil, nil
	out.ContentLength = int64(len(x.body))
	out.Body, out.GetBody = http.NoBody, nil
	if len(x.body) > 0 {
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		out.Body, _ = out.GetBody()
	}
}

// withoutToken drops access_token, which this door never reads (RFC 6750 §2.3):
// what was not checked here is not handed on as if it were.
func withoutToken(query string) string {
	if query == "" {
		return ""
	}
	values, err := url.ParseQuery(query)
	switch {
	case err != nil:
		return ""
	case !values.Has("access_token"):
		return query
	}
	values.Del("access_token")
	return values.Encode()
}

// judge decides what of the upstream's answer reaches the client.
func (f *forwarder) judge(res *http.Response) error {
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		return &errUpstream{reason: "the upstream switches protocols, which nobody asked it for"}
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusProxyAuthRequired:
		// Passed on, it would send the client to sign in again and again.
		return &errUpstream{reason: "the upstream asks for a credential of its own"}
	case res.StatusCode >= 300 && res.StatusCode < 400 && res.Header.Get("Location") != "":
		// The client cannot follow to an address of ours, and should not past this door.
		return &errUpstream{reason: "the upstream redirects; give the gateway the address it redirects to",
			location: res.Header.Get("Location")}
	}
	cleanResponse(res.Header)
	return nil
}

// fail answers for an upstream that did not.
func (x *exchange) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // nobody is there to read it
		x.log.DebugContext(r.Context(), "request ended before its answer", slog.Any("cause", context.Cause(r.Context())))
		return
	}
	status, text := http.StatusBadGateway, "the MCP server behind this gateway cannot be reached or gave no proper answer"
	var timeout interface{ Timeout() bool }
	var bad *errUpstream
	attrs := []any{slog.String("event", "upstream.failed"), slog.String("upstream", x.upstream.name), slog.Any("cause", err)}
	switch {
	case errors.As(err, &bad):
		if bad.location != "" {
			attrs = append(attrs, slog.String("location", bad.location))
		}
	case errors.As(err, &timeout) && timeout.Timeout():
		status, text = http.StatusGatewayTimeout, "the MCP server behind this gateway did not answer in time"
	}
	x.log.WarnContext(r.Context(), "the upstream failed", attrs...)
	writeFailure(w, status, text, x.body)
}

// buffers keeps the buffers that answers are copied with.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
