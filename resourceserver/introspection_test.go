package resourceserver_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// introspected is a fixture whose issuer is asked about tokens.
type introspected struct {
	*fixture
	mu     sync.Mutex
	answer map[string]any // per field; nil is {"active":false}
	raw    string         // instead of answer
	status int
	kind   string // content type
	forms  []url.Values
	auth   []string
	hold   chan struct{}
	asking atomic.Int32
}

func newIntrospected(t *testing.T, change ...func(*resourceserver.Options)) *introspected {
	t.Helper()
	n := &introspected{status: 200, kind: "application/json"}
	endpoint := httptest.NewServer(http.HandlerFunc(n.serve))
	t.Cleanup(endpoint.Close)
	n.fixture = newFixture(t, append([]func(*resourceserver.Options){trusting(func(i *resourceserver.Issuer) {
		i.Introspection = &resourceserver.Introspection{Endpoint: endpoint.URL, ClientID: "rs:1", ClientSecret: "s/ cret"}
	})}, change...)...)
	n.answer = n.issuer.claims(testResource, n.now, "notes:read")
	n.answer["active"] = true
	return n
}

func (n *introspected) serve(w http.ResponseWriter, r *http.Request) {
	n.asking.Add(1)
	_ = r.ParseForm()
	n.mu.Lock()
	n.forms, n.auth = append(n.forms, r.PostForm), append(n.auth, r.Header.Get("Authorization"))
	body, status, kind, hold := n.raw, n.status, n.kind, n.hold
	if body == "" && n.answer == nil {
		body = `{"active":false}`
	} else if body == "" {
		b, _ := json.Marshal(n.answer)
		body = string(b)
	}
	n.mu.Unlock()
	if hold != nil {
		<-hold
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func (n *introspected) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *introspected) asked() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.forms)
}

func TestIntrospection(t *testing.T) {
	t.Parallel()
	n := newIntrospected(t)
	if w := n.get("opaque-token"); w.Code != http.StatusOK {
		t.Fatalf("status = %d: %s", w.Code, w.Body)
	}
	got, _ := resourceserver.TokenFromContext(n.served[0].Context())
	want := &resourceserver.Token{Issuer: n.issuer.URL, Subject: "u_1", ClientID: "c_1", ID: "j_1",
		Audience: []string{testResource}, Scopes: []string{"notes:read"},
		IssuedAt: n.now, ExpiresAt: n.now.Add(10 * time.Minute)}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("token (-want +got):\n%s", d)
	}
	wantForm := url.Values{"token": {"opaque-token"}, "token_type_hint": {"access_token"}}
	if d := cmp.Diff(wantForm, n.forms[0]); d != "" {
		t.Errorf("form (-want +got):\n%s", d)
	}
	r := &http.Request{Header: http.Header{"Authorization": n.auth}}
	// RFC 6749 §2.3.1: form-encoded before they are joined
	if id, secret, _ := r.BasicAuth(); id != "rs%3A1" || secret != "s%2F+cret" {
		t.Errorf("credentials = %q, %q", id, secret)
	}
	t.Run("a JWT is verified here", func(t *testing.T) {
		if w := n.get(n.token(t, "notes:read")); w.Code != http.StatusOK || n.asked() != 1 {
			t.Errorf("status = %d, the issuer was asked %d times", w.Code, n.asked())
		}
		bad := n.issuer.sign(t, header("ES256", "nobody"), n.issuer.claims(testResource, n.now, ""))
		if w := n.get(bad); w.Code != http.StatusUnauthorized || n.asked() != 1 {
			t.Errorf("JW-07 a JWT that fails is not asked about: status = %d, asked %d times", w.Code, n.asked())
		}
	})
	t.Run("JW-04 everything else is asked about", func(t *testing.T) {
		for i, raw := range []string{"a.b.c.d.e", "a.b.c", "e30.e30.AA", "a.b"} {
			if w := n.get(raw); w.Code != http.StatusOK || n.asked() != 2+i {
				t.Errorf("%s: status = %d, asked %d times", raw, w.Code, n.asked())
			}
		}
	})
}

