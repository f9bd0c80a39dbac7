package endpoint

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/web"
)

// maxBody is the largest body of any request, in bytes.
const maxBody = 64 << 10

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
	// requests included (rule A7); never Pages.
	CORS func(http.Handler) http.Handler
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
	r = r.WithContext(audit.WithSource(r.Context(), audit.Source{
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

// route finds the mux that knows the path. Root comes first; then, below the
// issuer's path, endpoints before pages. A path that is not clean is nobody's:
// the mux's redirect would leave the issuer's path.
func (s *site) route(w http.ResponseWriter, r *http.Request) {
	if !isClean(r.URL.Path) {
		s.notFound(w, r)
		return
	}
	if pattern, known := lookup(s.Root, r); known {
		s.hand(s.toRoot, pattern, w, r)
		return
	}
	below, ok := s.below(r)
	if !ok {
		s.notFound(w, r)
		return
	}
	if pattern, known := lookup(s.Endpoints, below); known {
		s.hand(s.toEndpoints, pattern, w, below)
		return
	}
	if pattern, known := lookup(s.Pages, below); known {
		s.hand(s.toPages, pattern, w, below)
		return
	}
	s.notFound(w, r)
}

func (s *site) hand(to http.Handler, pattern string, w http.ResponseWriter, r *http.Request) {
	if rec, ok := r.Context().Value(recorderKey{}).(*recorder); ok {
		rec.route = pattern
	}
	to.ServeHTTP(w, r)
}

func (s *site) notFound(w http.ResponseWriter, r *http.Request) {
	s.refusing(r, &PageError{Status: http.StatusNotFound,
		Page: web.Error{Case: web.CaseNotFound, Code: "there is nothing at this address"}, Err: errNoRoute}).ServeHTTP(w, r)
}

// program serves a mux of endpoints: 405 is JSON.
func (s *site) program(mux *http.ServeMux) http.Handler {
	h := s.methods(mux, s.JSON)
	if s.CORS != nil {
		h = s.CORS(h)
	}
	return h
}

// people serves the mux of pages: 405 is a page, and a POST from another
// origin is refused before its handler runs (CS-02).
func (s *site) people(mux *http.ServeMux) http.Handler {
	next := s.methods(mux, s.Page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(s.CrossSite, routeOf(r)) {
			next.ServeHTTP(w, r)
			return
		}
		if err := s.guard.Check(r); err != nil {
			s.Page(func(http.ResponseWriter, *http.Request) error {
				return newPageError(http.StatusForbidden, web.CaseForm, err)
			}).ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// methods serves mux and answers a wrong method with Allow in our own words
// (TK-01, CS-03).
func (s *site) methods(mux *http.ServeMux, adapter func(HandlerFunc) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allow := allowed(mux, r)
		if allow == "" {
			mux.ServeHTTP(w, r)
			return
		}
		adapter(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Allow", allow)
			return methodError(allow)
		}).ServeHTTP(w, r)
	})
}

var (
	errNoRoute = errors.New("no route has this path")
	errMethod  = errors.New("the route does not have this method")
)

// methodError serves both adapters: JSON reads the *oauth.Error that the page
// error wraps, Page reads the page.
func methodError(allow string) error {
	return &PageError{Status: http.StatusMethodNotAllowed, Page: web.Error{Case: web.CaseMethod},
		Err: &oauth.Error{Code: "invalid_request", Status: http.StatusMethodNotAllowed,
			Description: "use " + allow, Err: errMethod}}
}

// below returns r with the issuer's path stripped; false when it does not lie
// below that path.
func (s *site) below(r *http.Request) (*http.Request, bool) {
	if s.base == "" {
		return r, true
	}
	rest, ok := strings.CutPrefix(r.URL.Path, s.base)
	if !ok || rest != "" && rest[0] != '/' {
		return nil, false
	}
	if rest == "" {
		rest = "/"
	}
	r2 := r.Clone(r.Context())
	r2.URL.Path = rest
	r2.URL.RawPath = ""
	return r2, true
}

// lookup reports whether mux knows the path of r, be it for another method.
func lookup(mux *http.ServeMux, r *http.Request) (pattern string, known bool) {
	h, pattern := mux.Handler(r)
	if pattern != "" {
		return pattern, true
	}
	p := probe{header: http.Header{}}
	h.ServeHTTP(&p, r)
	return "", p.status == http.StatusMethodNotAllowed
}

// allowed returns the Allow value of a path that mux knows for other methods
// only, "" otherwise.
func allowed(mux *http.ServeMux, r *http.Request) string {
	h, pattern := mux.Handler(r)
	if pattern != "" {
		return ""
	}
	p := probe{header: http.Header{}}
	h.ServeHTTP(&p, r)
	return p.header.Get("Allow")
}

// probe asks the mux's own 404 and 405 handlers what they would say.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) WriteHeader(status int)      { p.status = status }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }

// misdirected applies D1 and D4: the issuer is never taken from the request, so
// a request for another name, or through a proxy nobody set up, is refused.
func (s *site) misdirected(r *http.Request) error {
	// The page that says so needs its style sheet, and static files are the same
	// for everybody.
	if strings.HasPrefix(r.URL.Path, s.base+"/static/") {
		return nil
	}
	host := canonicalHost(r.Host, s.Issuer.Scheme)
	if !slices.Contains(s.hosts, host) {
		return &PageError{Status: http.StatusMisdirectedRequest,
			Page: web.Error{Case: web.CaseMisdirected, Host: s.Issuer.String(),
				Code: "this server answers as " + s.Issuer.String() + "; open that address, or change the line issuer: or allowed_hosts: of its configuration"},
			Err: errors.New("Host header names another server")}
	}
	if s.Development && forwarded(r.Header) {
		return &PageError{Status: http.StatusMisdirectedRequest,
			Page: web.Error{Case: web.CaseMisdirected, Host: s.Issuer.String(),
				Code: "a proxy forwarded this request, but the server is in development mode; change the line issuer: of its configuration to the public https address"},
			Err: errors.New("forwarded request in development mode")}
	}
	return nil
}

func forwarded(h http.Header) bool {
	for name := range h {
		if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

// canonicalHost lowers the case and drops the scheme's default port.
func canonicalHost(host, scheme string) string {
	host = strings.ToLower(host)
	name, port, err := net.SplitHostPort(host)
	if err != nil || (scheme == "https" && port != "443") || (scheme == "http" && port != "80") {
		return host
	}
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

// isClean reports whether the mux would take the path as it is.
func isClean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	clean := path.Clean(p)
	return p == clean || p == clean+"/"
}
