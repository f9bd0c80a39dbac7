package authserver_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// mcpServer is an MCP server behind the real middleware, which knows this
// issuer and has one resource.
func (k *kit) mcpServer(res string, operations map[resourceserver.Operation][]string) http.Handler {
	k.t.Helper()
	s, err := resourceserver.New(resourceserver.Options{Issuer: k.Config.Issuer, Resource: res, HTTPClient: k.Client(),
		Now: k.Clock.Now, Scopes: []string{"files:read"}, Operations: operations})
	if err != nil {
		k.t.Fatal(err)
	}
	return s.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
}

// call sends a JSON-RPC message, or a GET without one.
func call(t *testing.T, s http.Handler, token, message string) *httptest.ResponseRecorder {
	t.Helper()
	method := http.MethodPost
	if message == "" {
		method = http.MethodGet
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "https://mcp.example.com/files", strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// forge signs an access token with the server's own key: a good one but for the
// claims given, of which nil leaves one out.
func (k *kit) forge(claims map[string]any) string {
	k.t.Helper()
	now := k.Clock.Now()
	all := map[string]any{"iss": k.Config.Issuer, "sub": "u_1", "aud": testkit.Resource, "client_id": "app", "jti": "1", "scope": "files:read",
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	for name, v := range claims {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	payload, err := json.Marshal(all)
	if err != nil {
		k.t.Fatal(err)
	}
	token, _, err := k.App.Keys.Sign("at+jwt", payload)
	if err != nil {
		k.t.Fatal(err)
	}
	return token
}

// kid returns the key id of a token.
func kid(t *testing.T, token string) string {
	t.Helper()
	head, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		t.Fatal(err)
	}
	var h struct {
		KID string `json:"kid"`
		Typ string `json:"typ"`
	}
	if err := json.Unmarshal(raw, &h); err != nil || h.KID == "" || h.Typ != "at+jwt" {
		t.Fatalf("header %s (%v)", raw, err)
	}
	return h.KID
}

// want401 checks a 401 with error="invalid_token" in one challenge (M1).
func want401(t *testing.T, got *httptest.ResponseRecorder) {
	t.Helper()
	challenges := got.Header().Values("WWW-Authenticate")
	if got.Code != http.StatusUnauthorized || len(challenges) != 1 {
		t.Fatalf("%d with challenges %q, want 401 and one", got.Code, challenges)
	}
	for _, part := range []string{`Bearer resource_metadata="https://mcp.example.com/`, `error="invalid_token"`} {
		if !strings.Contains(challenges[0], part) {
			t.Errorf("challenge %s, want %s", challenges[0], part)
		}
	}
}

// TestAU07_AU09: with tokens of the real server at the real middleware.
func TestAU07_AU09_Audience(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		files, notes := k.mcpServer(testkit.Resource, nil), k.mcpServer(testkit.OtherResource, nil)
		a := k.register(appRedirect)
		forFiles, forNotes := k.connect(a, nil), k.connectAt(a, testkit.OtherResource)
		if got := call(t, files, forFiles.body.AccessToken, ""); got.Code != 200 {
			t.Fatalf("the right server: %d %s", got.Code, got.Body)
		}
		if got := call(t, notes, forNotes.body.AccessToken, ""); got.Code != 200 {
			t.Fatalf("the right server: %d %s", got.Code, got.Body)
		}
		if kid(t, forFiles.body.AccessToken) != kid(t, forNotes.body.AccessToken) {
			t.Error("AU-07 the two tokens have different keys: the case shows nothing")
		}
		k.sub("AU-07 token for A at B", func(t *testing.T) { want401(t, call(t, notes, forFiles.body.AccessToken, "")) })
		k.sub("AU-07 token for B at A", func(t *testing.T) { want401(t, call(t, files, forNotes.body.AccessToken, "")) })
		k.sub("AU-09 refresh token as Bearer", func(t *testing.T) { want401(t, call(t, files, forFiles.body.RefreshToken, "")) })
		for name, aud := range map[string]any{"AU-09 the issuer": testkit.Issuer, "AU-09 the client_id": a.id, "AU-09 issuer and client_id": []string{testkit.Issuer, a.id},
			"AU-10 any": "*", "AU-10 empty": "", "AU-10 none": nil, "AU-10 an empty list": []string{}} {
			k.sub(name, func(t *testing.T) { want401(t, call(t, files, k.forge(map[string]any{"aud": aud}), "")) })
		}
		k.sub("AU-09 the forgery is good but for aud", func(t *testing.T) {
			if got := call(t, files, k.forge(nil), ""); got.Code != 200 {
				t.Errorf("%d %s", got.Code, got.Body)
			}
		})
		k.sub("an expired token", func(t *testing.T) {
			k.Clock.Advance(11 * time.Minute)
			want401(t, call(t, files, forFiles.body.AccessToken, ""))
		})
	})
}

// TestSC09: a tool that needs more gets one challenge that names everything.
func TestSC09_InsufficientScope(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		s := k.mcpServer(testkit.Resource, map[resourceserver.Operation][]string{
			{Method: "tools/call", Name: "read"}:   {"files:read"},
			{Method: "tools/call", Name: "delete"}: {"files:write", "files:delete"},
		})
		a := k.register(appRedirect)
		token := k.connect(a, values("scope", "files:read")).body.AccessToken
		tool := func(name string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{}}}`
		}
		if got := call(t, s, token, tool("read")); got.Code != 200 {
			t.Fatalf("the tool it may call: %d %s", got.Code, got.Body)
		}
		got := call(t, s, token, tool("delete"))
		challenges := got.Header().Values("WWW-Authenticate")
		if got.Code != http.StatusForbidden || len(challenges) != 1 {
			t.Fatalf("SC-09 %d with challenges %q, want 403 and one", got.Code, challenges)
		}
		for _, part := range []string{"Bearer ", "resource_metadata=", `error="insufficient_scope"`, `scope="files:read files:write files:delete"`} {
			if !strings.Contains(challenges[0], part) {
				t.Errorf("SC-09 challenge %s, want %s", challenges[0], part)
			}
		}
		// what the challenge asks for is enough
		more := k.connectAll(a, "files:read files:write files:delete").body.AccessToken
		if got := call(t, s, more, tool("delete")); got.Code != 200 {
			t.Errorf("SC-09 with what the challenge names: %d %s", got.Code, got.Body)
		}
	})
}