func TestIntrospectionAnswers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Unix()
	for _, tt := range []struct {
		name  string
		claim string
		value any // nil removes it
		want  int
	}{
		{"IR-03 active false", "active", false, 401},
		{"IR-03 active missing", "active", nil, 503},
		{"IR-03 active a string", "active", "true", 503},
		{"IR-03 active a number", "active", 1, 503},
		{"IR-02 AU-07 aud of another resource", "aud", "https://other.example/mcp", 401},
		{"IR-02 AU-07 no aud", "aud", nil, 401},
		{"AU-09 aud the client", "aud", "c_1", 401},
		{"M7 aud a list with ours", "aud", []string{"x", testResource + "/"}, 200},
		{"JW-14 another issuer", "iss", "https://evil.example", 401},
		{"JW-14 iss a list", "iss", []string{"https://evil.example"}, 401},
		{"iss left out, as RFC 7662 allows", "iss", nil, 200},
		{"JW-16 expired", "exp", now, 401},
		{"JW-16 no exp", "exp", nil, 401},
		{"JW-16 exp a string", "exp", "9999999999", 401},
		{"JW-16 nbf in the future", "nbf", now + 1, 401},
		{"JW-21 bound to a key", "cnf", map[string]any{"jkt": "x"}, 401},
		{"JW-21 token_type DPoP", "token_type", "DPoP", 401},
		{"IR-02 token_type of a refresh token", "token_type", "refresh_token", 401},
		{"IR-02 token_type a number", "token_type", 1, 401},
		{"token_type Bearer", "token_type", "bearer", 200},
		{"no sub", "sub", nil, 401},
		{"JW-20 no scope", "scope", nil, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newIntrospected(t)
			if n.answer[tt.claim] = tt.value; tt.value == nil {
				delete(n.answer, tt.claim)
			}
			w := n.get("opaque")
			if w.Code != tt.want || (n.servedCount() == 1) != (tt.want == 200) {
				t.Fatalf("status = %d, want %d; the handler ran %d times: %s", w.Code, tt.want, n.servedCount(), w.Body)
			}
			if tt.want == http.StatusUnauthorized {
				expect401(t, n.fixture, w, "invalid_token")
			}
		})
	}
	for _, tt := range []struct{ name, raw string }{
		{"active twice", `{"active":false,"active":true}`},
		{"Active", `{"Active":true}`},
		{"not an object", `[true]`},
		{"nothing", ` `},
		{"two documents", `{"active":true}{"active":true}`},
	} {
		t.Run("IR-03 "+tt.name, func(t *testing.T) {
			t.Parallel()
			n := newIntrospected(t)
			n.raw = tt.raw
			if w := n.get("opaque"); w.Code != http.StatusServiceUnavailable || n.servedCount() != 0 {
				t.Errorf("status = %d, want 503", w.Code)
			}
		})
	}
}

func TestIntrospectionKeycloakRefreshToken(t *testing.T) {
	t.Parallel()
	n := newIntrospected(t, func(o *resourceserver.Options) { o.Issuers[0].Profile = resourceserver.ProfileKeycloak })
	n.answer["typ"] = "Refresh"
	expect401(t, n.fixture, n.get("opaque"), "invalid_token") // IR-02
}

func TestM8_IntrospectionOutage(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*introspected){
		"status 500":           func(n *introspected) { n.status = 500 },
		"status 429":           func(n *introspected) { n.status = 429 },
		"IR-01 our own secret": func(n *introspected) { n.status = 401 },
		"status 400":           func(n *introspected) { n.status = 400 },
		"not JSON":             func(n *introspected) { n.kind = "text/html" },
		"65 KiB":               func(n *introspected) { n.raw = `{"active":true,"x":"` + strings.Repeat("a", 65<<10) + `"}` },
		"a redirect":           func(n *introspected) { n.status = 302 },
		"cut in the middle":    func(n *introspected) { n.raw = `{"active":tr` },
		"too many members":     func(n *introspected) { n.raw = `{"active":true` + manyMembers() + `}` },
	} {
		t.Run("M8 "+name, func(t *testing.T) {
			t.Parallel()
			n := newIntrospected(t)
			if w := n.get("before"); w.Code != http.StatusOK {
				t.Fatalf("status = %d: %s", w.Code, w.Body)
			}
			n.set(func() { breakIt(n) })
			w := n.get("opaque")
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Header().Get("WWW-Authenticate") != "" {
				t.Errorf("status = %d, header %v; want 503 with Retry-After and no challenge", w.Code, w.Header())
			}
			if w := n.get("before"); w.Code != http.StatusOK {
				t.Errorf("a token that was asked about before: status = %d, want 200", w.Code)
			}
			n.set(func() { n.status, n.kind, n.raw = 200, "application/json", "" })
			if w := n.get("opaque"); w.Code != http.StatusOK {
				t.Errorf("afterwards: status = %d, want 200: the outage is not remembered", w.Code)
			}
		})
	}
}

