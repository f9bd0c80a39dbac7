package resourceserver_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

const localResource = "http://127.0.0.1:9100/mcp"

func TestJW27_HostAndOrigin(t *testing.T) {
	t.Parallel()
	only := func(o *resourceserver.Options) {
		o.AllowedOrigins, o.AllowedHosts = []string{"https://inspector.example"}, []string{"mcp.internal", "tunnel.example:8443"}
	}
	for _, tt := range []struct {
		name, resource, host, origin, arrived string
		change                                func(*resourceserver.Options)
		want                                  int
		wantCORS                              string
	}{
		{"loopback by its host", localResource, "127.0.0.1:9100", "", "", nil, 200, ""},
		{"loopback by name", localResource, "localhost:9100", "", "", nil, 200, ""},
		{"loopback IPv6", localResource, "[::1]:9100", "", "", nil, 200, ""},
		{"loopback, rebound name", localResource, "evil.example:9100", "", "", nil, 403, ""},
		{"loopback, name that begins so", localResource, "localhost.evil.example", "", "", nil, 403, ""},
		{"loopback, address that begins so", localResource, "127.0.0.1.evil.example", "", "", nil, 403, ""},
		{"loopback, userinfo", localResource, "localhost@evil.example", "", "", nil, 403, ""},
		{"loopback, no host", localResource, "", "", "", nil, 403, ""},
		{"loopback, page of this machine", localResource, "127.0.0.1:9100", "http://localhost:6274", "", nil, 200, "http://localhost:6274"},
		{"loopback, foreign page", localResource, "127.0.0.1:9100", "https://evil.example", "", nil, 403, ""},
		{"loopback, rebound page", localResource, "127.0.0.1:9100", "http://evil.example:9100", "", nil, 403, ""},
		{"loopback, null", localResource, "127.0.0.1:9100", "null", "", nil, 403, ""},
		{"loopback, origin with a path", localResource, "127.0.0.1:9100", "http://localhost:6274/x", "", nil, 403, ""},
		{"loopback, two origins", localResource, "127.0.0.1:9100", "http://localhost:1, http://localhost:2", "", nil, 403, ""},
		{"loopback, allowed origin", localResource, "127.0.0.1:9100", "https://inspector.example", "", only, 200, "https://inspector.example"},
		{"loopback, list leaves this machine out", localResource, "127.0.0.1:9100", "http://localhost:6274", "", only, 403, ""},
		{"loopback, allowed host", localResource, "tunnel.example:8443", "", "", only, 200, ""},
		{"loopback, allowed host at another port", localResource, "tunnel.example", "", "", only, 403, ""},
		{"public, any page", testResource, "mcp.example.com", "https://anything.example", "", nil, 200, "*"},
		{"public, listed page", testResource, "mcp.example.com", "https://inspector.example", "", only, 200, "https://inspector.example"},
		{"public, page not listed", testResource, "mcp.example.com", "https://evil.example", "", only, 403, ""},
		{"public, listed without scheme's case", testResource, "mcp.example.com", "HTTPS://Inspector.example", "", only, 200, "HTTPS://Inspector.example"},
		{"public, its host on this machine", testResource, "mcp.example.com", "", "127.0.0.1:80", nil, 200, ""},
		{"public, its host with the port", testResource, "mcp.example.com:443", "", "127.0.0.1:80", nil, 200, ""},
		{"public, address on this machine", testResource, "127.0.0.1:9100", "", "127.0.0.1:9100", nil, 200, ""},
		{"public, allowed host on this machine", testResource, "mcp.internal:9100", "", "[::1]:9100", only, 200, ""},
		{"public, rebound name on this machine", testResource, "evil.example", "", "127.0.0.1:9100", nil, 403, ""},
		{"public, rebound name, mapped address", testResource, "evil.example", "", "[::ffff:127.0.0.1]:9100", nil, 403, ""},
		{"public, other host elsewhere", testResource, "10.0.0.5:9100", "", "10.0.0.5:9100", nil, 200, ""},
	} {
		t.Run("JW-27 "+tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(o *resourceserver.Options) {
				o.Resource = tt.resource
				if tt.change != nil {
					tt.change(o)
				}
			})
			token := f.issuer.sign(t, header("ES256", "ec-1"), f.issuer.claims(tt.resource, f.clock(), "notes:read"))
			r := httptest.NewRequest("GET", "/mcp", nil)
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.arrived != "" {
				addr, err := net.ResolveTCPAddr("tcp", tt.arrived)
				if err != nil {
					t.Fatal(err)
				}
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr)))
			}
			w := f.call(r, token)
			if w.Code != tt.want || (f.servedCount() == 1) != (tt.want == 200) {
				t.Fatalf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); tt.origin != "" && got != tt.wantCORS {
				t.Errorf("Access-Control-Allow-Origin = %q, want %q", got, tt.wantCORS)
			}
			if body := w.Body.String(); tt.want == 403 && !(strings.Contains(body, "AllowedHosts") && strings.Contains(body, "--allowed-host ")) &&
				!(strings.Contains(body, "AllowedOrigins") && strings.Contains(body, "--allowed-origin ")) {
				t.Errorf("%s does not say what to change, in Go and at the gateway", body)
			}
			if tt.want == 403 && w.Header().Get("WWW-Authenticate") != "" {
				t.Error("a page that is kept out is asked to sign in")
			}
		})
	}
}

