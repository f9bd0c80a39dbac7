package endpoint_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// newSite returns a site with one route of each kind.
func newSite(t testing.TB, issuer string, change func(*endpoint.SiteOptions)) (http.Handler, *bytes.Buffer) {
	t.Helper()
	edge, log := newEdge(t, issuer)
	u, err := url.Parse(issuer)
	if err != nil {
		t.Fatal(err)
	}
	say := func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.WriteString(w, r.Method+" "+r.URL.Path+" "+audit.SourceFrom(r.Context()).IP)
		return err
	}
	root, pages, endpoints := http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	root.Handle("GET /.well-known/oauth-authorization-server/tenant", edge.JSON(say))
	pages.Handle("GET /consent", edge.Page(say))
	pages.Handle("POST /consent", edge.Page(say))
	pages.Handle("POST /authorize", edge.Page(say))
	pages.Handle("GET /panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	pages.Handle("GET /return/{once}", edge.Page(say))
	endpoints.Handle("POST /token", edge.JSON(func(w http.ResponseWriter, r *http.Request) error {
		params, err := oauth.FormParams(r)
		if err != nil {
			return err
		}
		return endpoint.WriteJSON(w, 200, params)
	}))
	o := endpoint.SiteOptions{Issuer: u, Root: root, Pages: pages, Endpoints: endpoints, CrossSite: []string{"POST /authorize"}}
	if change != nil {
		change(&o)
	}
	return edge.Site(o), log
}

func send(h http.Handler, method, target string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func header(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Add(pairs[i], pairs[i+1])
		}
	}
}

func TestRouting(t *testing.T) {
	t.Parallel()
	h, _ := newSite(t, "https://id.example/tenant", nil)
	const root = "https://id.example"
	for _, tt := range []struct {
		name, method, target string
		status               int
		want, allow          string
	}{
		{"page below the issuer's path", "GET", root + "/tenant/consent", 200, "GET /consent", ""},
		{"HEAD is GET", "HEAD", root + "/tenant/consent", 200, "", ""},
		{"page outside the issuer's path", "GET", root + "/consent", 404, "Page not found", ""},
		{"prefix is not a path segment", "GET", root + "/tenants/consent", 404, "Page not found", ""},
		{"well-known at the root", "GET", root + "/.well-known/oauth-authorization-server/tenant", 200, "GET /.well-known", ""},
		{"TK-01 GET /token", "GET", root + "/tenant/token?code=abc", 405, `{"error":"invalid_request","error_description":"use POST"}`, "POST"},
		{"CS-03 DELETE /consent", "DELETE", root + "/tenant/consent", 405, "can’t be used like that", "GET, HEAD, POST"},
		{"CS-03 GET of a POST page", "GET", root + "/tenant/authorize", 405, "can’t be used like that", "POST"},
		{"unclean path is nobody's", "GET", root + "/tenant//consent", 404, "Page not found", ""},
		{"dots are nobody's", "GET", root + "/tenant/x/../consent", 404, "Page not found", ""},
		{"DO-06 panic of a bare handler", "GET", root + "/tenant/panic", 500, "Something went wrong here", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := send(h, tt.method, tt.target, header("Accept", "text/html"))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("got %d, want %d with %q:\n%s", w.Code, tt.status, tt.want, w.Body)
			}
			if got := w.Header().Get("Allow"); got != tt.allow {
				t.Errorf("Allow = %q, want %q", got, tt.allow)
			}
			if w.Header().Get("Strict-Transport-Security") == "" {
				t.Error("no Strict-Transport-Security on https")
			}
			if strings.Contains(w.Body.String(), "abc") {
				t.Error("the answer repeats the query")
			}
		})
	}
	if w := send(h, "GET", root+"/nothing", nil); w.Code != 404 || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("a program got %d %s for an unknown path, want JSON", w.Code, w.Header().Get("Content-Type"))
	}
}

func TestTK01QueryIsNotLogged(t *testing.T) {
	t.Parallel()
	h, log := newSite(t, "http://localhost:8414", nil)
	send(h, "GET", "http://localhost:8414/token?code=hunter2", nil)
	send(h, "GET", "http://localhost:8414/return/hunter2", nil)
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("log holds a secret of the URL: %s", log)
	}
	if !strings.Contains(log.String(), `"route":"GET /return/{once}"`) {
		t.Errorf("access log lacks the pattern: %s", log)
	}
}

