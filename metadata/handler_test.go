package metadata

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func document(issuer string) AuthorizationServer {
	return AuthorizationServer{
		Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token",
		JWKSURI: issuer + "/jwks.json", RegistrationEndpoint: issuer + "/register",
		ScopesSupported: []string{"files:read", "offline_access"}, ResponseTypesSupported: []string{"code"},
		GrantTypesSupported:                        []string{"authorization_code", "refresh_token"},
		TokenEndpointAuthMethodsSupported:          []string{"none", "client_secret_basic", "client_secret_post"},
		CodeChallengeMethodsSupported:              []string{"S256"},
		AuthorizationResponseISSParameterSupported: true,
	}
}

func newHandler(t *testing.T, issuer string) *Handler {
	t.Helper()
	h, err := NewHandler(HandlerOptions{Issuer: issuer,
		Document: func(context.Context) (AuthorizationServer, error) { return document(issuer), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "https://as.example"+path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

func TestA2Handler(t *testing.T) {
	for _, issuer := range []string{"https://as.example", "https://as.example/tenant"} {
		h := newHandler(t, issuer)
		oauth, _ := AuthorizationServerPaths(issuer)
		openid, _ := OpenIDConfigurationPaths(issuer)
		for _, path := range append(oauth, openid...) {
			t.Run(issuer+" "+path, func(t *testing.T) {
				rec := get(h, http.MethodGet, path)
				if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "application/json" {
					t.Errorf("%d %s, want 200 application/json", rec.Code, rec.Header().Get("Content-Type"))
				}
				// A1: one exact issuer in every form, a trailing slash of the path or not
				if _, err := ParseAuthorizationServer(rec.Body.Bytes(), issuer); err != nil {
					t.Error(err)
				}
				isOpenID := strings.Contains(rec.Body.String(), "subject_types_supported")
				if want := strings.Contains(path, "openid-configuration"); isOpenID != want {
					t.Errorf("OpenID members present: %v, want %v", isOpenID, want)
				}
			})
		}
	}
}

func TestA3OpenIDMembers(t *testing.T) {
	rec := get(newHandler(t, "https://as.example"), http.MethodGet, "/.well-known/openid-configuration")
	var doc map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "response_types_supported",
		"subject_types_supported", "id_token_signing_alg_values_supported", "code_challenge_methods_supported"} {
		if doc[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestA5MembersAndMM01Flag(t *testing.T) {
	rec := get(newHandler(t, "https://as.example"), http.MethodGet, "/.well-known/oauth-authorization-server")
	var doc map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"response_types_supported", "grant_types_supported", "code_challenge_methods_supported",
		"token_endpoint_auth_methods_supported", "scopes_supported", "registration_endpoint"} {
		if doc[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if doc["authorization_response_iss_parameter_supported"] != true {
		t.Error("MM-01 authorization_response_iss_parameter_supported is not true")
	}
	if strings.Contains(rec.Body.String(), "null") || strings.Contains(rec.Body.String(), `""`) {
		t.Errorf("the document has null or empty members: %s", rec.Body)
	}
	if _, promised := doc["client_id_metadata_document_supported"]; promised {
		t.Error("CIMD is promised although the document does not say so")
	}
}

func TestA4AndMM05UnknownPaths(t *testing.T) {
	for _, issuer := range []string{"https://as.example", "https://as.example/tenant"} {
		h := newHandler(t, issuer)
		for _, path := range []string{"/.well-known/", "/.well-known/unknown", "/.well-known/oauth-protected-resource",
			"/.well-known/oauth-authorization-server/other", "/.well-known/oauth-authorization-server//",
			"/.well-known/openid-configuration/tenant/deeper", "/.well-known/OAUTH-authorization-server",
			"/.well-known/jwks.json"} {
			t.Run("MM-05 "+issuer+" "+path, func(t *testing.T) {
				rec := get(h, http.MethodGet, path)
				if rec.Code != http.StatusNotFound || rec.Header().Get("Content-Type") != "application/json" {
					t.Errorf("%d %s, want 404 application/json", rec.Code, rec.Header().Get("Content-Type"))
				}
				if rec.Header().Get("Access-Control-Allow-Origin") != "*" {
					t.Error("A7 the error has no CORS headers")
				}
			})
		}
	}
}

func TestA7CORS(t *testing.T) {
	h := newHandler(t, "https://as.example")
	const path = "/.well-known/oauth-authorization-server"
	preflight := get(h, http.MethodOptions, path, "Origin", "https://client.example",
		"Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "mcp-protocol-version")
	if preflight.Code != http.StatusNoContent {
		t.Errorf("preflight: %d, want 204", preflight.Code)
	}
	for _, name := range []string{"Authorization", "Content-Type", "Accept", "MCP-Protocol-Version"} {
		if !strings.Contains(preflight.Header().Get("Access-Control-Allow-Headers"), name) {
			t.Errorf("preflight does not allow %s", name)
		}
	}
	for _, rec := range []*httptest.ResponseRecorder{preflight, get(h, http.MethodGet, path), get(h, http.MethodPost, path)} {
		if rec.Header().Get("Access-Control-Allow-Origin") != "*" || rec.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("TK-10 headers of %d: %v", rec.Code, rec.Header())
		}
	}
	if post := get(h, http.MethodPost, path); post.Code != http.StatusMethodNotAllowed || post.Header().Get("Allow") == "" {
		t.Errorf("POST: %d, Allow %q", post.Code, post.Header().Get("Allow"))
	}
}

func TestMM02ForeignHost(t *testing.T) {
	h := newHandler(t, "https://as.example")
	req := httptest.NewRequest(http.MethodGet, "/.well-known/oauth-authorization-server", nil)
	req.Host = "evil.example"
	req.Header.Set("X-Forwarded-Host", "evil.example")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if strings.Contains(rec.Body.String(), "evil") {
		t.Errorf("the document follows Host: %s", rec.Body)
	}
}

func TestCaching(t *testing.T) {
	h := newHandler(t, "https://as.example")
	const path = "/.well-known/oauth-authorization-server"
	first := get(h, http.MethodGet, path)
	etag := first.Header().Get("ETag")
	if etag == "" || first.Header().Get("Cache-Control") != "public, max-age=60" {
		t.Fatalf("headers = %v", first.Header())
	}
	for _, tt := range []struct {
		name, header string
		want         int
	}{
		{"same", etag, 304},
		{"weak", "W/" + etag, 304},
		{"in a list", `"x", ` + etag, 304},
		{"any", "*", 304},
		{"other", `"x"`, 200},
	} {
		rec := get(h, http.MethodGet, path, "If-None-Match", tt.header)
		if rec.Code != tt.want || (tt.want == 304) != (rec.Body.Len() == 0) {
			t.Errorf("%s: %d with %d bytes, want %d", tt.name, rec.Code, rec.Body.Len(), tt.want)
		}
	}
}

func TestDocumentFails(t *testing.T) {
	var fail error
	var told int
	h, err := NewHandler(HandlerOptions{Issuer: "https://as.example",
		Document: func(context.Context) (AuthorizationServer, error) { return document("https://as.example"), fail },
		OnError:  func(context.Context, error) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/.well-known/oauth-authorization-server"
	fail = errors.New("database is away")
	if rec := get(h, http.MethodGet, path); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
		t.Errorf("never read: %d, want 503 with Retry-After", rec.Code)
	}
	fail = nil
	good := get(h, http.MethodGet, path).Body.String()
	fail = errors.New("database is away")
	if rec := get(h, http.MethodGet, path); rec.Code != http.StatusOK || rec.Body.String() != good {
		t.Errorf("A4 after a good read: %d, want the last good document", rec.Code)
	}
	if told != 2 {
		t.Errorf("OnError was told %d times, want 2", told)
	}
}

func TestNewHandlerOptions(t *testing.T) {
	if _, err := NewHandler(HandlerOptions{Issuer: "https://as.example"}); err == nil {
		t.Error("a handler without a document was made")
	}
	if _, err := NewHandler(HandlerOptions{Issuer: "as", Document: func(context.Context) (AuthorizationServer, error) { return AuthorizationServer{}, nil }}); err == nil {
		t.Error("a handler of an issuer that is no URL was made")
	}
}

func TestJSONMaxAge(t *testing.T) {
	h := JSON(5*time.Minute, func(context.Context) (Body, error) { return NewBody(map[string]int{"a": 1}) })
	if got := get(h, http.MethodHead, "/x").Header().Get("Cache-Control"); got != "public, max-age=300" {
		t.Errorf("Cache-Control = %q", got)
	}
}