// Preflights and documents are behind the door too, but documents are for every origin.
func TestJW27_WithoutToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) { o.Resource = localResource })
	for _, tt := range []struct {
		name, method, path, host, origin string
		want                             int
	}{
		{"preflight of a foreign page", "OPTIONS", "/mcp", "127.0.0.1:9100", "https://evil.example", 403},
		{"preflight of this machine", "OPTIONS", "/mcp", "127.0.0.1:9100", "http://localhost:6274", 204},
		{"document for a rebound name", "GET", "/.well-known/oauth-protected-resource/mcp", "evil.example", "", 403},
		{"M3 document for a foreign page", "GET", "/.well-known/oauth-protected-resource/mcp", "127.0.0.1:9100", "https://a.example", 200},
		{"metadata for a rebound name", "GET", "/.well-known/oauth-authorization-server", "evil.example", "", 403},
		{"no token at a rebound name", "POST", "/mcp", "evil.example", "", 403},
	} {
		t.Run("JW-27 "+tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.method == "OPTIONS" {
				r.Header.Set("Access-Control-Request-Method", "POST")
			}
			if w := f.call(r, ""); w.Code != tt.want {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}

func TestM2_ParamHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tt := range []struct{ asked, want string }{
		{"authorization, mcp-param-region,Mcp-Param-Tenant", ", mcp-param-region, mcp-param-tenant"},
		{"mcp-param-, mcp-param-a b, mcp-param-x\"y, x-other", ""},
		{strings.TrimSuffix(strings.Repeat("mcp-param-a,", 100), ","), strings.Repeat(", mcp-param-a", 32)},
	} {
		r := httptest.NewRequest("OPTIONS", testResource, nil)
		r.Header.Set("Origin", "https://inspector.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", tt.asked)
		_, got, _ := strings.Cut(f.call(r, "").Header().Get("Access-Control-Allow-Headers"), "Last-Event-ID")
		if got != tt.want {
			t.Errorf("%.60q allows %q, want %q", tt.asked, got, tt.want)
		}
	}
}

func TestNewRefusesOrigins(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*resourceserver.Options)
		want   string
	}{
		{"origin with a path", func(o *resourceserver.Options) { o.AllowedOrigins = []string{"https://a.example/"} }, "AllowedOrigins"},
		{"origin without scheme", func(o *resourceserver.Options) { o.AllowedOrigins = []string{"a.example"} }, "AllowedOrigins"},
		{"null", func(o *resourceserver.Options) { o.AllowedOrigins = []string{"null"} }, "AllowedOrigins"},
		{"host with a scheme", func(o *resourceserver.Options) { o.AllowedHosts = []string{"https://a.example"} }, "AllowedHosts"},
		{"empty host", func(o *resourceserver.Options) { o.AllowedHosts = []string{""} }, "AllowedHosts"},
		{"short session key", func(o *resourceserver.Options) { o.SessionKey = make([]byte, 31) }, "SessionKey"},
		{"empty session key", func(o *resourceserver.Options) { o.SessionKey = []byte{} }, "SessionKey"},
		{"session key of zeros", func(o *resourceserver.Options) { o.SessionKey = make([]byte, 64) }, "SessionKey"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := resourceserver.Options{Issuer: "https://login.example.com", Resource: testResource}
			tt.change(&o)
			if _, err := resourceserver.New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want an error about %s", err, tt.want)
			}
		})
	}
}
