package resourceserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestM9_EarlyClientLogsIn repeats what a client of 2025-03-26 does: it takes the
// origin of the MCP server for the authorization server, reads no RFC 9728
// document, names no resource, and checks no issuer.
func TestM9_EarlyClientLogsIn(t *testing.T) {
	t.Parallel()
	as := testkit.NewServer(t, testkit.OpenSQLite(t))
	rs, err := resourceserver.New(resourceserver.Options{Issuer: testkit.Issuer, Resource: testkit.Resource, HTTPClient: as.Client(), Now: as.Clock.Now,
		Operations: map[resourceserver.Operation][]string{{Method: "tools/call", Name: "read"}: {"files:read"}}})
	if err != nil {
		t.Fatal(err)
	}
	mcp := rs.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := resourceserver.TokenFromContext(r.Context())
		_, _ = io.WriteString(w, "files of "+token.Subject)
	}))
	ask := func(method, url, token, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if body == "" {
			r = httptest.NewRequestWithContext(t.Context(), method, url, nil)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		mcp.ServeHTTP(w, r)
		return w
	}
	if w := ask(http.MethodPost, testkit.Resource, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`); w.Code != http.StatusUnauthorized {
		t.Fatalf("M1 status = %d: %s", w.Code, w.Body)
	}
	var server struct {
		AuthorizationEndpoint string `json:"authorization_endpoint"`
		TokenEndpoint         string `json:"token_endpoint"`
		RegistrationEndpoint  string `json:"registration_endpoint"`
	}
	decode := func(b []byte, v any) {
		t.Helper()
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
	}
	decode(ask(http.MethodGet, "https://mcp.example.com/.well-known/oauth-authorization-server", "", "").Body.Bytes(), &server)
	post := func(to, contentType, body string) []byte {
		t.Helper()
		resp, err := as.Client().Post(to, contentType, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text := testkit.Body(t, resp)
		if resp.StatusCode >= 300 {
			t.Fatalf("%s: %s %s", to, resp.Status, text)
		}
		return []byte(text)
	}
	const callback = "http://127.0.0.1:33418/callback"
	var client struct {
		ClientID string `json:"client_id"`
	}
	decode(post(server.RegistrationEndpoint, "application/json", `{"client_name":"Early","redirect_uris":["`+callback+`"],`+
		`"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"]}`), &client)
	back, err := as.Person().Authorize(t.Context(), server.AuthorizationEndpoint+"?"+url.Values{"response_type": {"code"},
		"client_id": {client.ClientID}, "redirect_uri": {callback}, "code_challenge_method": {"S256"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	decode(post(server.TokenEndpoint, "application/x-www-form-urlencoded", url.Values{"grant_type": {"authorization_code"},
		"code": {back.Query().Get("code")}, "redirect_uri": {callback}, "client_id": {client.ClientID},
		"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}}.Encode()), &tokens)
	w := ask(http.MethodPost, testkit.Resource, tokens.AccessToken, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read"}}`)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "files of ") || w.Body.Len() == len("files of ") {
		t.Errorf("M9 the early client is not served: %d %s", w.Code, w.Body)
	}
}
