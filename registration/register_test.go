package registration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const quill = `{"redirect_uris":["http://localhost:8787/callback"],"token_endpoint_auth_method":"none","client_name":"Quill"}`

// named is the metadata of a public client: another name is another registration.
func named(name string) string { return strings.Replace(quill, "Quill", name, 1) }

// registrar is POST /register over a database, with a clock.
type registrar struct {
	db   *sqlstore.Store
	now  time.Time
	http http.Handler
}

func newRegistrar(t testing.TB, db *sqlstore.Store, change func(*registration.Options)) *registrar {
	t.Helper()
	g := &registrar{db: db, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	o := registration.Options{Issuer: "https://id.example.com", Edge: endpoint.New(endpoint.Options{}), Clients: db, Audit: db, Tx: db,
		Resources: db, InitialTokens: db, Grants: db, Consents: db,
		Policy: registration.Policy{Mode: registration.ModeOpen}, Now: func() time.Time { return g.now }}
	if change != nil {
		change(&o)
	}
	h, err := registration.New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	h.Routes(nil, mux)
	g.http = mux
	return g
}

func (g *registrar) post(ip, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/register", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r = r.WithContext(audit.WithSource(r.Context(), audit.Source{IP: ip, RequestID: "7Q4M-2KXD"}))
	w := httptest.NewRecorder()
	g.http.ServeHTTP(w, r)
	return w
}

// do sends a request with a bearer token, "" for none.
func (g *registrar) do(method, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r = r.WithContext(audit.WithSource(r.Context(), audit.Source{IP: "192.0.2.1"}))
	w := httptest.NewRecorder()
	g.http.ServeHTTP(w, r)
	return w
}

func (g *registrar) clients(t *testing.T) []registration.Client {
	t.Helper()
	list, err := g.db.ListClients(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// decode returns the members of a JSON object and fails for a null.
func decode(t *testing.T, body *bytes.Buffer) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body.Bytes(), &m); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for name, v := range m {
		if v == nil || v == "" {
			t.Errorf("A12: member %s is null or empty in %s", name, body)
		}
	}
	return m
}

func TestRegister(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		t.Run("A12 public client", func(t *testing.T) {
			g := newRegistrar(t, db, nil)
			w := g.post("192.0.2.1", "application/json; charset=utf-8", quill)
			if w.Code != http.StatusCreated {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			got := decode(t, w.Body)
			id, _ := got["client_id"].(string)
			want := map[string]any{"client_id": id, "client_id_issued_at": float64(g.now.Unix()), "client_name": "Quill",
				"redirect_uris": []any{"http://localhost:8787/callback"}, "token_endpoint_auth_method": "none",
				"grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}}
			if !cmp.Equal(got, want) {
				t.Errorf("response: %s", cmp.Diff(want, got))
			}
			if !registration.IsClientID(id) || strings.Contains(id, ".") {
				t.Errorf("A16: client_id %q", id)
			}
			c, err := db.GetClient(t.Context(), id)
			if err != nil || c.Kind != registration.KindDynamic || c.Source != "192.0.2.1" || c.DocumentHash != c.Metadata.Hash() {
				t.Errorf("stored %+v, %v", c, err)
			}
			if h := w.Header(); h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" || h.Get("Set-Cookie") != "" {
				t.Errorf("headers %v", h)
			}
			events, err := db.ListEvents(t.Context(), 10)
			if err != nil || len(events) != 1 || events[0].Name != "client.registered" || events[0].ClientID != id ||
				events[0].IP != "192.0.2.1" || events[0].RequestID != "7Q4M-2KXD" {
				t.Errorf("D35: events %+v, %v", events, err)
			}
		})
		t.Run("DR-17 secret is shown once and kept as a hash", func(t *testing.T) {
			g := newRegistrar(t, db, nil)
			w := g.post("192.0.2.1", "application/json", `{"redirect_uris":["https://app.example/cb"]}`)
			got := decode(t, w.Body)
			secret, _ := got["client_secret"].(string)
			if got["token_endpoint_auth_method"] != "client_secret_basic" || got["client_secret_expires_at"] != float64(0) || len(secret) != 43 {
				t.Fatalf("A13: response %v", got)
			}
			c, err := db.GetClient(t.Context(), got["client_id"].(string))
			if err != nil || !c.CheckSecret(oauth.Secret(secret), noon) || c.CheckSecret(oauth.Secret(secret)+"x", noon) || c.CheckSecret("", noon) {
				t.Errorf("the stored hash must match the secret that was shown, and no other: %v", err)
			}
			events, _ := db.ListEvents(t.Context(), 10)
			if row := fmt.Sprintf("%+v %s", c, c.SecretHash) + fmt.Sprintf("%+v", events); strings.Contains(row, secret) {
				t.Error("the secret is in the row or in the audit")
			}
		})
	})
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	g := newRegistrar(t, db, nil)
	for _, tt := range []struct{ name, contentType, body, want string }{
		{"DR-03 text/plain", "text/plain", quill, "invalid_client_metadata"},
		{"DR-03 form", "application/x-www-form-urlencoded", quill, "invalid_client_metadata"},
		{"DR-03 no type", "", quill, "invalid_client_metadata"},
		{"DR-03 JSON of another kind", "application/jsonp", quill, "invalid_client_metadata"},
		{"DR-05 no redirect_uris", "application/json", `{}`, "invalid_redirect_uri"},
		{"DR-05 one bad among good", "application/json", `{"redirect_uris":["https://app.example/cb","data:x"]}`, "invalid_redirect_uri"},
		{"DR-10 nothing left", "application/json", `{"redirect_uris":["https://app.example/cb"],"grant_types":["password"]}`, "invalid_client_metadata"},
		{"A15 too large is 400 too", "application/json", `{"x":"` + strings.Repeat("a", 70<<10) + `"}`, "invalid_client_metadata"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := g.post("192.0.2.1", tt.contentType, tt.body)
			if got := decode(t, w.Body); w.Code != http.StatusBadRequest || got["error"] != tt.want {
				t.Errorf("%d %v, want 400 %s", w.Code, got, tt.want)
			}
		})
	}
	t.Run("DR-03 no row", func(t *testing.T) {
		events, err := db.ListEvents(t.Context(), 10)
		if list := g.clients(t); len(list) != 0 || len(events) != 0 || err != nil {
			t.Errorf("refused registrations left %d clients and %d events (%v)", len(list), len(events), err)
		}
	})
	t.Run("GET", func(t *testing.T) {
		w := httptest.NewRecorder()
		g.http.ServeHTTP(w, httptest.NewRequest("GET", "/register", nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("status %d, want 405", w.Code)
		}
	})
}

