package registration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

func newTokens(g *registrar) *registration.InitialAccessTokens {
	return &registration.InitialAccessTokens{Store: g.db, Tx: g.db, Audit: g.db, Now: func() time.Time { return g.now }}
}

func wantToken(o *registration.Options) { o.Policy.Mode = registration.ModeToken }

func TestInitialAccessTokens(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		g := newRegistrar(t, db, wantToken)
		tokens := newTokens(g)
		added, secret, err := tokens.Add(t.Context(), registration.NewInitialAccessToken{Name: "Atlas team", Uses: 2, Life: time.Hour})
		if err != nil || !strings.HasPrefix(secret.Reveal(), "ost_iat_") {
			t.Fatalf("Add: %v", err)
		}
		register := func(name, token string) *httptest.ResponseRecorder {
			return g.do("POST", "/register", token, named(name))
		}
		refused := func(name, token, challenge string) {
			t.Helper()
			w := register(name, token)
			if got := decode(t, w.Body); w.Code != http.StatusUnauthorized || got["error"] != "invalid_token" || w.Header().Get("WWW-Authenticate") != challenge {
				t.Errorf("%s: %d %v %q", name, w.Code, got, w.Header().Get("WWW-Authenticate"))
			}
		}
		const invalid = `Bearer error="invalid_token"`
		refused("DR-01 missing", "", "Bearer")
		refused("DR-01 wrong", "ost_iat_"+strings.Repeat("A", 43), invalid)
		refused("DR-01 another kind of token", "ost_rt_"+strings.Repeat("A", 43), invalid)
		if w := g.do("POST", "/register", secret.Reveal(), `{"redirect_uris":["data:x"]}`); w.Code != http.StatusBadRequest {
			t.Errorf("bad metadata: %d", w.Code)
		}
		g.now = g.now.Add(time.Second)
		if w := register("one", secret.Reveal()); w.Code != http.StatusCreated {
			t.Fatalf("first use: %d %s", w.Code, w.Body)
		}
		events, err := db.ListEvents(t.Context(), 1)
		if err != nil || events[0].Name != "client.registered" || events[0].Detail["initial_access_token"] != added.ID {
			t.Errorf("D35: events %+v, %v", events, err)
		}
		if w := register("one", secret.Reveal()); w.Code != http.StatusCreated {
			t.Fatalf("a refused registration must not have used it up: %d", w.Code)
		}
		refused("DR-01 reused", secret.Reveal(), invalid)
		if n := len(g.clients(t)); n != 2 {
			t.Errorf("%d clients, want 2: who has a token gets a client of its own each time", n)
		}
		list, err := tokens.List(t.Context())
		if err != nil || len(list) != 1 || list[0].Uses != 2 || !list[0].LastUsedAt.Equal(g.now) || list[0].Usable(g.now) || string(list[0].Hash) == secret.Reveal() {
			t.Errorf("List = %+v, %v", list, err)
		}

		_, expiring, err := tokens.Add(t.Context(), registration.NewInitialAccessToken{Name: "B", Life: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		g.now = g.now.Add(time.Minute)
		refused("DR-01 expired", expiring.Reveal(), invalid)

		gone, removed, err := tokens.Add(t.Context(), registration.NewInitialAccessToken{Name: "C"})
		if err != nil {
			t.Fatal(err)
		}
		if err := tokens.Remove(t.Context(), gone.ID); err != nil {
			t.Fatal(err)
		}
		refused("removed", removed.Reveal(), invalid)
	})
}

func TestInitialAccessTokenAddRefuses(t *testing.T) {
	t.Parallel()
	tokens := newTokens(newRegistrar(t, testkit.OpenSQLite(t), wantToken))
	for name, o := range map[string]registration.NewInitialAccessToken{
		"no name":       {},
		"negative uses": {Name: "A", Uses: -1},
		"too many uses": {Name: "A", Uses: 1_000_001},
		"too short":     {Name: "A", Life: time.Second},
		"for ever":      {Name: "A", Life: 366 * 24 * time.Hour},
	} {
		if _, _, err := tokens.Add(t.Context(), o); oauth.Code(err) != "invalid_request" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of many registrations with the last use of a token, in two processes, one is made.
func TestDR01_LastUseOfATokenRace(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		processes := []*registrar{newRegistrar(t, db, wantToken), newRegistrar(t, db, wantToken)}
		_, secret, err := newTokens(processes[0]).Add(t.Context(), registration.NewInitialAccessToken{Name: "A"})
		if err != nil {
			t.Fatal(err)
		}
		codes := inParallel(16, func(i int) int {
			return processes[i%2].do("POST", "/register", secret.Reveal(), named(fmt.Sprint("App ", i))).Code
		})
		if codes[http.StatusCreated] != 1 || codes[http.StatusUnauthorized] != 15 || len(processes[0].clients(t)) != 1 {
			t.Errorf("answers %v, %d clients; want one 201", codes, len(processes[0].clients(t)))
		}
	})
}

