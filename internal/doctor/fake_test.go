package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fake is an MCP server and its authorization server at one origin, healthy but
// for what a test changes before it is asked.
type fake struct {
	*httptest.Server
	// resource and issuers are what the server says of itself.
	resource string
	issuers  []string
	// metadata changes the authorization server's document.
	metadata func(document map[string]any)
	// token answers the token endpoint, by default with invalid_grant.
	token func(form url.Values) (status int, answer map[string]any)
	// revocation is what the revocation endpoint answers with, by default 200.
	revocation int

	mu      sync.Mutex
	heard   []string     // Authorization headers
	forms   []url.Values // of the token endpoint
	revoked []string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{revocation: http.StatusOK}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wellKnownResource+"/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]any{"resource": f.resource, "authorization_servers": f.issuers})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) { f.describe(w) })
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+f.URL+wellKnownResource+`/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var client map[string]any
		if json.NewDecoder(r.Body).Decode(&client) != nil {
			answerJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
			return
		}
		client["client_id"] = "a-client"
		answerJSON(w, http.StatusCreated, client)
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.FormValue("client_id") == unknownClient {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) { f.redeem(w, r) })
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		f.revoked = append(f.revoked, r.FormValue("token"))
		w.WriteHeader(f.revocation)
	})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.heard = append(f.heard, r.Header.Get("Authorization"))
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	f.resource, f.issuers = f.URL+"/mcp", []string{f.URL}
	return f
}

func (f *fake) describe(w http.ResponseWriter) {
	document := map[string]any{"issuer": f.URL, "authorization_endpoint": f.URL + "/authorize", "token_endpoint": f.URL + "/token",
		"registration_endpoint": f.URL + "/register", "revocation_endpoint": f.URL + "/revoke", "response_types_supported": []string{"code"},
		"grant_types_supported": []string{"authorization_code", "refresh_token"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"}, "authorization_response_iss_parameter_supported": true}
	if f.metadata != nil {
		f.metadata(document)
	}
	answerJSON(w, http.StatusOK, document)
}

func (f *fake) redeem(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f.forms = append(f.forms, r.PostForm)
	status, answer := http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
	if f.token != nil && r.PostForm.Get("client_id") != unknownClient {
		status, answer = f.token(r.PostForm)
	}
	w.Header().Set("Cache-Control", "no-store")
	answerJSON(w, status, answer)
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// hears reports whether a request had the text in its Authorization header.
func (f *fake) hears(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.heard, func(s string) bool { return strings.Contains(s, text) })
}

// redeemed reports whether the token endpoint was shown a code.
func (f *fake) redeemed(code string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.forms, func(v url.Values) bool { return v.Get("code") == code })
}

// response is an Attempt whose authorization response a test makes of the state.
type response func(state string) url.Values

func (response) RedirectURI() string { return fixedRedirect }
func (response) Close() error        { return nil }
func (r response) Authorize(_ context.Context, rawURL string) (url.Values, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return r(u.Query().Get("state")), nil
}

// logIn are the options of an examination in which the person comes back with r.
func (f *fake) logIn(r response) Options {
	return Options{URL: f.URL + "/mcp", Write: true, Begin: func(context.Context) (Attempt, error) { return r, nil }}
}

func examine(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Examine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// finding is the one of a check.
func finding(t *testing.T, r *Report, id string) Finding {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.ID == id })
	if i < 0 {
		t.Fatalf("%s is not in the report", id)
	}
	return r.Findings[i]
}