func TestRegisterClosed(t *testing.T) {
	t.Parallel()
	g := newRegistrar(t, testkit.OpenSQLite(t), func(o *registration.Options) { o.Policy = registration.Policy{} })
	for authorization, challenge := range map[string]string{"": "Bearer", "Bearer ost_iat_" + strings.Repeat("A", 43): `Bearer error="invalid_token"`} {
		r := httptest.NewRequest("POST", "/register", strings.NewReader(quill))
		r.Header.Set("Content-Type", "application/json")
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		g.http.ServeHTTP(w, r)
		got := decode(t, w.Body)
		if w.Code != http.StatusUnauthorized || got["error"] != "invalid_token" || w.Header().Get("WWW-Authenticate") != challenge {
			t.Errorf("DR-01 closed, Authorization %q: %d %v %v", authorization, w.Code, w.Header(), got)
		}
		if len(g.clients(t)) != 0 {
			t.Error("DR-01: a client was registered")
		}
	}
}

// TestDR13_Budgets: the limits count rows, so the new is refused and nothing is evicted.
func TestDR13_Budgets(t *testing.T) {
	t.Parallel()
	g := newRegistrar(t, testkit.OpenSQLite(t), func(o *registration.Options) { o.Policy.PerSource, o.Policy.Total = 2, 5 })
	try := func(name, ip string, want int) {
		t.Helper()
		w := g.post(ip, "application/json", named(name))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, want, w.Body)
		}
		if got := decode(t, w.Body); want == http.StatusTooManyRequests && (w.Header().Get("Retry-After") != "600" || got["error"] != "temporarily_unavailable") {
			t.Errorf("A15: %s: Retry-After %q, body %v", name, w.Header().Get("Retry-After"), got)
		}
	}
	try("first", "2001:db8::1", http.StatusCreated)
	try("second, another address of the /64", "2001:db8::2", http.StatusCreated)
	try("third", "2001:db8::3", http.StatusTooManyRequests)
	try("another /64", "2001:db8:0:1::1", http.StatusCreated)
	try("IPv4", "192.0.2.1", http.StatusCreated)
	try("IPv4 mapped is the same source", "::ffff:192.0.2.1", http.StatusCreated)
	try("total", "192.0.2.2", http.StatusTooManyRequests)
	g.now = g.now.Add(time.Hour + time.Second)
	try("an hour later", "2001:db8::3", http.StatusCreated)
	if n := len(g.clients(t)); n != 6 {
		t.Errorf("%d clients, want the 6 that were answered 201", n)
	}
}