// inParallel counts the answers of n calls at once.
func inParallel(n int, call func(i int) int) map[int]int {
	var wg sync.WaitGroup
	answers := make([]int, n)
	for i := range n {
		wg.Go(func() { answers[i] = call(i) })
	}
	wg.Wait()
	count := map[int]int{}
	for _, a := range answers {
		count[a]++
	}
	return count
}

// DR-02: the endpoint knows no cookies, so being signed in is no way round the policy.
func TestDR02_SignedIn(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	for mode, want := range map[registration.Mode]int{registration.ModeClosed: http.StatusForbidden, registration.ModeToken: http.StatusUnauthorized} {
		g := newRegistrar(t, db, func(o *registration.Options) { o.Policy.Mode = mode })
		r := httptest.NewRequest("POST", "/register", strings.NewReader(quill))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Cookie", "__Host-session=anything")
		w := httptest.NewRecorder()
		if g.http.ServeHTTP(w, r); w.Code != want || len(g.clients(t)) != 0 {
			t.Errorf("%s: %d, want %d", mode, w.Code, want)
		}
	}
}

func TestPolicyRedirects(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	g := newRegistrar(t, db, func(o *registration.Options) {
		manage(o)
		o.Policy.RedirectHosts = []string{"atlas.example", "*.corp.example"}
		o.Policy.RedirectSchemes = []string{"https", "com.example.app"}
	})
	for _, tt := range []struct {
		uri string
		ok  bool
	}{
		{"https://atlas.example/cb", true},
		{"https://atlas.example:8443/cb", true},
		{"https://ATLAS.example/cb", true},
		{"https://tools.corp.example/cb", true},
		{"https://a.b.corp.example/cb", true},
		{"https://corp.example/cb", false},
		{"https://evilcorp.example/cb", false},
		{"https://atlas.example.evil.example/cb", false},
		{"https://claude.ai/cb", false},
		{"http://localhost/cb", false},
		{"com.example.app:/cb", true},
		{"com.example.other:/cb", false},
	} {
		t.Run(tt.uri, func(t *testing.T) {
			body := fmt.Sprintf(`{"redirect_uris":["https://atlas.example/1",%q],"token_endpoint_auth_method":"none"}`, tt.uri)
			w := g.post("192.0.2.1", "application/json", body)
			got := decode(t, w.Body)
			if ok := w.Code == http.StatusCreated; ok != tt.ok {
				t.Fatalf("%d %v, want accepted: %t", w.Code, got, tt.ok)
			}
			if description, _ := got["error_description"].(string); !tt.ok && (got["error"] != "invalid_redirect_uri" || !strings.HasPrefix(description, "redirect_uris[1]: ")) {
				t.Errorf("A10: %v", got)
			}
		})
	}
	t.Run("update", func(t *testing.T) {
		m := newManaged(t, db, atlas, manage) // registered before the list was made
		w := g.do("PUT", m.path(), m.token, m.document(t, map[string]any{"redirect_uris": []string{"https://claude.ai/cb"}}))
		if got := decode(t, w.Body); w.Code != http.StatusBadRequest || got["error"] != "invalid_redirect_uri" {
			t.Errorf("%d %v", w.Code, got)
		}
	})
}

func TestRepeatedRegistration(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		id := func(g *registrar, ip, body string) string {
			t.Helper()
			w := g.post(ip, "application/json", body)
			if w.Code != http.StatusCreated {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			return decode(t, w.Body)["client_id"].(string)
		}
		t.Run("the same client", func(t *testing.T) {
			g := newRegistrar(t, db, func(o *registration.Options) { o.Policy.PerSource = 1 })
			body := named("Same")
			first := id(g, "192.0.2.10", body)
			for range 3 {
				if again := id(g, "192.0.2.10", strings.Replace(body, "{", `{"unknown":1,`, 1)); again != first {
					t.Errorf("%s, want %s", again, first)
				}
			}
		})
		for _, tt := range []struct {
			name   string
			change func(t *testing.T, g *registrar, c *registration.Client)
			again  string // "" for the same
		}{
			{name: "another source", again: "192.0.2.99"},
			{name: "it was used", change: func(t *testing.T, g *registrar, c *registration.Client) {
				if err := g.db.TouchClient(t.Context(), c.ID, g.now); err != nil {
					t.Fatal(err)
				}
			}},
			{name: "it has a grant", change: func(t *testing.T, g *registrar, c *registration.Client) {
				(&managed{registrar: g, id: c.ID}).approve(t)
			}},
			{name: "it is verified", change: func(_ *testing.T, g *registrar, c *registration.Client) { c.VerifiedAt = g.now }},
			{name: "it is disabled", change: func(_ *testing.T, g *registrar, c *registration.Client) { c.DisabledAt = g.now }},
			{name: "it is blocked", change: func(_ *testing.T, g *registrar, c *registration.Client) { c.BlockedAt = g.now }},
			{name: "it is limited", change: func(_ *testing.T, _ *registrar, c *registration.Client) {
				c.Resources = []string{"https://mcp.example"}
			}},
			{name: "it manages itself", change: func(_ *testing.T, _ *registrar, c *registration.Client) { c.RegistrationTokenHash = []byte{1} }},
		} {
			t.Run(tt.name, func(t *testing.T) {
				g := newRegistrar(t, db, nil)
				source, body := "192.0.2.20", named(tt.name)
				first := id(g, source, body)
				if tt.change != nil {
					c, err := db.GetClient(t.Context(), first)
					if err != nil {
						t.Fatal(err)
					}
					tt.change(t, g, &c)
					if err := db.UpdateClient(t.Context(), c); err != nil {
						t.Fatal(err)
					}
				}
				if tt.again != "" {
					source = tt.again
				}
				if again := id(g, source, body); again == first {
					t.Error("the same client was given out again")
				}
			})
		}
		t.Run("a client with a secret", func(t *testing.T) {
			g := newRegistrar(t, db, nil)
			first, second := id(g, "192.0.2.30", atlas), id(g, "192.0.2.30", atlas)
			if first == second {
				t.Error("a secret is for one")
			}
		})
		t.Run("a public client with a token", func(t *testing.T) {
			g := newRegistrar(t, db, func(o *registration.Options) { o.Policy.Management = registration.ManageAll })
			first, second := id(g, "192.0.2.31", quill), id(g, "192.0.2.31", quill)
			if first == second {
				t.Error("a registration access token is for one")
			}
		})
		t.Run("two processes at once", func(t *testing.T) {
			processes := []*registrar{newRegistrar(t, db, nil), newRegistrar(t, db, nil)}
			var ids sync.Map
			codes := inParallel(16, func(i int) int {
				w := processes[i%2].post("192.0.2.40", "application/json", named("Racer"))
				ids.Store(decode(t, w.Body)["client_id"], true)
				return w.Code
			})
			var different int
			ids.Range(func(any, any) bool { different++; return true })
			if codes[http.StatusCreated] != 16 || different != 1 {
				t.Errorf("%v, %d clients, want one", codes, different)
			}
		})
	})
}