func TestCS02CrossOriginPost(t *testing.T) {
	t.Parallel()
	h, _ := newSite(t, "https://id.example", nil)
	for _, tt := range []struct {
		name, target string
		header       []string
		status       int
	}{
		{"Origin evil", "/consent", []string{"Origin", "https://evil.example"}, 403},
		{"Origin null", "/consent", []string{"Origin", "null"}, 403},
		{"Sec-Fetch-Site cross-site", "/consent", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"Sec-Fetch-Site same-site", "/consent", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"same origin", "/consent", []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://id.example"}, 200},
		{"AR-10 authorize may be posted by the app", "/authorize", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		{"AR-10 not for a path that looks alike", "/authorize/", []string{"Sec-Fetch-Site", "cross-site"}, 404},
	} {
		t.Run("CS-02 "+tt.name, func(t *testing.T) {
			w := send(h, "POST", "https://id.example"+tt.target, header(tt.header...))
			if w.Code != tt.status {
				t.Errorf("status = %d, want %d", w.Code, tt.status)
			}
			if ran := strings.HasPrefix(w.Body.String(), "POST "); ran != (tt.status == 200) {
				t.Errorf("handler ran: %v", ran)
			}
		})
	}
}

func TestD1Host(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		issuer, host string
		allowed      []string
		status       int
	}{
		{"http://localhost:8414", "localhost:8414", nil, 200},
		{"http://localhost:8414", "LOCALHOST:8414", nil, 200},
		{"http://localhost:8414", "127.0.0.1:8414", nil, 421},
		{"http://localhost:8414", "localhost", nil, 421},
		{"http://localhost:8414", "evil.example", nil, 421},
		{"https://id.example", "id.example:443", nil, 200},
		{"https://id.example", "id.example:80", nil, 421},
		{"https://id.example", "", nil, 421},
		{"https://id.example", "10.0.0.7:9000", []string{"10.0.0.7:9000"}, 200},
		{"http://[::1]:8414", "[::1]:8414", nil, 200},
	} {
		t.Run(tt.issuer+" asked as "+tt.host, func(t *testing.T) {
			h, _ := newSite(t, tt.issuer, func(o *endpoint.SiteOptions) { o.Hosts = tt.allowed })
			w := send(h, "GET", "http://x/consent", func(r *http.Request) { r.Host = tt.host })
			if w.Code != tt.status {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			if tt.status == 421 && !strings.Contains(w.Body.String(), "allowed_hosts:") {
				t.Errorf("421 lacks the line to change: %s", w.Body)
			}
		})
	}
}

func TestD1StyleSheetOfTheRefusalIsServed(t *testing.T) {
	t.Parallel()
	h, _ := newSite(t, "http://localhost:8414", func(o *endpoint.SiteOptions) {
		o.Pages.HandleFunc("GET /static/style.css", func(http.ResponseWriter, *http.Request) {})
	})
	for target, want := range map[string]int{"/static/style.css": 200, "/static/../consent": 404, "/static/": 404, "/consent": 421} {
		if w := send(h, "GET", "http://127.0.0.1:8414"+target, nil); w.Code != want {
			t.Errorf("%s under another name: %d, want %d", target, w.Code, want)
		}
	}
}

func TestD4ForwardedInDevelopment(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Anything"} {
		h, _ := newSite(t, "http://localhost:8414", func(o *endpoint.SiteOptions) { o.Development = true })
		w := send(h, "GET", "http://localhost:8414/consent", header(name, "x", "Accept", "text/html"))
		if w.Code != 421 || !strings.Contains(w.Body.String(), "issuer:") {
			t.Errorf("%s: got %d, want 421 with the line to change: %s", name, w.Code, w.Body)
		}
	}
	h, _ := newSite(t, "https://id.example", nil)
	if w := send(h, "GET", "https://id.example/consent", header("X-Forwarded-Host", "evil.example")); w.Code != 200 {
		t.Errorf("outside development mode X-Forwarded-Host got %d, want it ignored", w.Code)
	}
}

func TestSL15ClientIP(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct {
		name, peer, want string
		forwarded        []string
	}{
		{"untrusted peer", "198.51.100.7:1", "198.51.100.7", []string{"1.2.3.4"}},
		{"trusted peer", "10.0.0.1:1", "1.2.3.4", []string{"1.2.3.4"}},
		{"client's own entry before the proxy's", "10.0.0.1:1", "1.2.3.4", []string{"6.6.6.6, 1.2.3.4"}},
		{"two proxies, two headers", "10.0.0.1:1", "1.2.3.4", []string{"6.6.6.6, 1.2.3.4", "10.0.0.2"}},
		{"nonsense ends the walk", "10.0.0.1:1", "10.0.0.2", []string{"1.2.3.4, junk, 10.0.0.2"}},
		{"no header", "10.0.0.1:1", "10.0.0.1", nil},
		{"mapped address", "[::ffff:10.0.0.1]:1", "1.2.3.4", []string{"::ffff:1.2.3.4"}},
		{"zone dropped", "[fd00::1%eth0]:1", "2001:db8::1", []string{"2001:db8::1"}},
		{"unix socket", "@", "", []string{"1.2.3.4"}},
	} {
		t.Run("SL-15 "+tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = tt.peer
			for _, f := range tt.forwarded {
				r.Header.Add("X-Forwarded-For", f)
			}
			if got := endpoint.ClientIP(r, trusted); got != tt.want {
				t.Errorf("ClientIP = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	h, _ := newSite(t, "https://id.example", nil)
	r := httptest.NewRequest("POST", "https://id.example/token", strings.NewReader("a="+strings.Repeat("x", 64<<10)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("64 KiB and two bytes: %d, want 413", w.Code)
	}
}

func TestA7CORSOnErrors(t *testing.T) {
	t.Parallel()
	h, _ := newSite(t, "https://id.example", func(o *endpoint.SiteOptions) {
		o.CORS = endpoint.CORS
	})
	for _, method := range []string{"GET", "OPTIONS", "POST"} {
		w := send(h, method, "https://id.example/token", header("Origin", "https://app.example"))
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("%s /token (%d): Access-Control-Allow-Origin = %q", method, w.Code, got)
		}
	}
	if w := send(h, "GET", "https://id.example/consent", header("Origin", "https://app.example")); w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("a page allows CORS")
	}
}

func FuzzClientIP(f *testing.F) {
	f.Add("10.0.0.1:1", "1.2.3.4, 10.0.0.2")
	f.Add("[::1%lo]:1", "junk,,::ffff:1.2.3.4")
	f.Add("@", "")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {forwarded}}}
		if got := endpoint.ClientIP(r, trusted); got != "" {
			if _, err := netip.ParseAddr(got); err != nil {
				t.Errorf("ClientIP = %q, no address", got)
			}
		}
	})
}