func TestRegisterLimit(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	g := newRegistrar(t, testkit.OpenSQLite(t), func(o *registration.Options) {
		o.Limit = func(_ context.Context, source string) (time.Duration, error) {
			asked.Add(1)
			if source == "192.0.2.9" {
				return 90 * time.Second, nil
			}
			return 0, nil
		}
	})
	if w := g.post("192.0.2.9", "application/json", `not even JSON`); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "90" {
		t.Errorf("limited: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	if w := g.post("192.0.2.1", "application/json", quill); w.Code != http.StatusCreated || asked.Load() != 2 {
		t.Errorf("not limited: %d after %d questions", w.Code, asked.Load())
	}
}

func TestA14_ScopeIsNarrowed(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	g := newRegistrar(t, db, nil)
	scopeOf := func(scope string) any {
		t.Helper()
		w := g.post("192.0.2.1", "application/json", `{"redirect_uris":["https://app.example/cb"],"scope":"`+scope+`"}`)
		return decode(t, w.Body)["scope"]
	}
	if got := scopeOf("anything goes"); got != "anything goes" {
		t.Errorf("without resources: scope %v", got)
	}
	if err := db.CreateResource(t.Context(), resource.Resource{Identifier: "https://mcp.example", Canonical: "https://mcp.example", Name: "M",
		Scopes: []resource.Scope{{Name: "read"}, {Name: "write"}, {Name: "admin", Restricted: true}}, CreatedAt: g.now, UpdatedAt: g.now}); err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[string]any{
		"write unknown read offline_access": "write read offline_access",
		"SC-04 admin read":                  "read",
		"unknown":                           nil,
		"":                                  nil,
	} {
		if got := scopeOf(scope); got != want {
			t.Errorf("scope %q became %v, want %v", scope, got, want)
		}
	}
}

func TestResolver(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	g := newRegistrar(t, db, nil)
	id := decode(t, g.post("192.0.2.1", "application/json", quill).Body)["client_id"].(string)
	r := &registration.Resolver{Clients: db}
	if c, err := r.Resolve(t.Context(), id); err != nil || c.ID != id {
		t.Errorf("Resolve(%q) = %v, %v", id, c, err)
	}
	var fromURL *registration.ClientURLError
	if _, err := r.Resolve(t.Context(), "https://claude.ai/oauth/mcp-oauth-client-metadata"); !errors.As(err, &fromURL) || fromURL.Problem != registration.ProblemURL {
		t.Errorf("a URL without Documents: %v", err)
	}
	for clientID, want := range map[string]error{
		"nobody": store.ErrNotFound, "": store.ErrNotFound, "a\x00b": store.ErrNotFound, id + " ": store.ErrNotFound,
		"http://app.example": store.ErrNotFound, strings.Repeat("a", 257): store.ErrNotFound, "' OR ''='": store.ErrNotFound,
	} {
		if _, err := r.Resolve(t.Context(), clientID); !errors.Is(err, want) {
			t.Errorf("Resolve(%q) = %v, want %v", clientID, err, want)
		}
	}
}

// D35, DR-13: what anybody can send makes no large audit row.
func TestD35_RegistrationEventIsSmall(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		g := newRegistrar(t, db, nil)
		uris := make([]string, 20)
		for i := range uris {
			uris[i] = fmt.Sprintf("https://app%d.example/%s", i, strings.Repeat("a", 1500))
		}
		body, err := json.Marshal(map[string]any{"redirect_uris": uris, "client_name": "Quill"})
		if err != nil {
			t.Fatal(err)
		}
		if w := g.post("192.0.2.1", "application/json", string(body)); w.Code != http.StatusCreated {
			t.Fatalf("register: %d %s", w.Code, w.Body)
		}
		events, err := db.ListEvents(t.Context(), 1)
		want := map[string]string{"client_name": "Quill", "redirect_uris": "20", "redirect_host": "app0.example"}
		if err != nil || len(events) != 1 || !cmp.Equal(events[0].Detail, want) {
			t.Errorf("events %.500v, %v; want detail %v", events, err, want)
		}
	})
}

// limitFor is a limiter that makes one source wait.
func limitFor(source string, wait time.Duration) func(context.Context, string) (time.Duration, error) {
	return func(_ context.Context, s string) (time.Duration, error) {
		if s == source {
			return wait, nil
		}
		return 0, nil
	}
}
