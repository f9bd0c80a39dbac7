package resourceserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// legacyIssuer serves a metadata document of odd spelling, and counts.
type legacyIssuer struct {
	*httptest.Server
	fetches atomic.Int32
	status  atomic.Int32
	claimed atomic.Pointer[string]
	hold    chan struct{} // nil: answers at once
}

func newLegacyIssuer(t *testing.T) *legacyIssuer {
	t.Helper()
	i := &legacyIssuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/oauth-authorization-server" {
			http.NotFound(w, r)
			return
		}
		i.fetches.Add(1)
		if i.hold != nil {
			<-i.hold
		}
		if s := i.status.Load(); s != 0 {
			w.WriteHeader(int(s))
			return
		}
		_, _ = w.Write([]byte(i.document()))
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *legacyIssuer) document() string {
	claimed := i.URL
	if c := i.claimed.Load(); c != nil {
		claimed = *c
	}
	return "{ \"x-unknown\" : 1.0,\n\t\"issuer\":\"" + claimed + "\" }\n"
}

// legacyFixture returns a fixture whose issuer is i.
func legacyFixture(t *testing.T, i *legacyIssuer, change ...func(*resourceserver.Options)) *fixture {
	t.Helper()
	return newFixture(t, append([]func(*resourceserver.Options){func(o *resourceserver.Options) { o.Issuer = i.URL }}, change...)...)
}

const legacyPath = "https://mcp.example.com/.well-known/oauth-authorization-server"

func (f *fixture) legacy() *httptest.ResponseRecorder {
	return f.call(httptest.NewRequest("GET", legacyPath, nil), "")
}

func TestM9_LegacyMetadata(t *testing.T) {
	t.Parallel()
	i := newLegacyIssuer(t)
	f := legacyFixture(t, i)
	for _, path := range []string{"", "/", "/mcp", "/mcp/"} {
		w := f.call(httptest.NewRequest("GET", legacyPath+path, nil), "")
		if w.Code != http.StatusOK || w.Body.String() != i.document() {
			t.Fatalf("M9 %q: %d %q, want the document unchanged", path, w.Code, w.Body)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("M9 %q: header %v", path, w.Header())
		}
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("M9 four requests caused %d fetches, want 1", n)
	}
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"OPTIONS", legacyPath, 204}, {"POST", legacyPath, 405}, {"GET", legacyPath + "/other", 401},
		{"GET", "https://mcp.example.com/.well-known/openid-configuration", 401},
	} {
		if w := f.call(httptest.NewRequest(tt.method, tt.path, nil), ""); w.Code != tt.want {
			t.Errorf("M9 %s %s: status = %d, want %d", tt.method, tt.path, w.Code, tt.want)
		}
	}
	if f.servedCount() != 0 {
		t.Error("M9 the handler ran without a token")
	}
}

func TestM9_LastGoodCopy(t *testing.T) {
	t.Parallel()
	i := newLegacyIssuer(t)
	f := legacyFixture(t, i)
	want := i.document()
	if w := f.legacy(); w.Body.String() != want {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	i.status.Store(500)
	for range 40 { // 20 hours of failure
		f.advance(30 * time.Minute)
		if w := f.legacy(); w.Code != http.StatusOK || w.Body.String() != want {
			t.Fatalf("M9 the last good copy is not served: %d %s", w.Code, w.Body)
		}
	}
	f.advance(5 * time.Hour)
	if w := f.legacy(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("M9 past the limit: %d %s", w.Code, w.Body)
	}
	i.status.Store(0)
	f.advance(time.Minute)
	if w := f.legacy(); w.Code != http.StatusOK {
		t.Errorf("M9 after the failure: %d %s", w.Code, w.Body)
	}
}

// A document of another issuer would send people to sign in elsewhere.
func TestM9_ForeignDocument(t *testing.T) {
	t.Parallel()
	i := newLegacyIssuer(t)
	evil := "https://evil.example"
	i.claimed.Store(&evil)
	f := legacyFixture(t, i)
	for range 50 {
		if w := f.legacy(); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "evil") {
			t.Fatalf("M9 %d %s", w.Code, w.Body)
		}
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("M9 fifty requests in one interval caused %d fetches, want 1", n)
	}
}

func TestM9_SingleFlight(t *testing.T) {
	t.Parallel()
	i := newLegacyIssuer(t)
	i.hold = make(chan struct{})
	f := legacyFixture(t, i)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if w := f.legacy(); w.Code != http.StatusOK {
				t.Errorf("M9 status = %d: %s", w.Code, w.Body)
			}
		})
	}
	close(i.hold)
	wg.Wait()
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("M9 %d fetches, want 1", n)
	}
}

func TestM9_Off(t *testing.T) {
	t.Parallel()
	i := newLegacyIssuer(t)
	f := legacyFixture(t, i, func(o *resourceserver.Options) { o.NoLegacyMetadata = true })
	if w := f.legacy(); w.Code != http.StatusUnauthorized || i.fetches.Load() != 0 {
		t.Errorf("M9 switched off: %d after %d fetches", w.Code, i.fetches.Load())
	}
}

// An authorization server on the resource's own origin would be asked through us.
func TestM9_OwnOrigin(t *testing.T) {
	t.Parallel()
	i := newLegacyIssuer(t)
	f := legacyFixture(t, i, func(o *resourceserver.Options) { o.Resource = i.URL + "/mcp" })
	w := f.call(httptest.NewRequest("GET", i.URL+"/.well-known/oauth-authorization-server", nil), "")
	if w.Code != http.StatusUnauthorized || i.fetches.Load() != 0 {
		t.Errorf("M9 own origin: %d after %d fetches", w.Code, i.fetches.Load())
	}
}