// DR-13, A38: budgets are exact with two processes, and what people use gives
// its place back, so that hosted clients behind one address go on.
func TestDR13_BudgetsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		t.Parallel()
		budget := func(o *registration.Options) { o.Policy.PerSource, o.Policy.Total = 10, 1000 }
		processes := []*registrar{newRegistrar(t, db, budget), newRegistrar(t, db, budget)}
		codes := inParallel(40, func(i int) int {
			return processes[i%2].post("192.0.2.1", "application/json", named(fmt.Sprint("App ", i))).Code
		})
		if codes[http.StatusCreated] != 10 || codes[http.StatusTooManyRequests] != 30 || len(processes[0].clients(t)) != 10 {
			t.Fatalf("%v, %d clients; want exactly the budget of 10", codes, len(processes[0].clients(t)))
		}
		if w := processes[0].post("192.0.2.2", "application/json", quill); w.Code != http.StatusCreated {
			t.Errorf("another source: %d", w.Code)
		}
		g := processes[0]
		hosted := func(i int) int {
			return g.post("160.79.104.1", "application/json", fmt.Sprintf(`{"redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"client_name":"Claude %d"}`, i)).Code
		}
		for i := range 30 {
			if code := hosted(i); code != http.StatusCreated {
				t.Fatalf("A38: connection %d of a hosted client: %d", i, code)
			}
			list := g.clients(t)
			for _, c := range list {
				if c.Source == "160.79.104.1" && c.LastUsedAt.IsZero() { // somebody approved it
					if err := db.TouchClient(t.Context(), c.ID, g.now); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

// 10,000 registrations from one source stop at the budget, while another source
// still registers (issue 3).
func TestDR13_TenThousand(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	g := newRegistrar(t, db, func(o *registration.Options) { o.Policy.PerSource, o.Policy.Total = 50, 1000 })
	created := 0
	for i := range 10_000 {
		w := g.post("192.0.2.1", "application/json", named(fmt.Sprint("App ", i)))
		switch w.Code {
		case http.StatusCreated:
			created++
		case http.StatusTooManyRequests:
			if w.Header().Get("Retry-After") == "" {
				t.Fatal("429 without Retry-After")
			}
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if i%1000 == 500 {
			if w := g.post("192.0.2.2", "application/json", named(fmt.Sprint("Other ", i))); w.Code != http.StatusCreated {
				t.Fatalf("another source after %d: %d", i, w.Code)
			}
		}
	}
	if n := len(g.clients(t)); created != 50 || n != 60 {
		t.Errorf("%d created, %d rows; want 50 and the other source's 10", created, n)
	}
}

func TestNewChecksThePolicy(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	for name, policy := range map[string]registration.Policy{
		"unknown mode":                  {Mode: "ajar"},
		"unknown management":            {Management: "some"},
		"negative budget":               {PerSource: -1},
		"token without tokens":          {Mode: registration.ModeToken},
		"statement without issuers":     {Mode: registration.ModeStatement},
		"management without an issuer":  {Management: registration.ManageAll},
		"management without the grants": {Management: registration.ManageConfidential},
	} {
		_, err := registration.New(registration.Options{Edge: endpoint.New(endpoint.Options{}), Clients: db, Audit: db, Tx: db, Policy: policy})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
