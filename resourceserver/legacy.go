package resourceserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ostiary-auth/ostiary/metadata"
)

// legacyDocument answers, at this server's own origin, with the authorization
// server's metadata unchanged (M9). Clients of 2025-03-26 read no RFC 9728
// document and look here; they check no issuer. Newer ones never ask here.
type legacyDocument struct {
	issuer  string
	client  *http.Client
	refresh time.Duration // a copy older than this is fetched again
	retry   time.Duration // least time between two fetches
	limit   time.Duration // how long the last good copy is served
	now     func() time.Time
	log     *slog.Logger

	mu                     sync.Mutex
	body                   []byte
	fetchedAt, attemptedAt time.Time
	running                chan struct{} // closed when the fetch under way ends
}

// legacyPaths are where those clients ask: the root of the MCP server's origin,
// and in some versions the RFC 8414 form for its path.
func legacyPaths(resource string) (map[string]bool, error) {
	list, err := metadata.AuthorizationServerPaths(resource)
	if err != nil {
		return nil, err
	}
	const root = "/.well-known/oauth-authorization-server"
	return map[string]bool{root: true, root + "/": true, list[0]: true, list[1]: true}, nil
}

// sameOrigin reports an authorization server that lives where the resource does:
// it answers there itself, and a copy of its document would be a copy of ours.
func sameOrigin(issuer, resource string) bool {
	a, errA := url.Parse(issuer)
	b, errB := url.Parse(resource)
	return errA == nil && errB == nil && a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

func (d *legacyDocument) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		writeDocumentMethods(w, r)
		return
	}
	body := d.current(r.Context())
	if body == nil {
		writeRefusal(w, unavailable(errors.New("no copy of the authorization server's metadata")))
		return
	}
	writeDocument(w, body)
}

// current returns the document, fetched again when it is due; nil when there is
// no good copy. Who comes while there is one never waits.
func (d *legacyDocument) current(ctx context.Context) []byte {
	body, wait := d.look()
	if body != nil || wait == nil {
		return body
	}
	select {
	case <-wait:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copy()
}

func (d *legacyDocument) look() ([]byte, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	due := d.body == nil || now.Sub(d.fetchedAt) >= d.refresh
	if due && d.running == nil && (d.attemptedAt.IsZero() || now.Sub(d.attemptedAt) >= d.retry) {
		d.attemptedAt, d.running = now, make(chan struct{})
		go d.fetch(d.running)
	}
	return d.copy(), d.running
}

// copy returns the last good copy. It is called with mu held.
func (d *legacyDocument) copy() []byte {
	if d.body == nil || d.now().Sub(d.fetchedAt) >= d.limit {
		return nil
	}
	return d.body
}

// fetch outlives the request that caused it: others wait for it too.
func (d *legacyDocument) fetch(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	body, err := d.fetchDocument(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(done)
	d.running = nil
	if err != nil {
		d.log.Warn("metadata of the authorization server could not be fetched; the last copy is served",
			slog.String("event", "metadata.fetch_failed"), slog.Any("cause", err))
		return
	}
	d.body, d.fetchedAt = body, d.now()
}

// fetchDocument makes an error of a panic: it runs where no request would end with
// it, but the process (JW-31).
func (d *legacyDocument) fetchDocument(ctx context.Context) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			body, err = nil, fmt.Errorf("reading the metadata panicked: %v", p)
		}
	}()
	_, body, err = metadata.FetchAuthorizationServerDocument(ctx, d.client, d.issuer)
	return body, err
}
