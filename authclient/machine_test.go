package authclient

import (
	"context"
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
)

// fakeIssuer is an authorization server that has a token endpoint and nothing else,
// and no PKCE, which machines do not need.
type fakeIssuer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
	// answer is what the token endpoint says. Default: a bearer token.
	answer func(w http.ResponseWriter, r received)
	// extra is added to the metadata.
	extra map[string]any
}

// received is one request to the token endpoint.
type received struct {
	form   url.Values
	header http.Header
}

func newFakeIssuer(t testing.TB) *fakeIssuer {
	t.Helper()
	f := &fakeIssuer{answer: func(w http.ResponseWriter, _ received) {
		writeJSON(w, 200, map[string]any{"access_token": "at-1", "token_type": "bearer", "expires_in": 60, "refresh_token": "rt-1"})
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		doc := map[string]any{"issuer": f.URL, "token_endpoint": f.URL + "/token", "response_types_supported": []string{}}
		for name, value := range f.extra {
			doc[name] = value
		}
		writeJSON(w, 200, doc)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		got := received{r.PostForm, r.Header}
		f.mu.Lock()
		f.requests = append(f.requests, got)
		f.mu.Unlock()
		f.answer(w, got)
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// seen returns the requests to the token endpoint so far.
func (f *fakeIssuer) seen() []received {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]received(nil), f.requests...)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

const testResource = "http://127.0.0.1:1/mcp"

// ask has m get a token from the issuer that the MCP server names.
func ask(t testing.TB, m Machine, named *fakeIssuer, p prover) (*tokenResponse, error) {
	t.Helper()
	if err := m.check(); err != nil {
		t.Fatalf("check: %v", err)
	}
	c, err := New(Options{Server: testResource})
	if err != nil {
		t.Fatal(err)
	}
	as, err := c.endpoint.metadataOf(t.Context(), named.URL)
	if err != nil {
		t.Fatal(err)
	}
	return m.token(t.Context(), machineRequest{endpoint: c.endpoint, server: as, resource: testResource,
		scopes: []string{"notes:read", "notes:write"}, prover: p})
}

// wantRefused demands ErrRefused and that nobody was sent anything.
func wantRefused(t *testing.T, err error, silent ...*fakeIssuer) {
	t.Helper()
	if !errors.Is(err, ErrRefused) {
		t.Errorf("err = %v, want ErrRefused", err)
	}
	for _, f := range silent {
		if seen := f.seen(); len(seen) > 0 {
			t.Errorf("%s was sent %v", f.URL, seen)
		}
	}
}

// testJWT is a token of somebody else's; nobody here checks its signature.
func testJWT(t testing.TB, header, claims map[string]any) string {
	t.Helper()
	raw, err := signJWT(ecKey(t, elliptic.P256()), es256, header, claims)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func fixed(token string) func(context.Context) (Secret, error) {
	return func(context.Context) (Secret, error) { return Secret(token), nil }
}

func TestClientCredentialsWithSecret(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method string
		supported    []string
		basic        bool
	}{
		{"Basic by default", "", nil, true},
		{"post where there is no Basic", "", []string{"client_secret_post"}, false},
		{"post by configuration", "client_secret_post", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeIssuer(t)
			f.extra = map[string]any{"token_endpoint_auth_methods_supported": tt.supported}
			m := &ClientCredentials{Client: RegisteredClient{Issuer: f.URL, ClientID: "job", ClientSecret: "s3cret/%", AuthMethod: tt.method}}
			got, err := ask(t, m, f, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.AccessToken != "at-1" || got.TokenType != "Bearer" || got.RefreshToken != "" {
				t.Errorf("token %s of type %s, refresh token kept: %v", got.AccessToken.Reveal(), got.TokenType, got.RefreshToken != "")
			}
			r := f.seen()[0]
			user, password, basic := (&http.Request{Header: r.header}).BasicAuth()
			if basic != tt.basic || basic && (user != "job" || password != "s3cret%2F%25") || !basic && r.form.Get("client_secret") != "s3cret/%" {
				t.Errorf("Authorization %q, form %v", r.header.Get("Authorization"), r.form)
			}
			for name, want := range map[string]string{"grant_type": "client_credentials", "resource": testResource, "scope": "notes:read notes:write"} {
				if r.form.Get(name) != want {
					t.Errorf("%s = %q, want %q", name, r.form.Get(name), want)
				}
			}
		})
	}
}

// TestClientCredentialsWithKey: the assertion is for the issuer alone, short, and new
// each time (RFC 7523 §3).
func TestClientCredentialsWithKey(t *testing.T) {
	t.Parallel()
	f, private := newFakeIssuer(t), ecKey(t, elliptic.P256())
	m := &ClientCredentials{Client: RegisteredClient{Issuer: f.URL, ClientID: "job", Key: &SigningKey{ID: "k1", Signer: private}}}
	for range 2 {
		if _, err := ask(t, m, f, nil); err != nil {
			t.Fatal(err)
		}
	}
	jtis := map[string]bool{}
	for _, r := range f.seen() {
		if r.header.Get("Authorization") != "" || r.form.Get("client_assertion_type") != typeAssertion || r.form.Get("client_id") != "job" {
			t.Errorf("header %v, form %v", r.header, r.form)
		}
		j := verified(t, r.form.Get("client_assertion"), private.Public(), jose.ES256)
		iat, _ := j.Claims.Seconds("iat")
		exp, _ := j.Claims.Seconds("exp")
		if !j.Header.Is("kid", "k1") || !j.Claims.Is("iss", "job") || !j.Claims.Is("sub", "job") || !j.Claims.Is("aud", f.URL) || exp.Sub(iat) != time.Minute {
			t.Errorf("header %v, claims %v", j.Header, j.Claims)
		}
		jti, _ := j.Claims.Str("jti")
		jtis[jti] = true
	}
	if len(jtis) != 2 {
		t.Errorf("jti %v, want two", jtis)
	}
}

// TestMM13MachineIssuerChanges: the MCP server names another authorization server than
// the credential's, and that one gets nothing, whatever the credential.
func TestMM13MachineIssuerChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(t *testing.T, home, idp *fakeIssuer) Machine
	}{
		{"secret", func(_ *testing.T, home, _ *fakeIssuer) Machine {
			return &ClientCredentials{Client: RegisteredClient{Issuer: home.URL, ClientID: "job", ClientSecret: "s"}}
		}},
		{"key", func(t *testing.T, home, _ *fakeIssuer) Machine {
			return &ClientCredentials{Client: RegisteredClient{Issuer: home.URL, ClientID: "job", Key: &SigningKey{Signer: ecKey(t, elliptic.P256())}}}
		}},
		{"workload", func(t *testing.T, home, _ *fakeIssuer) Machine {
			return &Workload{Issuer: home.URL, Token: fixed(testJWT(t, map[string]any{}, map[string]any{"aud": home.URL}))}
		}},
		{"enterprise", func(t *testing.T, home, idp *fakeIssuer) Machine {
			return enterprise(t, home, idp)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home, idp, other := newFakeIssuer(t), newFakeIssuer(t), newFakeIssuer(t)
			_, err := ask(t, tt.make(t, home, idp), other, nil)
			wantRefused(t, err, home, idp, other)
		})
	}
}