func manyMembers() string {
	var b strings.Builder
	for i := range 300 {
		b.WriteString(`,"` + strings.Repeat("a", i+1) + `":1`)
	}
	return b.String()
}

func TestJW23_AnswersAreRememberedBriefly(t *testing.T) {
	t.Parallel()
	t.Run("JW-23 a revoked token, within 30 seconds by default", func(t *testing.T) {
		n := newIntrospected(t)
		n.get("opaque")
		n.set(func() { n.answer = nil })
		n.advance(29 * time.Second)
		if w := n.get("opaque"); w.Code != http.StatusOK || n.asked() != 1 {
			t.Errorf("after 29 s: status = %d, asked %d times; want the remembered answer", w.Code, n.asked())
		}
		n.advance(time.Second)
		if w := n.get("opaque"); w.Code != http.StatusUnauthorized || n.asked() != 2 {
			t.Errorf("after 30 s: status = %d, asked %d times; want 401", w.Code, n.asked())
		}
	})
	t.Run("JW-23 never beyond exp", func(t *testing.T) {
		n := newIntrospected(t)
		n.answer["exp"] = n.now.Add(5 * time.Second).Unix()
		n.get("opaque")
		n.advance(5 * time.Second)
		if w := n.get("opaque"); w.Code != http.StatusUnauthorized {
			t.Errorf("status = %d, want 401", w.Code)
		}
	})
	t.Run("IR-10 a bad token, for 10 seconds", func(t *testing.T) {
		n := newIntrospected(t)
		good := n.answer
		n.answer = nil
		n.get("opaque")
		n.set(func() { n.answer = good })
		n.advance(9 * time.Second)
		if w := n.get("opaque"); w.Code != http.StatusUnauthorized || n.asked() != 1 {
			t.Errorf("after 9 s: status = %d, asked %d times", w.Code, n.asked())
		}
		n.advance(time.Second)
		if w := n.get("opaque"); w.Code != http.StatusOK || n.asked() != 2 {
			t.Errorf("after 10 s: status = %d, asked %d times", w.Code, n.asked())
		}
	})
	t.Run("IR-10 a flood of guesses displaces no good token", func(t *testing.T) {
		n := newIntrospected(t)
		n.get("good")
		n.set(func() { n.answer = nil })
		for i := range 1500 {
			n.get("guess-" + strconv.Itoa(i))
		}
		if w := n.get("good"); w.Code != http.StatusOK {
			t.Errorf("status = %d, want the remembered 200", w.Code)
		}
	})
	for name, change := range map[string]func(*resourceserver.Options){
		"a negative MaxAge":     func(o *resourceserver.Options) { o.Issuers[0].Introspection.MaxAge = -1 },
		"a negative TokenCache": func(o *resourceserver.Options) { o.TokenCache = -1 },
	} {
		t.Run("JW-23 "+name+" asks each time", func(t *testing.T) {
			n := newIntrospected(t, change)
			n.get("opaque")
			n.get("opaque")
			n.set(func() { n.answer = nil })
			if w := n.get("opaque"); w.Code != http.StatusUnauthorized || n.asked() != 3 {
				t.Errorf("status = %d, asked %d times; want 401 and 3", w.Code, n.asked())
			}
			good := n.issuer.claims(testResource, n.clock(), "")
			good["active"] = true
			n.set(func() { n.answer = good })
			if w := n.get("opaque"); w.Code != http.StatusOK {
				t.Errorf("status = %d: a refusal was remembered", w.Code)
			}
		})
	}
}