// A preflight allows the methods that the path has, whatever it asks for.
func TestA7PreflightNamesTheRoutesMethods(t *testing.T) {
	t.Parallel()
	h, _ := newSite(t, "https://id.example/tenant", func(o *endpoint.SiteOptions) {
		o.CORS = endpoint.CORS
		o.Endpoints.Handle("/jwks.json", http.NotFoundHandler()) // answers every method itself
	})
	for _, tt := range []struct{ path, method, want string }{
		{"/.well-known/oauth-authorization-server/tenant", "GET", "GET"},
		{"/.well-known/oauth-authorization-server/tenant", "POST", ""},
		{"/tenant/jwks.json", "HEAD", "HEAD"},
		{"/tenant/jwks.json", "POST", ""},
		{"/tenant/token", "POST", "POST"},
		{"/tenant/token", "DELETE", ""},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			w := send(h, "OPTIONS", "https://id.example"+tt.path,
				header("Origin", "https://client.example", "Access-Control-Request-Method", tt.method))
			if got := w.Header().Get("Access-Control-Allow-Methods"); w.Code != http.StatusNoContent || got != tt.want {
				t.Errorf("preflight: %d, Access-Control-Allow-Methods %q; want 204 and %q", w.Code, got, tt.want)
			}
		})
	}
}
