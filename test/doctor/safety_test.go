package doctor

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/ostiary-auth/ostiary/internal/doctor"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// heard is a request that a backend heard.
type heard struct{ method, path, authorization, body string }

// listener hears what reaches a backend.
type listener struct {
	mu   sync.Mutex
	list []heard
}

// before puts the listener in front of a backend, given as host:port.
func (l *listener) before(t *testing.T, backend string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		l.list = append(l.list, heard{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), string(body)})
		l.mu.Unlock()
		on := r.Clone(r.Context())
		on.URL.Scheme, on.URL.Host, on.RequestURI, on.Body = "http", backend, "", io.NopCloser(bytes.NewReader(body))
		resp, err := http.DefaultTransport.RoundTrip(on)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(server.Close)
	return host(server.URL)
}

// hears reports whether text was in any request.
func (l *listener) hears(text string) bool {
	return slices.ContainsFunc(l.list, func(h heard) bool {
		return strings.Contains(h.authorization+h.path+h.body, text)
	})
}

// heardSetup is a set-up with a listener in front of each backend.
func heardSetup(t *testing.T) (s *setup, server, issuer *listener) {
	t.Helper()
	s, server, issuer = newSetup(t), &listener{}, &listener{}
	s.server, s.front = server.before(t, s.server), issuer.before(t, s.front)
	return s, server, issuer
}

// Without --write nothing is made: every request that is no GET, HEAD or OPTIONS
// is one that cannot succeed, and no client and no grant is there afterwards.
func TestReadsOnly(t *testing.T) {
	t.Parallel()
	s, server, issuer := heardSetup(t)
	r := s.examine(t, nginx{}, nil)
	if len(r.Left) > 0 {
		t.Errorf("left: %q", r.Left)
	}
	harmless := map[string]string{"/token": "ostiary-doctor-no-code", "/register": `{"redirect_uris":`, "/revoke": "ostiary-doctor-no-token", "/files": "ostiary-doctor/nothing"}
	for _, h := range append(server.list, issuer.list...) {
		switch h.method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
		case http.MethodPost:
			if want := harmless[h.path]; want == "" || !strings.Contains(h.body, want) && h.body != want {
				t.Errorf("POST %s %s", h.path, h.body)
			}
			if h.path == "/register" && json.Valid([]byte(h.body)) {
				t.Errorf("a registration that can succeed: %s", h.body)
			}
		default:
			t.Errorf("%s %s", h.method, h.path)
		}
	}
	if len(server.list) < 10 || len(issuer.list) < 10 {
		t.Errorf("%d and %d requests were heard", len(server.list), len(issuer.list))
	}
	rows := testkit.Dump(t.Context(), t, s.issuer.DB)
	if strings.Contains(rows, "ostiary doctor") {
		t.Error("a client of the doctor is registered")
	}
}

// A log-in leaves nothing that works, and no secret in the report.
func TestWritesTakeBack(t *testing.T) {
	t.Parallel()
	s, server, issuer := heardSetup(t)
	r := s.examine(t, nginx{}, s.logIn)
	if removed := slices.IndexFunc(issuer.list, func(h heard) bool { return h.method == http.MethodDelete }); removed < 0 || len(r.Left) > 0 {
		t.Errorf("left: %q", r.Left)
	}
	report, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text, doctor.TextOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"ost_rt_", "ost_ac_", "eyJ", s.managementToken(issuer)} {
		if secret == "" || strings.Contains(string(report), secret) || strings.Contains(text.String(), secret) {
			t.Errorf("the report holds %q", secret)
		}
	}
	if server.hears("ost_rt_") || server.hears("ost_ac_") {
		t.Error("the MCP server was told what belongs to the issuer")
	}
	if !server.hears("eyJ") {
		t.Error("the MCP server has seen no access token")
	}
	if issuer.hears("Bearer eyJ") {
		t.Error("the issuer was told the access token")
	}
}

// managementToken is what was sent to remove a client.
func (s *setup) managementToken(l *listener) string {
	for _, h := range l.list {
		if h.method == http.MethodDelete {
			return strings.TrimPrefix(h.authorization, "Bearer ")
		}
	}
	return ""
}

