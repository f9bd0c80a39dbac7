// Package gateway puts resourceserver in front of an MCP server in any language:
// it owns what is forwarded and what is not, how the upstream learns who calls,
// and what a client sees when the upstream fails. Tokens, scopes, origins and
// sessions are resourceserver's; this package never reads a token.
//
// It implements the intermediary's part of RFC 9110 §7.6 by httputil.ReverseProxy
// and hands the identity on as a JWT (RFC 7519, RFC 8725) of a key of its own.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/metadata"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// Defaults of Options.
const (
	defaultTimeout = 5 * time.Minute
	defaultMaxBody = 4 << 20
	bodyTime       = time.Minute
)

// Options configures New. The zero value of every optional field is the safe default.
type Options struct {
	// ResourceServer says which resource this is and which tokens open it.
	// Required. SessionKey, MaxBody, Log and Now are taken from the fields below.
	ResourceServer resourceserver.Options
	// RequiredScopes are needed for every request, whatever the operation.
	RequiredScopes []string
	// Upstream is the MCP endpoint that requests are forwarded to: its whole URL, or
	// unix:/path/of/socket, with :/path behind it where the endpoint is not "/".
	// Required unless Next is given.
	Upstream string
	// Next takes the place of Upstream: a handler that gets the requests which were
	// let in, with the token in their context.
	Next http.Handler
	// Identity is how the upstream learns who calls. The zero value is IdentityJWT.
	Identity Identity
	// Key signs identities and seals session ids. Nil makes one for this process.
	Key *Key
	// RemoveHeaders are names of further request headers that are not forwarded:
	// those that another proxy told the upstream who calls with.
	RemoveHeaders []string
	// Prefix also forwards what lies below the resource's path.
	Prefix bool
	// Timeout is how long the upstream may take to begin an answer. Default 5
	// minutes. A stream that has begun is not limited by it.
	Timeout time.Duration
	// MaxBody bounds a request's body, in bytes. Default 4 MiB.
	MaxBody int64
	// Log gets failures of the upstream (warning) and refused requests (debug), and
	// no token ever. Default: nothing is logged.
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Gateway is an http.Handler: the protected resource, its metadata document, and
// nothing else. It may be used concurrently.
type Gateway struct {
	path      string          // of the resource, as it is escaped
	documents map[string]bool // paths that resourceserver answers by itself
	prefix    bool
	protected http.Handler
	metadata  string          // URL of the metadata document
	upstream  *upstream       // nil with Options.Next
	stopping  context.Context // ended by Drain
	stop      context.CancelFunc
}

// New checks o and returns a Gateway. It contacts nobody.
func New(o Options) (*Gateway, error) {
	setDefaults(&o)
	key, keyErr := keyOf(o)
	if keyErr != nil {
		return nil, fmt.Errorf("gateway: %w", keyErr)
	}
	g := &Gateway{prefix: o.Prefix}
	g.stopping, g.stop = context.WithCancel(context.Background())
	next, nextErr := g.next(o, key)
	o.ResourceServer.SessionKey = key.sessionKey()
	o.ResourceServer.MaxBody, o.ResourceServer.Log, o.ResourceServer.Now = o.MaxBody, o.Log, o.Now
	rs, err := resourceserver.New(o.ResourceServer)
	if err := errors.Join(nextErr, err); err != nil {
		g.stop()
		return nil, err
	}
	if len(o.RequiredScopes) > 0 {
		next = rs.RequireScopes(o.RequiredScopes...)(next)
	}
	g.metadata = rs.MetadataURL()
	g.protected = rs.Protect(g.only(next))
	g.path, g.documents, err = places(o.ResourceServer)
	return g, err
}

func setDefaults(o *Options) {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func keyOf(o Options) (*Key, error) {
	if o.Key != nil {
		return o.Key, nil
	}
	return NewKey()
}

// next returns what stands behind the door.
func (g *Gateway) next(o Options, key *Key) (http.Handler, error) {
	switch {
	case o.Next != nil && o.Upstream != "":
		return nil, errors.New("gateway: Upstream and Next exclude one another")
	case o.Next != nil:
		return o.Next, nil
	}
	u, err := parseUpstream(o.Upstream)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	for _, name := range o.RemoveHeaders {
		if !isPlainName(name) {
			return nil, fmt.Errorf("gateway: %q is not the name of a header", name)
		}
	}
	id, err := newIdentifier(o, u, key)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.upstream = u
	return newForwarder(o, u, id), nil
}

// places returns the resource's path and those of the documents beside it.
func places(o resourceserver.Options) (string, map[string]bool, error) {
	u, err := url.Parse(o.Resource)
	if err != nil {
		return "", nil, err
	}
	own, err := metadata.ProtectedResourcePaths(o.Resource)
	if err != nil {
		return "", nil, err
	}
	legacy, err := metadata.AuthorizationServerPaths(o.Resource)
	if err != nil {
		return "", nil, err
	}
	documents := map[string]bool{}
	for _, p := range append(own, legacy...) {
		documents[p] = true
	}
	for _, root := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"} {
		documents[root], documents[root+"/"] = true, true
	}
	return max(u.EscapedPath(), "/"), documents, nil
}

// ServeHTTP serves the resource at exactly its path. Another spelling of a path is
// another path (JW-29): nobody has to know how the upstream would read it.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.documents[r.URL.Path] && !g.serves(r.URL.EscapedPath()) {
		g.notFound(w)
		return
	}
	g.protected.ServeHTTP(w, limitBodyTime(w, r))
}

