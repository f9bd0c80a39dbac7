package resourceserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/metadata"
)

// challengeSyntax is what the strictest parsers among clients read: Bearer, and
// quoted values of printable ASCII, quotes and backslashes escaped.
var challengeSyntax = regexp.MustCompile(`^Bearer [a-z_]+="(?:[ !#-\[\]-~]|\\["\\])*"(?:, [a-z_]+="(?:[ !#-\[\]-~]|\\["\\])*")*$`)

// FuzzChallenge: whatever a refusal says, one header comes out and no value ends
// early (M1, JW-30).
func FuzzChallenge(f *testing.F) {
	for _, s := range []string{"plain", `a"b`, `a\`, "a\r\nSet-Cookie: x=1", "é\u2028", "\x00", `", error="none`} {
		f.Add(s, s, uint8(1))
	}
	s, err := New(Options{Issuer: "https://login.example.com", Resource: "https://mcp.example.com/mcp", Scopes: []string{"notes:read"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, description, scope string, kind uint8) {
		errs := []*refusal{errNoToken, invalidToken("%s", description),
			insufficientScope(&Token{Scopes: strings.Fields(scope)}, []string{scope}), badBody(errors.New(description), nil)}
		e := errs[int(kind)%len(errs)]
		e.retryAfter = 0
		w := httptest.NewRecorder()
		s.refuse(w, httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", nil), e)
		got := w.Result().Header.Values("WWW-Authenticate")
		if want := e.status == http.StatusUnauthorized || e.status == http.StatusForbidden; (len(got) == 1) != want || len(got) > 1 {
			t.Fatalf("%d challenges with status %d", len(got), e.status)
		}
		if len(got) == 1 && !challengeSyntax.MatchString(got[0]) {
			t.Fatalf("challenge %q", got[0])
		}
		if len(got) == 1 && !strings.HasPrefix(got[0], `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`) {
			t.Fatalf("challenge %q does not begin with where to look", got[0])
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("body %q", w.Body)
		}
	})
}

// FuzzProtectedResource: the document of any resource that New accepts names that
// resource, at the place that the challenge tells (M3).
func FuzzProtectedResource(f *testing.F) {
	for _, s := range []string{"https://mcp.example.com/mcp", "https://mcp.example.com", "https://mcp.example.com/", "http://[::1]:9/a%20b/c/",
		"https://MCP.example.com:443/%2e", "https://a.example/x#y", "https://a.example//x", `https://a.example/"`} {
		f.Add(s, "Notes")
	}
	f.Fuzz(func(t *testing.T, resource, name string) {
		s, err := New(Options{Issuer: "https://login.example.com", Resource: resource, Name: name})
		if err != nil {
			return
		}
		r, err := http.NewRequest(http.MethodGet, s.MetadataURL(), nil)
		if err != nil {
			t.Fatalf("MetadataURL of %q: %v", resource, err)
		}
		w := httptest.NewRecorder()
		s.Protect(http.NotFoundHandler()).ServeHTTP(w, r)
		doc, err := metadata.ParseProtectedResource(w.Body.Bytes(), resource)
		if err != nil || w.Code != http.StatusOK {
			t.Fatalf("%q at %s: %d %v", resource, s.MetadataURL(), w.Code, err)
		}
		if doc.Resource != resource || len(doc.AuthorizationServers) != 1 || doc.AuthorizationServers[0] != "https://login.example.com" {
			t.Fatalf("document of %q: %+v", resource, doc)
		}
		if _, err := oauth.CanonicalResource(doc.Resource); err != nil {
			t.Fatalf("resource %q was accepted: %v", resource, err)
		}
	})
}

// A verification that goes wrong in a way nobody thought of opens nothing (JW-31).
func TestJW31_VerifierFails(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Issuer: "https://login.example.com", Resource: "https://mcp.example.com/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	s.verifier = nil // the next call panics
	r := httptest.NewRequest(http.MethodGet, "https://mcp.example.com/mcp", nil)
	r.Header.Set("Authorization", "Bearer a.b.c")
	w := httptest.NewRecorder()
	s.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })).ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("JW-31 %d %s", w.Code, w.Body)
	}
	if token, err := s.verify(context.Background(), "a.b.c"); err == nil || token != nil {
		t.Errorf("JW-31 verify = %v, %v", token, err)
	}
}