func TestIntrospectionOfJWTs(t *testing.T) {
	t.Parallel()
	other := newIssuer(t)
	n := newIntrospected(t, func(o *resourceserver.Options) {
		o.Issuers[0].Introspection.AlsoJWT = true
		o.Issuers = append(o.Issuers, resourceserver.Issuer{Identifier: other.URL})
	})
	token := n.token(t, "notes:read")
	if w := n.get(token); w.Code != http.StatusOK || n.asked() != 1 || n.issuer.fetched() != 1 {
		t.Errorf("status = %d, asked %d times, keys fetched %d times", w.Code, n.asked(), n.issuer.fetched())
	}
	foreign := other.sign(t, header("ES256", "ec-1"), other.claims(testResource, n.now, "notes:read"))
	if w := n.get(foreign); w.Code != http.StatusOK || n.asked() != 1 {
		t.Errorf("another issuer's JWT is shown to nobody: status = %d, asked %d times", w.Code, n.asked())
	}
	unknown := n.issuer.claims(testResource, n.now, "")
	unknown["iss"] = "https://evil.example"
	if w := n.get(n.issuer.sign(t, header("ES256", "ec-1"), unknown)); w.Code != http.StatusUnauthorized || n.asked() != 1 {
		t.Errorf("JW-14 a JWT of nobody's: status = %d, asked %d times", w.Code, n.asked())
	}
	n.set(func() { n.answer = nil })
	n.advance(30 * time.Second)
	if w := n.get(token); w.Code != http.StatusUnauthorized {
		t.Errorf("JW-23 a revoked JWT: status = %d, want 401", w.Code)
	}
}

func TestIntrospectionSingleFlight(t *testing.T) {
	t.Parallel()
	n := newIntrospected(t)
	hold := make(chan struct{})
	n.set(func() { n.hold = hold })
	codes := make(chan int)
	for range 20 {
		go func() { codes <- n.get("opaque").Code }()
	}
	eventually(t, func() bool { return n.asking.Load() > 0 }, "nobody asks")
	close(hold)
	for range 20 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("status = %d, want 200", code)
		}
	}
	if a := n.asked(); a != 1 {
		t.Errorf("the issuer was asked %d times, want once", a)
	}
}

func TestIntrospectionEndpointIsDiscovered(t *testing.T) {
	t.Parallel()
	n := newIntrospected(t, func(o *resourceserver.Options) {
		i := o.Issuers[0].Introspection
		i.Endpoint, i.ClientID, i.ClientSecret, i.BearerToken = "", "", "", "rs-token"
	})
	endpoint := httptest.NewServer(http.HandlerFunc(n.serve))
	defer endpoint.Close()
	if w := n.get("opaque"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("M8 no endpoint in the metadata: status = %d, want 503", w.Code)
	}
	n.issuer.set(func(i *issuer) { i.introspection = endpoint.URL })
	if w := n.get("opaque"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("JW-11 asked again at once: status = %d, want 503 within the interval", w.Code)
	}
	n.advance(30 * time.Second)
	if w := n.get("opaque"); w.Code != http.StatusOK {
		t.Fatalf("status = %d: %s", w.Code, w.Body)
	}
	if n.auth[0] != "Bearer rs-token" {
		t.Errorf("Authorization = %q", n.auth[0])
	}
}

// No secret and no token may reach the log, whatever happens.
func TestIntrospectionLogsNoSecret(t *testing.T) {
	t.Parallel()
	var log lockedBuilder
	n := newIntrospected(t, func(o *resourceserver.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	n.get("opaque-1")
	n.set(func() { n.status = 500 })
	n.get("opaque-2")
	n.set(func() { n.status, n.answer = 200, nil })
	n.get("opaque-3")
	s := log.String()
	if !strings.Contains(s, "introspection.failed") || !strings.Contains(s, "not active") {
		t.Errorf("the log says too little:\n%s", s)
	}
	for _, secret := range []string{"opaque-", "cret"} {
		if strings.Contains(s, secret) {
			t.Errorf("the log has %q:\n%s", secret, s)
		}
	}
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