// only keeps from next the paths of documents that resourceserver does not serve.
func (g *Gateway) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !g.serves(r.URL.EscapedPath()):
			g.notFound(w)
		case r.Method == http.MethodGet:
			g.stream(next, w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// stream serves what a client only listens to: it ends with the gateway, properly,
// and the client connects again.
func (g *Gateway) stream(next http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.stopping, cancel)()
	defer func() {
		// A reverse proxy aborts when its stream is cut.
		if p := recover(); p != nil && (p != http.ErrAbortHandler || g.stopping.Err() == nil) {
			panic(p)
		}
	}()
	next.ServeHTTP(w, r.WithContext(ctx))
}

func (g *Gateway) notFound(w http.ResponseWriter) {
	writeJSON(w, http.StatusNotFound, oauthBody("not_found", "there is nothing at this path; the MCP server is at "+g.path))
}

func (g *Gateway) serves(path string) bool {
	if path == g.path {
		return true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(g.path, "/")+"/")
	return ok && g.prefix && isPlainPath(rest)
}

// isPlainPath reports segments that every server reads in the same way.
func isPlainPath(rest string) bool {
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\;\x00") || plain == "" && i < len(segments)-1 {
			return false
		}
	}
	return true
}

// MetadataURL returns where clients find the metadata document.
func (g *Gateway) MetadataURL() string { return g.metadata }

// Ready reports whether the upstream takes connections.
func (g *Gateway) Ready(ctx context.Context) error {
	if g.upstream == nil {
		return nil
	}
	return g.upstream.ping(ctx)
}

// Drain ends the streams that clients listen to, which would otherwise last until
// their tokens expire; answers to calls are finished. Clients connect again.
func (g *Gateway) Drain() { g.stop() }

// limitBodyTime bounds how long a body may take to arrive. http.Server.ReadTimeout
// cannot: it would go on while a stream is answered, and end it.
func limitBodyTime(w http.ResponseWriter, r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	c := http.NewResponseController(w)
	if c.SetReadDeadline(time.Now().Add(bodyTime)) != nil { // the connection's clock
		return r
	}
	// A copy, for net/http looks at its own request's body to refuse without
	// waiting for what a client announced.
	r = r.WithContext(r.Context())
	r.Body = &timedBody{ReadCloser: r.Body, controller: c}
	return r
}

// timedBody lifts the deadline when the body has ended. After any other error it
// stays: net/http reads what is left before it answers.
type timedBody struct {
	io.ReadCloser
	controller *http.ResponseController
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.controller.SetReadDeadline(time.Time{})
	}
	return n, err
}
