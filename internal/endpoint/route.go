package endpoint

import (
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/web"
)

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
	if s.CORS == nil {
		return h
	}
	read := []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	reading := s.CORS(h, read...)
	writing := s.CORS(h, append(slices.Clone(read), http.MethodPost)...)
	managing := s.CORS(h, append(slices.Clone(read), http.MethodPut, http.MethodDelete)...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case slices.Contains(s.SameOrigin, patternOf(mux, r, http.MethodPost)):
			h.ServeHTTP(w, r)
		case takes(mux, r, http.MethodPost):
			writing.ServeHTTP(w, r)
		case takes(mux, r, http.MethodPut):
			managing.ServeHTTP(w, r)
		default:
			reading.ServeHTTP(w, r)
		}
	})
}

// takes reports whether the path of r has a route for the method. A route
// without a method is a document, which is only read.
func takes(mux *http.ServeMux, r *http.Request, method string) bool {
	return strings.HasPrefix(patternOf(mux, r, method), method+" ")
}

// patternOf returns the pattern that serves the path of r by method, "" for none.
func patternOf(mux *http.ServeMux, r *http.Request, method string) string {
	as := r.WithContext(r.Context())
	as.Method = method
	_, pattern := mux.Handler(as)
	return pattern
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

// isClean reports whether the mux would take the path as it is.
func isClean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	clean := path.Clean(p)
	return p == clean || p == clean+"/"
}