// A token that was given is shown to the MCP server that it is for, and to nobody
// when it is for another or of another issuer.
func TestGivenToken(t *testing.T) {
	t.Parallel()
	s, server, issuer := heardSetup(t)
	for _, tt := range []struct {
		name, resource string
		nginx
		broken string
		shown  bool
	}{
		{name: "for this server", resource: testkit.Resource, shown: true},
		{name: "for another server", resource: testkit.OtherResource, broken: "access-audience"},
		{name: "of another issuer", resource: testkit.Resource, broken: "metadata-issuer",
			nginx: nginx{issuerProxy: rewrite(`"issuer":"https://id.example.com"`, `"issuer":"https://evil.example.com"`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token := s.issue(t, tt.resource)
			server.list, issuer.list = nil, nil
			r := s.examine(t, tt.nginx, func(o *doctor.Options) { o.Token = token })
			want := map[string]doctor.State{}
			if tt.broken != "" {
				want[tt.broken] = doctor.Broken
			}
			checkFindings(t, r, want, nil)
			if got := server.hears(token.Reveal()); got != tt.shown {
				t.Errorf("shown to the MCP server: %t, want %t", got, tt.shown)
			}
			if issuer.hears(token.Reveal()) {
				t.Error("the issuer was told the token")
			}
			if b, err := json.Marshal(r); err != nil || strings.Contains(string(b), token.Reveal()) {
				t.Errorf("%v; the report holds the token", err)
			}
		})
	}
}

// issue has the person allow a new client at a resource, and returns its token.
func (s *setup) issue(t *testing.T, resource string) oauth.Secret {
	t.Helper()
	const redirect = "http://127.0.0.1/callback"
	var client struct {
		ID string `json:"client_id"`
	}
	s.post(t, "/register", "application/json", `{"client_name":"x","redirect_uris":["`+redirect+`"],"token_endpoint_auth_method":"none"}`, &client)
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" // RFC 7636 appendix B
	v := url.Values{"response_type": {"code"}, "client_id": {client.ID}, "redirect_uri": {redirect}, "resource": {resource},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}}
	to, err := s.issuer.Person().Authorize(t.Context(), s.issuer.URL("/authorize?"+v.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Token string `json:"access_token"`
	}
	s.post(t, "/token", "application/x-www-form-urlencoded", url.Values{"grant_type": {"authorization_code"}, "client_id": {client.ID},
		"code": {to.Query().Get("code")}, "code_verifier": {verifier}, "redirect_uri": {redirect}}.Encode(), &answer)
	if answer.Token == "" {
		t.Fatal("no token")
	}
	return oauth.Secret(answer.Token)
}

func (s *setup) post(t *testing.T, path, contentType, body string, into any) {
	t.Helper()
	resp, err := s.issuer.Client().Post(s.issuer.URL(path), contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(testkit.Body(t, resp)), into); err != nil {
		t.Fatal(err)
	}
}

// Whatever a server says, nothing of it reaches a terminal that the terminal obeys.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	// U+001B and U+202E as JSON escapes, and in a header as they are
	hostile := `\u001b]0;owned\u0007\u202e`
	r := s.examine(t, nginx{serverProxy: rewrite(`"https://id.example.com"`, `"https://id.example.com/`+hostile+`"`) +
		"proxy_hide_header WWW-Authenticate; add_header WWW-Authenticate 'Bearer error=\"\u202e\u009b31m\"' always;"}, nil)
	for _, color := range []bool{false, true} {
		var text bytes.Buffer
		if err := r.WriteText(&text, doctor.TextOptions{All: true, Color: color}); err != nil {
			t.Fatal(err)
		}
		plain := text.String()
		if color {
			for _, sgr := range []string{"\x1b[32m", "\x1b[33m", "\x1b[1;31m", "\x1b[2m", "\x1b[0m"} {
				plain = strings.ReplaceAll(plain, sgr, "")
			}
		}
		if i := strings.IndexFunc(plain, func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }); i >= 0 {
			t.Errorf("in %q", plain[max(0, i-40):i+10])
		}
	}
	if b, err := json.Marshal(r); err != nil || !strings.Contains(string(b), "owned") {
		t.Errorf("the hostile text did not come: %v", err)
	}
}
