package resourceserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// sessionFixture serves a handler that begins the session "s-1" and tells the id
// that it is given.
func sessionFixture(t *testing.T, change ...func(*resourceserver.Options)) *fixture {
	t.Helper()
	f := newFixture(t, change...)
	f.handler = f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") == "" {
			w.Header().Set("Mcp-Session-Id", "s-1")
		}
		_, _ = w.Write([]byte("session " + r.Header.Get("Mcp-Session-Id")))
	}))
	return f
}

func (f *fixture) callAs(t *testing.T, subject, client, session string) *httptest.ResponseRecorder {
	t.Helper()
	c := f.issuer.claims(testResource, f.clock(), "notes:read")
	c["sub"], c["client_id"] = subject, client
	r := httptest.NewRequest("POST", testResource, strings.NewReader(""))
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return f.call(r, f.issuer.sign(t, header("ES256", "ec-1"), c))
}

func TestJW25_Sessions(t *testing.T) {
	t.Parallel()
	key := []byte(strings.Repeat("k", 32))
	shared := func(o *resourceserver.Options) { o.SessionKey = key }
	f, other, stranger := sessionFixture(t, shared), sessionFixture(t, shared), sessionFixture(t)
	id := f.callAs(t, "u_1", "c_1", "").Header().Get("Mcp-Session-Id")
	if !strings.HasPrefix(id, "s-1.") || strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		t.Fatalf("session id = %q, want the server's and a tag, in visible ASCII", id)
	}
	for _, tt := range []struct {
		name, subject, client, session string
		want                           int
	}{
		{"its subject", "u_1", "c_1", id, 200},
		{"another subject", "u_2", "c_1", id, 404},
		{"another client of its subject", "u_1", "c_2", id, 200},
		{"subject and client shifted", "u_1c", "_1", id, 404},
		{"the server's bare id", "u_1", "c_1", "s-1", 404},
		{"no tag", "u_1", "c_1", "s-1.", 404},
		{"tag of another id", "u_1", "c_1", strings.Replace(id, "s-1", "s-2", 1), 404},
		{"shortened tag", "u_1", "c_1", id[:len(id)-1], 404},
		{"longer tag", "u_1", "c_1", id + "A", 404},
		{"a dot more", "u_1", "c_1", id + ".", 404},
		{"very long", "u_1", "c_1", strings.Repeat("s", 1<<20), 404},
	} {
		t.Run("JW-25 "+tt.name, func(t *testing.T) {
			t.Parallel()
			w := f.callAs(t, tt.subject, tt.client, tt.session)
			if w.Code != tt.want {
				t.Fatalf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			if served := w.Body.String() == "session s-1"; served != (tt.want == 200) {
				t.Errorf("body = %q", w.Body)
			}
		})
	}
	t.Run("JW-25 twice", func(t *testing.T) {
		r := httptest.NewRequest("POST", testResource, nil)
		r.Header["Mcp-Session-Id"] = []string{id, id}
		if w := f.call(r, f.token(t, "")); w.Code != http.StatusBadRequest {
			t.Errorf("status = %d, want 400", w.Code)
		}
	})
	// The issuer is part of it: the others trust one of their own.
	t.Run("JW-25 another issuer", func(t *testing.T) {
		if w := other.callAs(t, "u_1", "c_1", id); w.Code != http.StatusNotFound {
			t.Errorf("status = %d, want 404", w.Code)
		}
	})
	t.Run("JW-25 another process", func(t *testing.T) {
		second, err := resourceserver.New(resourceserver.Options{Issuer: f.issuer.URL, Resource: testResource, SessionKey: key, ClockSkew: -1, Now: f.clock})
		if err != nil {
			t.Fatal(err)
		}
		g := &fixture{issuer: f.issuer, now: f.clock(), handler: second.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("session " + r.Header.Get("Mcp-Session-Id")))
		}))}
		if w := g.callAs(t, "u_1", "c_1", id); w.Body.String() != "session s-1" {
			t.Errorf("%d %s: processes with one key do not agree", w.Code, w.Body)
		}
	})
	t.Run("JW-25 a key of its own", func(t *testing.T) {
		if stranger.callAs(t, "u_1", "c_1", "").Header().Get("Mcp-Session-Id") == id {
			t.Error("two servers without a key seal alike")
		}
	})
	t.Run("no session since 2026-07-28", func(t *testing.T) {
		r := httptest.NewRequest("POST", testResource, nil)
		r.Header.Set("Mcp-Session-Id", "s-1")
		r.Header.Set("MCP-Protocol-Version", "2026-07-28")
		if w := f.call(r, f.token(t, "")); w.Body.String() != "session " {
			t.Errorf("%d %s: the handler took up an id that nobody checked", w.Code, w.Body)
		}
	})
}

// A handler that writes nothing has begun a session all the same.
func TestJW25_SessionOfAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.handler = f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Mcp-Session-Id", "s-1")
	}))
	if id := f.get(f.token(t, "")).Header().Get("Mcp-Session-Id"); !strings.HasPrefix(id, "s-1.") {
		t.Errorf("session id = %q, want it sealed", id)
	}
}
