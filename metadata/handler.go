package metadata

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// documentMaxAge is how long a client may use a document; it is short because
// scopes_supported follows the registered resources.
const documentMaxAge = time.Minute

// HandlerOptions configures NewHandler.
type HandlerOptions struct {
	// Issuer is the issuer identifier. Required.
	Issuer string
	// Document returns the metadata to serve now. Required. When it fails, the
	// last good one is served.
	Document func(ctx context.Context) (AuthorizationServer, error)
	// Algorithms returns those of the issuer's published keys. Default ES256.
	Algorithms func() []string
	// OnError, when set, is told why Document failed.
	OnError func(ctx context.Context, err error)
}

// Handler serves an authorization server's documents at every place where
// clients look for them (A2), and answers 404 to everything else below
// /.well-known/ (A4). Its paths are those of the host, not of the issuer, so it
// stands before whatever strips the issuer's path.
type Handler struct {
	o     HandlerOptions
	paths map[string]http.Handler
}

// NewHandler returns a handler for an issuer's documents.
func NewHandler(o HandlerOptions) (*Handler, error) {
	if o.Document == nil {
		return nil, errors.New("metadata: document is required")
	}
	if o.Algorithms == nil {
		o.Algorithms = func() []string { return []string{"ES256"} }
	}
	oauthPaths, err := AuthorizationServerPaths(o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	openidPaths, err := OpenIDConfigurationPaths(o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	h := &Handler{o: o, paths: make(map[string]http.Handler)}
	h.add(oauthPaths, func(doc AuthorizationServer) any { return doc })
	h.add(openidPaths, func(doc AuthorizationServer) any { return NewOpenIDConfiguration(doc, o.Algorithms()...) })
	return h, nil
}

func (h *Handler) add(paths []string, form func(AuthorizationServer) any) {
	var last atomic.Pointer[Body]
	served := JSON(documentMaxAge, func(ctx context.Context) (Body, error) {
		doc, err := h.o.Document(ctx)
		if err != nil {
			return h.fallBack(ctx, last.Load(), err)
		}
		b, err := NewBody(form(doc))
		if err != nil {
			return h.fallBack(ctx, last.Load(), err)
		}
		last.Store(&b)
		return b, nil
	})
	for _, p := range paths {
		h.paths[p] = served
	}
}

// fallBack returns the last good body: most clients give up discovery for good
// on a 5xx (A4).
func (h *Handler) fallBack(ctx context.Context, last *Body, err error) (Body, error) {
	if h.o.OnError != nil {
		h.o.OnError(ctx, err)
	}
	if last == nil {
		return Body{}, err
	}
	return *last, nil
}

// ServeHTTP serves a document, or 404 as plain JSON.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if served, ok := h.paths[r.URL.Path]; ok {
		served.ServeHTTP(w, r)
		return
	}
	writeCORS(w)
	writeStatus(w, http.StatusNotFound, "not_found")
}

// Body is a JSON document ready to be served.
type Body struct {
	// JSON is the document.
	JSON []byte
	// ETag is its entity tag, quoted.
	ETag string
}

// NewBody encodes a document.
func NewBody(doc any) (Body, error) {
	b, err := json.Marshal(doc)
	if err != nil {
		return Body{}, fmt.Errorf("encode metadata: %w", err)
	}
	sum := sha256.Sum256(b)
	return Body{JSON: b, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}

// JSON serves what body returns: 200 application/json with an entity tag, 304
// when the client has it, cacheable by anyone for maxAge, readable by pages of
// any origin (A7) and by GET and HEAD only. When body fails the answer is 503
// with Retry-After.
func JSON(maxAge time.Duration, body func(ctx context.Context) (Body, error)) http.Handler {
	cacheControl := "public, max-age=" + strconv.Itoa(int(maxAge.Seconds()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeCORS(w)
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodOptions:
			w.WriteHeader(http.StatusNoContent)
			return
		default:
			w.Header().Set("Allow", allowMethods)
			writeStatus(w, http.StatusMethodNotAllowed, "method_not_allowed")
			return
		}
		b, err := body(r.Context())
		if err != nil {
			w.Header().Set("Retry-After", "5")
			writeStatus(w, http.StatusServiceUnavailable, "temporarily_unavailable")
			return
		}
		w.Header().Set("Cache-Control", cacheControl)
		w.Header().Set("ETag", b.ETag)
		if matchesETag(r.Header.Values("If-None-Match"), b.ETag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(b.JSON)))
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(b.JSON) // net/http drops the body of HEAD; the client may be gone
	})
}

const allowMethods = "GET, HEAD, OPTIONS"

// writeCORS writes the headers of A7, the same on every answer, so that no cache
// can mix answers with and without an Origin. Credentials are never allowed (TK-10).
func writeCORS(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", allowMethods)
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, MCP-Protocol-Version")
	h.Set("Access-Control-Max-Age", "600")
}

func writeStatus(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":%q}`, code) // the client may be gone
}

// matchesETag compares weakly, as RFC 9110 §13.1.2 wants for If-None-Match.
func matchesETag(values []string, etag string) bool {
	for _, v := range values {
		for tag := range strings.SplitSeq(v, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if slices.Contains([]string{"*", etag}, tag) {
				return true
			}
		}
	}
	return false
}
