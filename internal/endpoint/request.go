package endpoint

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/audit"
)

// referenceAlphabet has 32 characters, none of which people mistake for another.
const referenceAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"

// NewReference returns a random reference of 40 bits that a person can read to
// a help desk, like "7Q4M-2KXD". It names something in a log and protects nothing.
func NewReference() string {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // crypto/rand never fails
	ref := make([]byte, 0, 9)
	for i, b := range raw {
		if i == 4 {
			ref = append(ref, '-')
		}
		ref = append(ref, referenceAlphabet[b&31])
	}
	return string(ref)
}

// ClientIP returns the network source of r: the peer, or, when the peer is a
// trusted proxy, the last address of X-Forwarded-For that is not. From anybody
// else the header is ignored (SL-15). It is "" on a unix socket without proxy.
func ClientIP(r *http.Request, trusted []netip.Prefix) string {
	peer, ok := peerAddr(r)
	if !ok {
		return ""
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isTrusted(peer, trusted); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		peer = hop.Unmap().WithZone("")
	}
	return peer.String()
}

func peerAddr(r *http.Request) (netip.Addr, bool) {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	return ap.Addr().Unmap().WithZone(""), true
}

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	for _, p := range trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// recorder remembers what was answered, for the log and for the adapters, which
// must not write an error over an answer that has begun.
type recorder struct {
	http.ResponseWriter
	status int
	// route is the pattern that matched, "" before routing.
	route string
}

// WriteHeader records the status.
func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 && status >= 200 {
		rec.status = status
	}
	rec.ResponseWriter.WriteHeader(status)
}

// Write records an implicit 200.
func (rec *recorder) Write(b []byte) (int, error) {
	if rec.status == 0 {
		rec.status = http.StatusOK
	}
	return rec.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

func (rec *recorder) started() bool { return rec.status != 0 }

type recorderKey struct{}

// record returns the recorder of this request, making it, with a request id,
// when there is none: a handler tested without Site behaves the same.
func record(w http.ResponseWriter, r *http.Request) (*recorder, *http.Request) {
	if rec, ok := w.(*recorder); ok {
		return rec, r
	}
	if outer, ok := r.Context().Value(recorderKey{}).(*recorder); ok {
		// Something between Site and here wrapped w: write through it.
		return &recorder{ResponseWriter: w, status: outer.status, route: outer.route}, r
	}
	rec := &recorder{ResponseWriter: w, route: r.Pattern}
	ctx := context.WithValue(r.Context(), recorderKey{}, rec)
	src := audit.SourceFrom(ctx)
	if src.RequestID == "" {
		src.RequestID = NewReference()
		ctx = audit.WithSource(ctx, src)
	}
	w.Header().Set("X-Request-Id", src.RequestID)
	return rec, r.WithContext(ctx)
}

// routeOf returns the pattern that serves r, never its path: paths hold ids.
func routeOf(r *http.Request) string {
	if rec, ok := r.Context().Value(recorderKey{}).(*recorder); ok && rec.route != "" {
		return rec.route
	}
	return r.Pattern
}
