package registration_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// atlas is a confidential client: by default it may manage itself.
const atlas = `{"redirect_uris":["https://atlas.example/cb"],"client_name":"Atlas","token_endpoint_auth_method":"client_secret_post"}`

// managed is a client that registered itself and holds its token.
type managed struct {
	*registrar
	id, secret, token string
	metadata          map[string]any
}

func manage(o *registration.Options) { o.Policy.Management = registration.ManageConfidential }

func newManaged(t *testing.T, db *sqlstore.Store, body string, change func(*registration.Options)) *managed {
	t.Helper()
	g := newRegistrar(t, db, change)
	w := g.post("192.0.2.1", "application/json", body)
	if w.Code != http.StatusCreated {
		t.Fatalf("register: %d %s", w.Code, w.Body)
	}
	m := &managed{registrar: g, metadata: decode(t, w.Body)}
	m.id, _ = m.metadata["client_id"].(string)
	m.secret, _ = m.metadata["client_secret"].(string)
	m.token, _ = m.metadata["registration_access_token"].(string)
	return m
}

func (m *managed) path() string { return "/register/" + m.id }

// document is what the client sends to change members of its registration.
func (m *managed) document(t *testing.T, changes map[string]any) string {
	t.Helper()
	doc := maps.Clone(m.metadata)
	for _, name := range []string{"client_secret", "client_secret_expires_at", "client_id_issued_at", "registration_client_uri", "registration_access_token"} {
		delete(doc, name)
	}
	maps.Copy(doc, changes)
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (m *managed) put(t *testing.T, token string, changes map[string]any) *httptest.ResponseRecorder {
	t.Helper()
	return m.do("PUT", m.path(), token, m.document(t, changes))
}

func (m *managed) row(t *testing.T) registration.Client {
	t.Helper()
	c, err := m.db.GetClient(t.Context(), m.id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// approve gives the client a live grant and a remembered consent.
func (m *managed) approve(t *testing.T) {
	t.Helper()
	g := grant.Grant{ID: "grant-" + m.id, ClientID: m.id, Subject: "ada", Resource: "https://mcp.example", Salt: []byte("salt"), Generation: 1,
		RedirectURI: "https://atlas.example/cb", CodeExpiresAt: m.now, ExpiresAt: m.now.Add(365 * 24 * time.Hour),
		RefreshExpiresAt: m.now.Add(30 * 24 * time.Hour), AdvancedAt: m.now, CreatedAt: m.now}
	if err := m.db.CreateGrant(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	c := consent.Consent{Subject: "ada", ClientID: m.id, RedirectURI: g.RedirectURI, Resource: g.Resource, CreatedAt: m.now, UpdatedAt: m.now}
	if err := m.db.PutConsent(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func (m *managed) isRemembered(t *testing.T) bool {
	t.Helper()
	has, err := m.db.HasConsent(t.Context(), "ada", m.id, "https://atlas.example/cb")
	if err != nil {
		t.Fatal(err)
	}
	return has
}

func TestRFC7592_Manage(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		m := newManaged(t, db, atlas, manage)
		if m.metadata["registration_client_uri"] != "https://id.example.com"+m.path() || !strings.HasPrefix(m.token, "ost_rat_") || len(m.token) != 51 {
			t.Fatalf("3: response %v", m.metadata)
		}
		if c := m.row(t); !c.CheckRegistrationToken(oauth.Secret(m.token)) || strings.Contains(fmt.Sprintf("%+v %s", c, c.RegistrationTokenHash), m.token) {
			t.Error("D16: the row must hold the hash of the token and nothing more of it")
		}
		t.Run("2.1 read", func(t *testing.T) {
			w := m.do("GET", m.path(), m.token, "")
			want := maps.Clone(m.metadata)
			delete(want, "client_secret") // DR-17: it is shown once
			delete(want, "client_secret_expires_at")
			if got := decode(t, w.Body); w.Code != http.StatusOK || !cmp.Equal(got, want) || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%d %s", w.Code, cmp.Diff(want, got))
			}
		})
		t.Run("2.2 update", func(t *testing.T) {
			m.now = m.now.Add(time.Second)
			w := m.put(t, m.token, map[string]any{"client_name": "Atlas 2", "client_secret": m.secret})
			got := decode(t, w.Body)
			next, _ := got["registration_access_token"].(string)
			if w.Code != http.StatusOK || got["client_name"] != "Atlas 2" || next == "" || next == m.token || got["client_secret"] != nil {
				t.Fatalf("%d %v", w.Code, got)
			}
			if w := m.do("GET", m.path(), m.token, ""); w.Code != http.StatusUnauthorized {
				t.Errorf("the replaced token still works: %d", w.Code)
			}
			m.token = next
			c := m.row(t)
			if c.Metadata.ClientName != "Atlas 2" || c.DocumentHash != c.Metadata.Hash() || !c.CheckSecret(oauth.Secret(m.secret), m.now) {
				t.Errorf("row %+v", c)
			}
			events, err := db.ListEvents(t.Context(), 1)
			if err != nil || events[0].Name != "client.updated" || events[0].Actor != m.id {
				t.Errorf("D35: events %+v, %v", events, err)
			}
		})
		t.Run("2.2 what is left out is gone", func(t *testing.T) {
			w := m.do("PUT", m.path(), m.token, `{"client_id":"`+m.id+`","redirect_uris":["https://atlas.example/cb"],"token_endpoint_auth_method":"client_secret_post"}`)
			got := decode(t, w.Body)
			m.token, _ = got["registration_access_token"].(string)
			if w.Code != http.StatusOK || got["client_name"] != nil || m.row(t).Metadata.ClientName != "" {
				t.Errorf("%d %v", w.Code, got)
			}
		})
		t.Run("2.3 delete", func(t *testing.T) {
			m.now = m.now.Add(time.Second)
			m.approve(t)
			if w := m.do("DELETE", m.path(), m.token, ""); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			g, err := db.GetGrant(t.Context(), "grant-"+m.id)
			if err != nil || g.EndedAt.IsZero() || g.EndReason != grant.ReasonClient || m.isRemembered(t) {
				t.Errorf("grant %+v, %v; remembered %t", g, err, m.isRemembered(t))
			}
			for _, method := range []string{"GET", "DELETE"} {
				if w := m.do(method, m.path(), m.token, ""); w.Code != http.StatusUnauthorized {
					t.Errorf("2.1: %s of a client that is gone: %d, want 401", method, w.Code)
				}
			}
			events, err := db.ListEvents(t.Context(), 1)
			if err != nil || events[0].Name != "client.removed" || events[0].Actor != m.id || events[0].Detail["grants_ended"] != "1" {
				t.Errorf("D35: events %+v, %v", events, err)
			}
		})
	})
}

func TestRFC7592_WhoMayManage(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	for _, tt := range []struct {
		name, body string
		management registration.Management
		want       bool
	}{
		{"confidential keeps one", atlas, registration.ManageConfidential, true},
		{"none gets none", quill, registration.ManageConfidential, false},
		{"none gets one where all do", quill, registration.ManageAll, true},
		{"off", atlas, registration.ManageNone, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newManaged(t, db, tt.body, func(o *registration.Options) { o.Policy.Management = tt.management })
			if got := m.token != "" && m.metadata["registration_client_uri"] != nil; got != tt.want || (len(m.row(t).RegistrationTokenHash) > 0) != tt.want {
				t.Errorf("token given: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestRFC7592_Refuses(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	m, other := newManaged(t, db, atlas, manage), newManaged(t, db, atlas, manage)
	public := newManaged(t, db, quill, manage)
	for _, tt := range []struct{ name, path, token, challenge string }{
		{"DR-01 no token", m.path(), "", "Bearer"},
		{"DR-01 a wrong token", m.path(), "ost_rat_" + strings.Repeat("A", 43), `Bearer error="invalid_token"`},
		{"DR-01 another client's token", m.path(), other.token, `Bearer error="invalid_token"`},
		{"DR-01 the client secret", m.path(), m.secret, `Bearer error="invalid_token"`},
		{"2.1 unknown client", "/register/nobody", m.token, `Bearer error="invalid_token"`},
		{"2.1 what can be no client_id", "/register/a%00b", m.token, `Bearer error="invalid_token"`},
		{"a client that has no token", public.path(), m.token, `Bearer error="invalid_token"`},
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			t.Run(tt.name+" "+method, func(t *testing.T) {
				w := m.do(method, tt.path, tt.token, m.document(t, nil))
				if got := decode(t, w.Body); w.Code != http.StatusUnauthorized || got["error"] != "invalid_token" || w.Header().Get("WWW-Authenticate") != tt.challenge {
					t.Errorf("%d %v, challenge %q", w.Code, got, w.Header().Get("WWW-Authenticate"))
				}
			})
		}
	}
	t.Run("the token is read from the header alone", func(t *testing.T) {
		if w := m.do("GET", m.path()+"?access_token="+m.token, "", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("%d, want 401", w.Code)
		}
	})
	for _, tt := range []struct {
		name    string
		changes map[string]any
		want    string
	}{
		{"2.2 client_id of another", map[string]any{"client_id": other.id}, "invalid_client_metadata"},
		{"2.2 a secret of its own choice", map[string]any{"client_secret": "letmein"}, "invalid_client_metadata"},
		{"2.2 registration_access_token", map[string]any{"registration_access_token": m.token}, "invalid_client_metadata"},
		{"2.2 registration_client_uri", map[string]any{"registration_client_uri": "https://x.example"}, "invalid_client_metadata"},
		{"2.2 client_secret_expires_at", map[string]any{"client_secret_expires_at": 0}, "invalid_client_metadata"},
		{"2.2 client_id_issued_at", map[string]any{"client_id_issued_at": 1}, "invalid_client_metadata"},
		{"DR-05 one bad redirect URI", map[string]any{"redirect_uris": []string{"https://atlas.example/cb", "javascript:alert(1)"}}, "invalid_redirect_uri"},
		{"DR-08 jwks and jwks_uri", map[string]any{"token_endpoint_auth_method": "private_key_jwt", "jwks": map[string]any{"keys": []any{}}, "jwks_uri": "https://atlas.example/jwks"}, "invalid_client_metadata"},
		{"DR-19 a machine grant", map[string]any{"grant_types": []string{"client_credentials"}}, "invalid_client_metadata"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := m.row(t)
			w := m.put(t, m.token, tt.changes)
			if got := decode(t, w.Body); w.Code != http.StatusBadRequest || got["error"] != tt.want {
				t.Errorf("%d %v, want 400 %s", w.Code, got, tt.want)
			}
			if after := m.row(t); !cmp.Equal(before, after) {
				t.Errorf("a refused update changed the row: %s", cmp.Diff(before, after))
			}
		})
	}
	t.Run("DR-03 text/plain", func(t *testing.T) {
		r := httptest.NewRequest("PUT", m.path(), strings.NewReader(m.document(t, nil)))
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("Authorization", "Bearer "+m.token)
		w := httptest.NewRecorder()
		if m.http.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
			t.Errorf("%d, want 400", w.Code)
		}
	})
}

// DR-16: what people allowed was for the old redirect URIs.
func TestDR16_UpdateWhileGrantsExist(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		for _, tt := range []struct {
			name                 string
			changes              map[string]any
			remembered, verified bool
		}{
			{"redirect URIs", map[string]any{"redirect_uris": []string{"https://atlas.example/other"}}, false, false},
			{"authentication", map[string]any{"token_endpoint_auth_method": "none"}, false, false},
			{"the name", map[string]any{"client_name": "Your Bank"}, true, false},
			{"the version", map[string]any{"software_version": "2"}, true, true},
		} {
			t.Run(tt.name, func(t *testing.T) {
				m := newManaged(t, db, atlas, manage)
				m.approve(t)
				c := m.row(t)
				c.VerifiedAt = m.now
				if err := db.UpdateClient(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if w := m.put(t, m.token, tt.changes); w.Code != http.StatusOK {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				after := m.row(t)
				if got := m.isRemembered(t); got != tt.remembered {
					t.Errorf("consent remembered: %t, want %t", got, tt.remembered)
				}
				if got := !after.VerifiedAt.IsZero(); got != tt.verified {
					t.Errorf("still verified: %t, want %t", got, tt.verified)
				}
				if after.DocumentHash == c.DocumentHash {
					t.Error("the document hash must change, so that people are asked again")
				}
				g, err := db.GetGrant(t.Context(), "grant-"+m.id)
				if err != nil || !g.EndedAt.IsZero() || g.RedirectURI != "https://atlas.example/cb" {
					t.Errorf("the grant must stay, bound to what it was given for: %+v, %v", g, err)
				}
			})
		}
	})
}

func TestRFC7592_SecretFollowsTheMethod(t *testing.T) {
	t.Parallel()
	m := newManaged(t, testkit.OpenSQLite(t), atlas, manage)
	step := func(method string) map[string]any {
		t.Helper()
		w := m.put(t, m.token, map[string]any{"token_endpoint_auth_method": method})
		got := decode(t, w.Body)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %v", method, w.Code, got)
		}
		m.token = got["registration_access_token"].(string)
		return got
	}
	if got := step("client_secret_basic"); got["client_secret"] != nil || len(m.row(t).SecretHash) == 0 {
		t.Errorf("post to basic keeps the secret: %v", got)
	}
	if got := step("none"); got["client_secret"] != nil || m.row(t).SecretHash != nil {
		t.Errorf("none has no secret: %v", got)
	}
	got := step("client_secret_basic")
	secret, _ := got["client_secret"].(string)
	if c := m.row(t); len(secret) != 43 || secret == m.secret || !c.CheckSecret(oauth.Secret(secret), m.now) || got["client_secret_expires_at"] != float64(0) {
		t.Errorf("back to a secret makes a new one: %v", got)
	}
}

func TestRFC7592_SwitchedOffAndClosed(t *testing.T) {
	t.Parallel()
	m := newManaged(t, testkit.OpenSQLite(t), atlas, manage)
	closed := newRegistrar(t, m.db, func(o *registration.Options) {
		o.Policy = registration.Policy{Mode: registration.ModeClosed, Management: registration.ManageConfidential}
	})
	for method, want := range map[string]int{"GET": http.StatusOK, "PUT": http.StatusForbidden} {
		if w := closed.do(method, m.path(), m.token, m.document(t, nil)); w.Code != want {
			t.Errorf("%s while registration is closed: %d, want %d: %s", method, w.Code, want, w.Body)
		}
	}
	for name, off := range map[string]func(c *registration.Client){
		"disabled": func(c *registration.Client) { c.DisabledAt = m.now },
		"blocked":  func(c *registration.Client) { c.DisabledAt, c.BlockedAt = time.Time{}, m.now },
	} {
		c := m.row(t)
		off(&c)
		if err := m.db.UpdateClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			if w := m.do(method, m.path(), m.token, m.document(t, nil)); w.Code != http.StatusForbidden {
				t.Errorf("%s of a client that is %s: %d, want 403", method, name, w.Code)
			}
		}
	}
}

func TestRFC7592_Limit(t *testing.T) {
	t.Parallel()
	m := newManaged(t, testkit.OpenSQLite(t), atlas, manage)
	limited := newRegistrar(t, m.db, func(o *registration.Options) {
		manage(o)
		o.Limit = limitFor("192.0.2.1", 90*time.Second)
	})
	if w := limited.do("GET", m.path(), m.token, ""); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "90" {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
}

// Of many updates with one token, sent to two processes, one is made: otherwise
// the client could not know which token it has.
func TestRFC7592_UpdatesRace(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		m := newManaged(t, db, atlas, manage)
		second := newRegistrar(t, db, manage)
		var wg sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 16)
		for i := range answers {
			body, process := m.document(t, map[string]any{"client_name": fmt.Sprint("Atlas ", i)}), []*registrar{m.registrar, second}[i%2]
			wg.Go(func() { answers[i] = process.do("PUT", m.path(), m.token, body) })
		}
		wg.Wait()
		var won int
		for _, w := range answers {
			switch w.Code {
			case http.StatusOK:
				won++
				got := decode(t, w.Body)
				if c := m.row(t); c.Metadata.ClientName != got["client_name"] || !c.CheckRegistrationToken(oauth.Secret(got["registration_access_token"].(string))) {
					t.Errorf("the row is not what the winner was told: %v", got)
				}
			case http.StatusUnauthorized:
			default:
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		if won != 1 {
			t.Errorf("%d updates won, want 1", won)
		}
	})
}
