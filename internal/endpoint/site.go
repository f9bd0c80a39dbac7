package endpoint

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
)

// maxBody is the largest body of any request, in bytes.
const maxBody = 64 << 10

// maxTime is the longest that a request may take: whatever waits longer, for the
// database or for a turn, is answered 503.
const maxTime = 8 * time.Second

// SiteOptions is everything the public listener serves. Pages and endpoints are
// two muxes with their own rules; neither may have a bare "/", which would
// swallow 405 and 404.
type SiteOptions struct {
	// Issuer is the issuer identifier; its path is stripped before Pages and
	// Endpoints are asked. Required.
	Issuer *url.URL
	// Hosts are further names, "host" or "host:port", that are answered (D1).
	Hosts []string
	// Development refuses requests that came through a proxy (D4).
	Development bool
	// TrustedProxies may say in X-Forwarded-For for whom they speak.
	TrustedProxies []netip.Prefix
	// Root serves what does not lie below the issuer's path: the well-known
	// documents. It sees the whole path. May be nil.
	Root *http.ServeMux
	// Pages are for people: cross-origin POSTs are refused. Endpoints are for
	// programs: no cookies.
	Pages, Endpoints *http.ServeMux
	// CrossSite lists patterns of Pages, spelt as registered, that other sites
	// may post to: "POST /authorize", which changes nothing by itself (AR-10).
	CrossSite []string
	// CORS, when set, wraps Root and Endpoints, their errors and their preflight
	// requests included, for the methods that the path has (rule A7); never Pages.
	CORS func(next http.Handler, methods ...string) http.Handler
	// SameOrigin lists patterns of Endpoints, spelt as registered, that CORS leaves
	// out: endpoints that no browser asks.
	SameOrigin []string
}

// site is the handler made of SiteOptions.
type site struct {
	*Edge
	SiteOptions
	hosts       []string
	base        string
	guard       *http.CrossOriginProtection
	toRoot      http.Handler
	toPages     http.Handler
	toEndpoints http.Handler
}

// Site returns the handler of the public listener. Around every request it puts
// a request id, the network source, a log line, panic recovery, the Host check
// (D1), and a limit on the body.
func (e *Edge) Site(o SiteOptions) http.Handler {
	s := &site{Edge: e, SiteOptions: o, base: strings.TrimSuffix(o.Issuer.Path, "/")}
	s.hosts = []string{canonicalHost(o.Issuer.Host, o.Issuer.Scheme)}
	for _, h := range o.Hosts {
		s.hosts = append(s.hosts, canonicalHost(h, o.Issuer.Scheme))
	}
	for _, mux := range []**http.ServeMux{&s.Root, &s.Pages, &s.Endpoints} {
		if *mux == nil {
			*mux = http.NewServeMux()
		}
	}
	s.guard = http.NewCrossOriginProtection()
	s.toRoot = s.program(s.Root)
	s.toEndpoints = s.program(s.Endpoints)
	s.toPages = s.people(s.Pages)
	return http.HandlerFunc(s.serve)
}

// serve surrounds the request with what every request gets.
func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	start := s.now()
	// a database that hangs is an outage, and clients wait 10 s at most (A21, A36)
	ctx, cancel := context.WithTimeout(r.Context(), maxTime)
	defer cancel()
	r = r.WithContext(audit.WithSource(ctx, audit.Source{
		IP: ClientIP(r, s.TrustedProxies), RequestID: NewReference()}))
	rec, r := record(w, r)
	defer func() {
		s.log.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("method", r.Method), slog.String("route", rec.route), slog.Int("status", rec.status),
			slog.Float64("duration_ms", float64(s.now().Sub(start).Microseconds())/1000),
			slog.String("ip", audit.SourceFrom(r.Context()).IP))
	}()
	if s.Issuer.Scheme == "https" {
		rec.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	if len(r.TransferEncoding) > 0 {
		// RFC 9112 §6.1: a message with Content-Length beside Transfer-Encoding ends
		// its connection; net/http hides which one had both, so each of them does (TK-12)
		rec.Header().Set("Connection", "close")
	}
	r.Body = http.MaxBytesReader(rec, r.Body, maxBody)
	handler := s.recovering(http.HandlerFunc(s.route))
	if err := s.misdirected(r); err != nil {
		handler = s.refusing(r, err)
	}
	handler.ServeHTTP(rec, r)
}

// recovering answers a panic of anything that is no adapter of ours (DO-06).
func (s *site) recovering(next http.Handler) http.Handler {
	return s.Page(func(w http.ResponseWriter, r *http.Request) error {
		// The adapter's defaults are for its own error page.
		w.Header().Del("Cache-Control")
		next.ServeHTTP(w, r)
		return nil
	})
}

// refusing answers a browser with a page and a program with JSON.
func (s *site) refusing(r *http.Request, err error) http.Handler {
	fail := func(http.ResponseWriter, *http.Request) error { return err }
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		return s.Page(fail)
	}
	return s.JSON(fail)
}