func TestMachineConfiguration(t *testing.T) {
	t.Parallel()
	key := &SigningKey{Signer: ecKey(t, elliptic.P256())}
	ok := RegisteredClient{Issuer: "https://as.example", ClientID: "job", ClientSecret: "s"}
	idp := RegisteredClient{Issuer: "https://idp.example", ClientID: "mcp"}
	for _, tt := range []struct {
		name string
		m    Machine
		want string // part of the error; "" is none
	}{
		{"secret", &ClientCredentials{ok}, ""},
		{"key", &ClientCredentials{RegisteredClient{Issuer: ok.Issuer, ClientID: "job", Key: key}}, ""},
		{"no issuer", &ClientCredentials{RegisteredClient{ClientID: "job", ClientSecret: "s"}}, "issuer"},
		{"http issuer", &ClientCredentials{RegisteredClient{Issuer: "http://as.example", ClientID: "job", ClientSecret: "s"}}, "not on this machine"},
		{"no client_id", &ClientCredentials{RegisteredClient{Issuer: ok.Issuer, ClientSecret: "s"}}, "ClientID"},
		{"no credential", &ClientCredentials{RegisteredClient{Issuer: ok.Issuer, ClientID: "job"}}, "neither"},
		{"two credentials", &ClientCredentials{RegisteredClient{Issuer: ok.Issuer, ClientID: "job", ClientSecret: "s", Key: key}}, "both"},
		{"a key without a Signer", &ClientCredentials{RegisteredClient{Issuer: ok.Issuer, ClientID: "job", Key: &SigningKey{}}}, "Signer"},
		{"key and Basic", &ClientCredentials{RegisteredClient{Issuer: ok.Issuer, ClientID: "job", Key: key, AuthMethod: "client_secret_basic"}}, "fit"},
		{"unknown method", &ClientCredentials{RegisteredClient{Issuer: ok.Issuer, ClientID: "job", ClientSecret: "s", AuthMethod: "tls_client_auth"}}, "not known"},
		{"workload", &Workload{Issuer: ok.Issuer, Token: fixed("")}, ""},
		{"workload without a token", &Workload{Issuer: ok.Issuer}, "Token is missing"},
		{"workload without an issuer", &Workload{Token: fixed("")}, "Issuer"},
		{"enterprise", &Enterprise{IdentityProvider: idp, SubjectToken: fixed(""), Client: ok}, ""},
		{"enterprise without an ID token", &Enterprise{IdentityProvider: idp, Client: ok}, "SubjectToken"},
		{"enterprise with one issuer", &Enterprise{IdentityProvider: ok, SubjectToken: fixed(""), Client: ok}, "same issuer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := tt.m.check(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("check = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestWorkload: RFC 7523 §2.1, and the token is read each time.
func TestWorkload(t *testing.T) {
	t.Parallel()
	f := newFakeIssuer(t)
	path := filepath.Join(t.TempDir(), "token")
	m := &Workload{Issuer: f.URL, Token: TokenFile(path)}
	for i := range 2 {
		assertion := testJWT(t, map[string]any{}, map[string]any{"aud": []string{f.URL}, "n": i})
		if err := os.WriteFile(path, []byte(assertion+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t, m, f, nil); err != nil {
			t.Fatal(err)
		}
		r := f.seen()[i]
		if r.form.Get("grant_type") != grantJWTBearer || r.form.Get("assertion") != assertion || r.form.Has("client_id") ||
			r.header.Get("Authorization") != "" || r.form.Get("resource") != testResource {
			t.Errorf("form %v", r.form)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, m, f, nil); !errors.Is(err, os.ErrNotExist) || len(f.seen()) != 2 {
		t.Errorf("without the file: %v, %d requests", err, len(f.seen()))
	}
}

// TestWorkloadAudience: a token that is not for the issuer alone is not sent.
func TestWorkloadAudience(t *testing.T) {
	t.Parallel()
	f := newFakeIssuer(t)
	for name, aud := range map[string]any{
		"another": "https://wrong.example", "a slash more": f.URL + "/", "somebody else too": []string{f.URL, "https://other.example"},
		"none": nil, "a number": 1, "nobody": []string{},
	} {
		claims := map[string]any{"sub": "workload"}
		if aud != nil {
			claims["aud"] = aud
		}
		_, err := ask(t, &Workload{Issuer: f.URL, Token: fixed(testJWT(t, map[string]any{}, claims))}, f, nil)
		t.Run(name, func(t *testing.T) { wantRefused(t, err, f) })
	}
	if _, err := ask(t, &Workload{Issuer: f.URL, Token: fixed("hunter2-opaque")}, f, nil); err == nil ||
		strings.Contains(err.Error(), "hunter2") || len(f.seen()) > 0 {
		t.Errorf("an opaque token: %v, %d requests", err, len(f.seen()))
	}
}

// TestWorkloadIsAskedOnce: a refusal is final, and no other grant is tried.
func TestWorkloadIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"invalid_grant", "invalid_scope", "unauthorized_client"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			f := newFakeIssuer(t)
			f.answer = func(w http.ResponseWriter, _ received) { writeJSON(w, 400, map[string]any{"error": code}) }
			assertion := testJWT(t, map[string]any{}, map[string]any{"aud": f.URL})
			_, err := ask(t, &Workload{Issuer: f.URL, Token: fixed(assertion)}, f, nil)
			var refusal *ServerError
			if !errors.As(err, &refusal) || refusal.Code != code || strings.Contains(err.Error(), assertion) {
				t.Errorf("err = %v, want a ServerError %s", err, code)
			}
			if n := len(f.seen()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// enterprise is a program at an identity provider, which answers with what it should.
func enterprise(t testing.TB, as, idp *fakeIssuer) *Enterprise {
	t.Helper()
	jag := testJWT(t, map[string]any{"typ": typJAG}, map[string]any{"iss": idp.URL, "aud": as.URL, "sub": "ada"})
	idp.answer = exchanged(jag, tokenTypeJAG)
	return &Enterprise{
		IdentityProvider: RegisteredClient{Issuer: idp.URL, ClientID: "mcp-at-idp"},
		SubjectToken:     fixed(testJWT(t, map[string]any{}, map[string]any{"iss": idp.URL, "aud": "mcp-at-idp"})),
		Client:           RegisteredClient{Issuer: as.URL, ClientID: "mcp", ClientSecret: "s"},
	}
}

func exchanged(token, kind string) func(http.ResponseWriter, received) {
	return func(w http.ResponseWriter, _ received) {
		writeJSON(w, 200, map[string]any{"access_token": token, "issued_token_type": kind, "token_type": "N_A", "expires_in": 60})
	}
}

func TestEnterprise(t *testing.T) {
	t.Parallel()
	as, idp := newFakeIssuer(t), newFakeIssuer(t)
	m := enterprise(t, as, idp)
	k := proofKeyFor(t)
	got, err := ask(t, m, as, k)
	if err != nil || got.AccessToken != "at-1" {
		t.Fatalf("token %v, %v", got, err)
	}
	exchange, redemption := idp.seen()[0], as.seen()[0]
	subject, _ := m.SubjectToken(t.Context())
	for name, want := range map[string]string{"grant_type": grantExchange, "requested_token_type": tokenTypeJAG, "audience": as.URL,
		"resource": testResource, "subject_token": subject.Reveal(), "subject_token_type": tokenTypeID, "client_id": "mcp-at-idp"} {
		if exchange.form.Get(name) != want {
			t.Errorf("identity provider: %s = %q, want %q", name, exchange.form.Get(name), want)
		}
	}
	if redemption.form.Get("grant_type") != grantJWTBearer || !strings.HasPrefix(redemption.header.Get("Authorization"), "Basic ") ||
		redemption.form.Has("subject_token") || redemption.form.Get("assertion") == "" {
		t.Errorf("authorization server: %v", redemption.form)
	}
	// only the access token is bound to the key
	if exchange.header.Get("DPoP") != "" || redemption.header.Get("DPoP") == "" {
		t.Errorf("proofs: identity provider %q, authorization server %q", exchange.header.Get("DPoP"), redemption.header.Get("DPoP"))
	}
}

// TestEnterpriseRefuses: what the identity provider must not be sent, and what it must
// not be able to send on.
func TestEnterpriseRefuses(t *testing.T) {
	t.Parallel()
	t.Run("ID token of another issuer", func(t *testing.T) {
		t.Parallel()
		as, idp := newFakeIssuer(t), newFakeIssuer(t)
		m := enterprise(t, as, idp)
		m.SubjectToken = fixed(testJWT(t, map[string]any{}, map[string]any{"iss": "https://other.example"}))
		_, err := ask(t, m, as, nil)
		wantRefused(t, err, as, idp)
	})
	for _, tt := range []struct {
		name        string
		typ         string
		claims      func(as, idp string) map[string]any
		issuedType  string
		wantRefusal bool
	}{
		{"for another audience", typJAG, func(_, idp string) map[string]any { return map[string]any{"iss": idp, "aud": "https://other.example"} }, tokenTypeJAG, true},
		{"of another issuer", typJAG, func(as, _ string) map[string]any { return map[string]any{"iss": "https://other.example", "aud": as} }, tokenTypeJAG, true},
		{"an access token", "at+jwt", func(as, idp string) map[string]any { return map[string]any{"iss": idp, "aud": as} }, tokenTypeJAG, true},
		{"issued as something else", typJAG, func(as, idp string) map[string]any { return map[string]any{"iss": idp, "aud": as} }, tokenTypeID, false},
	} {
		t.Run("assertion "+tt.name, func(t *testing.T) {
			t.Parallel()
			as, idp := newFakeIssuer(t), newFakeIssuer(t)
			m := enterprise(t, as, idp)
			idp.answer = exchanged(testJWT(t, map[string]any{"typ": tt.typ}, tt.claims(as.URL, idp.URL)), tt.issuedType)
			_, err := ask(t, m, as, nil)
			if err == nil || errors.Is(err, ErrRefused) != tt.wantRefusal {
				t.Errorf("err = %v", err)
			}
			if seen := as.seen(); len(seen) > 0 {
				t.Errorf("the authorization server got %v", seen)
			}
		})
	}
}

// TestDPoPNonceOfTheAuthorizationServer: RFC 9449 §8, once, with a new proof.
func TestDPoPNonceOfTheAuthorizationServer(t *testing.T) {
	t.Parallel()
	f := newFakeIssuer(t)
	k := proofKeyFor(t)
	f.answer = func(w http.ResponseWriter, r received) {
		w.Header().Set("DPoP-Nonce", "n-1")
		if j := verified(t, r.header.Get("DPoP"), k.private.Public(), jose.ES256); !j.Claims.Is("nonce", "n-1") {
			writeJSON(w, 400, map[string]any{"error": "use_dpop_nonce"})
			return
		}
		writeJSON(w, 200, map[string]any{"access_token": "at-1", "token_type": "DPoP"})
	}
	m := &ClientCredentials{Client: RegisteredClient{Issuer: f.URL, ClientID: "job", Key: &SigningKey{Signer: ecKey(t, elliptic.P256())}}}
	got, err := ask(t, m, f, k)
	if err != nil || got.TokenType != "DPoP" {
		t.Fatalf("token %v, %v", got, err)
	}
	seen := f.seen()
	if len(seen) != 2 || seen[0].form.Get("client_assertion") == seen[1].form.Get("client_assertion") || seen[0].header.Get("DPoP") == seen[1].header.Get("DPoP") {
		t.Errorf("%d requests; the second needs a new proof and a new assertion", len(seen))
	}
}

// TestDPoPNonceLoop: a server that is never content is asked twice.
func TestDPoPNonceLoop(t *testing.T) {
	t.Parallel()
	f := newFakeIssuer(t)
	n := 0
	f.answer = func(w http.ResponseWriter, _ received) {
		n++
		w.Header().Set("DPoP-Nonce", strings.Repeat("n", n))
		writeJSON(w, 400, map[string]any{"error": "use_dpop_nonce"})
	}
	m := &ClientCredentials{Client: RegisteredClient{Issuer: f.URL, ClientID: "job", ClientSecret: "s"}}
	if _, err := ask(t, m, f, proofKeyFor(t)); err == nil || len(f.seen()) != 2 {
		t.Errorf("err = %v after %d requests, want 2", err, len(f.seen()))
	}
}

// TestMM16UnaskedDPoP: a token bound to a key that we do not have is of no use.
func TestMM16UnaskedDPoP(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"DPoP", "N_A", "mac", ""} {
		f := newFakeIssuer(t)
		f.answer = func(w http.ResponseWriter, _ received) {
			writeJSON(w, 200, map[string]any{"access_token": "at-1", "token_type": kind})
		}
		m := &ClientCredentials{Client: RegisteredClient{Issuer: f.URL, ClientID: "job", ClientSecret: "s"}}
		if got, err := ask(t, m, f, nil); err == nil {
			t.Errorf("token_type %q: %v, want an error", kind, got)
		}
	}
}
