package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/metadata"
)

const testResource = "http://127.0.0.1:9100/mcp"

// issuer is an authorization server reduced to metadata, one key and signatures.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	jwk := map[string]string{"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig",
		"x": encode(point[1:33]), "y": encode(point[33:])}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/jwks"})
	})
	mux.HandleFunc("GET /jwks", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"keys": []any{jwk}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// token returns an access token of a person for this server.
func (i *issuer) token(t *testing.T, subject, scope string) string {
	t.Helper()
	now := time.Now()
	signed := encodeJSON(t, map[string]string{"alg": "ES256", "typ": "at+jwt", "kid": "1"}) + "." +
		encodeJSON(t, map[string]any{"iss": i.URL, "aud": testResource, "sub": subject, "client_id": "c", "jti": "j",
			"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "scope": scope})
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return signed + "." + encode(sig[:])
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func encodeJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return encode(b)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func newTestHandler(t *testing.T, i *issuer) http.Handler {
	t.Helper()
	h, err := newHandler(i.URL, testResource)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// post sends one JSON-RPC message and returns the answer.
func post(h http.Handler, token, session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, testResource, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// connect initializes an MCP session of the token's person.
func connect(t *testing.T, h http.Handler, token string) string {
	t.Helper()
	w := post(h, token, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	session := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || session == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	if w := post(h, token, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); w.Code != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", w.Code, w.Body)
	}
	return session
}

const (
	listNotes = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_notes","arguments":{}}}`
	addNote   = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add_note","arguments":{"text":"buy milk"}}}`
)

func TestNoToken(t *testing.T) {
	h := newTestHandler(t, newIssuer(t))
	w := post(h, "", "", listNotes)
	want := `Bearer resource_metadata="http://127.0.0.1:9100/.well-known/oauth-protected-resource/mcp", scope="notes:read"`
	if got := w.Header().Get("WWW-Authenticate"); w.Code != http.StatusUnauthorized || got != want {
		t.Errorf("%d, challenge %q; want 401, %q", w.Code, got, want)
	}
}

func TestDocument(t *testing.T) {
	i := newIssuer(t)
	w := httptest.NewRecorder()
	newTestHandler(t, i).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9100/.well-known/oauth-protected-resource/mcp", nil))
	doc, err := metadata.ParseProtectedResource(w.Body.Bytes(), testResource)
	if err != nil || len(doc.AuthorizationServers) != 1 || doc.AuthorizationServers[0] != i.URL || doc.ResourceName != "Notes" {
		t.Errorf("document = %+v, %v", doc, err)
	}
}

func TestScopes(t *testing.T) {
	i := newIssuer(t)
	h := newTestHandler(t, i)
	for _, tt := range []struct{ name, scope, call, wantScope string }{
		{name: "read opens list_notes", scope: "notes:read", call: listNotes},
		{name: "read does not open add_note", scope: "notes:read", call: addNote, wantScope: "notes:write"},
		{name: "write opens add_note", scope: "notes:read notes:write", call: addNote},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token := i.token(t, "u_1", tt.scope)
			w := post(h, token, connect(t, h, token), tt.call)
			challenge := w.Header().Get("WWW-Authenticate")
			if tt.wantScope == "" {
				if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"isError":true`) {
					t.Errorf("%d %s, want 200", w.Code, w.Body)
				}
				return
			}
			if w.Code != http.StatusForbidden || !strings.Contains(challenge, "insufficient_scope") || !strings.Contains(challenge, tt.wantScope) {
				t.Errorf("%d, challenge %q; want 403 that names %s", w.Code, challenge, tt.wantScope)
			}
		})
	}
}

func TestEachPersonSeesTheirOwnNotes(t *testing.T) {
	i := newIssuer(t)
	h := newTestHandler(t, i)
	writer, other := i.token(t, "u_1", "notes:read notes:write"), i.token(t, "u_2", "notes:read")
	writerSession, otherSession := connect(t, h, writer), connect(t, h, other)
	if w := post(h, writer, writerSession, addNote); w.Code != http.StatusOK {
		t.Fatalf("add_note: %d %s", w.Code, w.Body)
	}
	if w := post(h, writer, writerSession, listNotes); !strings.Contains(w.Body.String(), "buy milk") {
		t.Errorf("the writer does not see the note: %s", w.Body)
	}
	if w := post(h, other, otherSession, listNotes); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "buy milk") {
		t.Errorf("somebody else's answer: %d %s", w.Code, w.Body)
	}
}
