package authclient

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestC2_FirstCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	wantCall(t, c, "", http.StatusOK)
	if len(w.authorizations) != 1 || len(w.registrations) != 1 {
		t.Fatalf("%d authorizations, %d registrations", len(w.authorizations), len(w.registrations))
	}
	q, f := w.authorizations[0], w.tokens[0]
	for name, want := range map[string]string{"response_type": "code", "client_id": "client-1", "code_challenge_method": "S256",
		"resource": w.url(), "scope": "read", "prompt": ""} {
		if q.Get(name) != want {
			t.Errorf("authorize: %s = %q, want %q", name, q.Get(name), want)
		}
	}
	for name, want := range map[string]string{"grant_type": "authorization_code", "client_id": "client-1", "resource": w.url(),
		"redirect_uri": q.Get("redirect_uri")} {
		if f.Get(name) != want {
			t.Errorf("token: %s = %q, want %q", name, f.Get(name), want)
		}
	}
	if len(f.Get("code_verifier")) < 43 || w.tokenHeaders[0].Get("Authorization") != "" {
		t.Errorf("token: %v %v", f, w.tokenHeaders[0])
	}
	if diff := cmp.Diff([]string{"ping", "ping"}, w.mcpRequests); diff != "" {
		t.Error(diff)
	}
}

func TestC10_Registration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wantCall(t, w.client(func(o *Options) { o.Metadata.ClientName = "Notebook" }), "", http.StatusOK)
	got := w.registrations[0]
	uris := got["redirect_uris"].([]any)
	if len(uris) != 1 || !strings.HasPrefix(uris[0].(string), "http://127.0.0.1:") || !strings.HasSuffix(uris[0].(string), "/callback") {
		t.Errorf("redirect_uris = %v", uris)
	}
	want := map[string]any{"redirect_uris": uris, "client_id": "client-1", "client_name": "Notebook", "application_type": "native",
		"token_endpoint_auth_method": "none", "grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestC10_ApplicationType(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{"http://127.0.0.1:1/cb": "native", "http://localhost/cb": "native", "https://app.example/cb": "web",
		"com.example.app:/cb": "native", "": "native"} {
		if got := applicationType(uri); got != want {
			t.Errorf("applicationType(%q) = %q, want %q", uri, got, want)
		}
	}
}

func TestC10_SubstitutedValues(t *testing.T) {
	t.Parallel()
	asked := registrationRequest{RedirectURIs: []string{"http://127.0.0.1:1/callback"}, TokenEndpointAuthMethod: authNone}
	for _, tt := range []struct {
		name, body, method, wantErr string
	}{
		{name: "as asked", body: `{"client_id":"c","token_endpoint_auth_method":"none"}`, method: authNone},
		{name: "nothing said", body: `{"client_id":"c"}`, method: authNone},
		{name: "a secret and nothing said", body: `{"client_id":"c","client_secret":"s"}`, method: authBasic},
		{name: "post instead", body: `{"client_id":"c","client_secret":"s","client_secret_expires_at":0,"token_endpoint_auth_method":"client_secret_post"}`, method: authPost},
		{name: "basic without a secret", body: `{"client_id":"c","token_endpoint_auth_method":"client_secret_basic"}`, wantErr: "no secret"},
		{name: "another method", body: `{"client_id":"c","token_endpoint_auth_method":"tls_client_auth"}`, wantErr: "cannot"},
		{name: "no client_id", body: `{"client_secret":"s"}`, wantErr: "no client_id"},
		{name: "another redirect URI", body: `{"client_id":"c","redirect_uris":["https://evil.example/"]}`, wantErr: "another redirect URI"},
		{name: "said twice", body: `{"client_id":"c","Client_ID":"d"}`, wantErr: "twice"},
		{name: "no object", body: `[]`, wantErr: "not a JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := readRegistration([]byte(tt.body), asked)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || r.AuthMethod != tt.method {
				t.Errorf("method %q, %v; want %q", r.AuthMethod, err, tt.method)
			}
		})
	}
}

// The order of MCP's specification: pre-registered, metadata document, dynamic.
func TestC4_C10_RegistrationOrder(t *testing.T) {
	t.Parallel()
	const document = "https://app.example/client.json"
	for _, tt := range []struct {
		name    string
		change  func(*world, *Options)
		want    string // client_id
		dynamic int
	}{
		{name: "registered first", want: "known", change: func(w *world, o *Options) {
			o.Registered = []RegisteredClient{{Issuer: "https://other.example", ClientID: "wrong"}, {Issuer: w.as.URL, ClientID: "known"}}
			o.ClientMetadataURL = document
			w.server = with(w.server, "client_id_metadata_document_supported", true)
		}},
		{name: "document where the server has it", want: document, change: func(w *world, o *Options) {
			o.Registered = []RegisteredClient{{Issuer: "https://other.example", ClientID: "wrong"}}
			o.ClientMetadataURL = document
			w.server = with(w.server, "client_id_metadata_document_supported", true)
		}},
		{name: "dynamic where it has not", want: "client-1", dynamic: 1, change: func(_ *world, o *Options) { o.ClientMetadataURL = document }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			wantCall(t, w.client(func(o *Options) { tt.change(w, o) }), "", http.StatusOK)
			if got := w.authorizations[0].Get("client_id"); got != tt.want || len(w.registrations) != tt.dynamic {
				t.Errorf("client_id %q, %d registrations", got, len(w.registrations))
			}
			if got := w.tokens[0].Get("client_id"); got != tt.want || len(w.tokens) != 1 {
				t.Errorf("token: client_id %q in %d requests", got, len(w.tokens))
			}
		})
	}
}

func TestC4_AuthStyleIsExplicit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		client    RegisteredClient
		supported []string
		basic     bool
		want      map[string]string
	}{
		{name: "public", client: RegisteredClient{ClientID: "c"}, want: map[string]string{"client_id": "c", "client_secret": ""}},
		{name: "secret", client: RegisteredClient{ClientID: "c", ClientSecret: "s:%"}, basic: true, want: map[string]string{"client_id": "", "client_secret": ""}},
		{name: "secret, server has post alone", client: RegisteredClient{ClientID: "c", ClientSecret: "s"}, supported: []string{"client_secret_post"},
			want: map[string]string{"client_id": "c", "client_secret": "s"}},
		{name: "post by configuration", client: RegisteredClient{ClientID: "c", ClientSecret: "s", AuthMethod: authPost},
			want: map[string]string{"client_id": "c", "client_secret": "s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.client.Issuer = w.as.URL
			if tt.supported != nil {
				w.server = with(w.server, "token_endpoint_auth_methods_supported", tt.supported)
			}
			wantCall(t, w.client(func(o *Options) { o.Registered = []RegisteredClient{tt.client} }), "", http.StatusOK)
			for name, want := range tt.want {
				if got := w.tokens[0].Get(name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			id, secret, basic := (&http.Request{Header: w.tokenHeaders[0]}).BasicAuth()
			if basic != tt.basic || basic && (id != "c" || secret != "s%3A%25") {
				t.Errorf("Basic %t %q %q", basic, id, secret)
			}
		})
	}
}

func TestScopeSelection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		challenge string
		supported []string
		options   []string
		offline   bool
		want      string
		prompt    string
	}{
		{name: "the challenge first", challenge: `scope="a b"`, supported: []string{"c"}, want: "a b"},
		{name: "then scopes_supported", supported: []string{"c", "d"}, want: "c d"},
		{name: "then none"},
		{name: "the caller's besides the challenge's", challenge: `scope="a"`, options: []string{"x", "a"}, supported: []string{"c"}, want: "a x"},
		{name: "the caller's instead of all", options: []string{"x"}, supported: []string{"c"}, want: "x"},
		{name: "offline_access where advertised", challenge: `scope="a"`, offline: true, want: "a offline_access", prompt: "consent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if w.challenge = tt.challenge; tt.challenge == "" {
				w.challenge = `realm="x"`
			}
			w.resource = with(w.resource, "scopes_supported", tt.supported)
			if tt.offline {
				w.server = with(w.server, "scopes_supported", []string{"a", "offline_access"})
			}
			wantCall(t, w.client(func(o *Options) { o.Scopes = tt.options }), "", http.StatusOK)
			if got := w.authorizations[0].Get("scope"); got != tt.want {
				t.Errorf("scope = %q, want %q", got, tt.want)
			}
			if got := w.authorizations[0].Get("prompt"); got != tt.prompt {
				t.Errorf("prompt = %q, want %q", got, tt.prompt)
			}
		})
	}
}

func TestC7_StepUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(func(o *Options) { o.Authorizer = &direct{} })
	wantCall(t, c, "", http.StatusOK)
	wantCall(t, c, "write", http.StatusOK)
	wantCall(t, c, "write", http.StatusOK)
	if len(w.authorizations) != 2 || len(w.registrations) != 1 {
		t.Fatalf("%d authorizations, %d registrations", len(w.authorizations), len(w.registrations))
	}
	if got := w.authorizations[1].Get("scope"); got != "read write" {
		t.Errorf("scope = %q: not the union", got)
	}
	for _, f := range w.tokens {
		if f.Get("grant_type") != "authorization_code" {
			t.Errorf("a step-up sent %s", f.Get("grant_type"))
		}
	}
}

func TestC7_StepUpHasAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grants = func(asked []string) []string {
		return slices.DeleteFunc(asked, func(s string) bool { return s == "write" })
	}
	c := w.client()
	for range 3 {
		wantCall(t, c, "write", http.StatusForbidden)
	}
	if got := len(w.authorizations); got != 1+maxStepUps {
		t.Errorf("%d authorizations, want %d", got, 1+maxStepUps)
	}
	// a server that wants what the token has is not asked about
	w.hook("POST /mcp", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="read"`)
		rw.WriteHeader(http.StatusForbidden)
	})
	wantCall(t, c, "", http.StatusForbidden)
	if got := len(w.authorizations); got != 1+maxStepUps {
		t.Errorf("%d authorizations after a useless challenge", got)
	}
}

// Another 403 is the caller's.
func TestC7_OtherForbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	w.hook("POST /mcp", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusForbidden) })
	wantCall(t, c, "", http.StatusForbidden)
	if len(w.authorizations) != 1 {
		t.Errorf("%d authorizations", len(w.authorizations))
	}
}

// A server that refuses what has just been issued is not asked about again and again.
func TestFreshTokenRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("POST /mcp", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusUnauthorized) })
	c := w.client()
	for range 3 {
		wantCall(t, c, "", http.StatusUnauthorized)
	}
	if len(w.authorizations) != 1 {
		t.Errorf("%d authorizations, want 1", len(w.authorizations))
	}
}

func TestConcurrentCallsAskOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	together(t, 8, func() error { _, err := call(t.Context(), c, ""); return err })
	if len(w.authorizations) != 1 || len(w.mcpRequests) != 8 {
		t.Errorf("%d authorizations, %d requests", len(w.authorizations), len(w.mcpRequests))
	}
}

// together runs fn n times at once.
func together(t *testing.T, n int, fn func() error) {
	t.Helper()
	errs := make(chan error, n)
	for range n {
		go func() { errs <- fn() }()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestLoginAndLogout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	c := w.client(func(o *Options) { o.Store, o.Authorizer = store, &direct{} })
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	// another process finds it
	other := w.client(func(o *Options) { o.Store, o.Authorizer = store, nil })
	wantCall(t, other, "", http.StatusOK)
	token, err := other.TokenSource(t.Context()).Token()
	if err != nil || token.AccessToken == "" || token.RefreshToken != "" || !token.Expiry.Equal(w.clock().Add(10*time.Minute)) {
		t.Errorf("token %v, %v", token, err)
	}
	if err := c.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(w.revocations) != 1 || w.revocations[0].Get("token_type_hint") != "refresh_token" || w.revocations[0].Get("client_id") != "client-1" {
		t.Errorf("revocations %v", w.revocations)
	}
	if err := c.Logout(t.Context()); err != nil || len(w.revocations) != 1 {
		t.Errorf("again: %v, %d revocations", err, len(w.revocations))
	}
	if _, err := call(t.Context(), w.client(func(o *Options) { o.Store, o.Authorizer = store, nil }), ""); err == nil {
		t.Error("a call after Logout has a token")
	}
	// the registration stays
	if err := c.Login(t.Context()); err != nil || len(w.registrations) != 1 {
		t.Errorf("login again: %v, %d registrations", err, len(w.registrations))
	}
}

// A server that no longer knows a scope of an earlier grant is not asked for it for
// ever.
func TestScopesThatAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "write", http.StatusOK)
	w.hook("GET /authorize", func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if !strings.Contains(q.Get("scope"), "write") {
			w.serveAS(rw, r)
			return
		}
		http.Redirect(rw, r, q.Get("redirect_uri")+"?error=invalid_scope&iss="+w.as.URL+"&state="+q.Get("state"), http.StatusFound)
	})
	w.expire()
	w.locked(func() { clear(w.refresh) })
	var refused *ServerError
	if _, err := call(t.Context(), c, ""); !errors.As(err, &refused) || refused.Code != "invalid_scope" {
		t.Fatalf("error %v", err)
	}
	w.advance(askPause)
	wantCall(t, c, "", http.StatusOK)
}

// Another process refreshed while this one was on its way: its token is used.
func TestC6_AnotherProcessWasFaster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	one, two := w.client(func(o *Options) { o.Store = store }), w.client(func(o *Options) { o.Store = store })
	wantCall(t, one, "", http.StatusOK)
	wantCall(t, two, "", http.StatusOK)
	used := one.session.current().AccessToken
	w.expire()
	wantCall(t, one, "", http.StatusOK)
	p, err := two.discover(t.Context(), challenge{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := two.refreshStored(t.Context(), used, p)
	if err != nil || g.AccessToken != one.session.current().AccessToken || len(w.tokens) != 2 {
		t.Errorf("%v, %d token requests", err, len(w.tokens))
	}
}

// A resource that takes no bearer tokens gets others without being asked for.
func TestResourceThatWantsDPoP(t *testing.T) {
	t.Parallel()
	for _, bound := range []bool{true, false} {
		w := newWorld(t)
		w.resource = with(w.resource, "dpop_bound_access_tokens_required", bound)
		w.server = with(w.server, "dpop_signing_alg_values_supported", []string{"ES256"})
		wantCall(t, w.client(), "", http.StatusOK)
		if got := w.tokenHeaders[0].Get("DPoP") != ""; got != bound || w.authorizations[0].Has("dpop_jkt") != bound {
			t.Errorf("required %t: proof %t", bound, got)
		}
	}
}

func TestC8_RegisteredPort(t *testing.T) {
	t.Parallel()
	free, err := (&Loopback{}).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uri, _ := url.Parse(free.RedirectURI())
	_ = free.Close()
	port, _ := strconv.ParseUint(uri.Port(), 10, 16)
	a, err := (&Loopback{Port: uint16(port)}).beginAt(t.Context(), "http://127.0.0.1:1/callback")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	if a.RedirectURI() != uri.String() {
		t.Errorf("redirect URI %s, want %s", a.RedirectURI(), uri)
	}
}

// A server that thinks of other scopes each time has people asked so often, and not on.
func TestC7_EndlessDemands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grants = func([]string) []string { return nil }
	c := w.client()
	for n := range 2 * maxDemands {
		wantCall(t, c, "scope"+strconv.Itoa(n), http.StatusForbidden)
	}
	if got := len(w.authorizations); got > 1+maxDemands*maxStepUps {
		t.Errorf("%d authorizations", got)
	}
}

// One request is stepped up twice, whatever the server thinks of.
func TestC7_TwiceForOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	n := 0
	w.hook("POST /mcp", func(rw http.ResponseWriter, _ *http.Request) {
		n++
		rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="scope`+strconv.Itoa(n)+`"`)
		rw.WriteHeader(http.StatusForbidden)
	})
	wantCall(t, c, "", http.StatusForbidden)
	if len(w.authorizations) != 1+maxSteps || n != 1+maxSteps {
		t.Errorf("%d authorizations, %d requests", len(w.authorizations), n)
	}
	// nor is anybody asked for the next request
	if _, err := call(t.Context(), c, ""); !errors.Is(err, errInsatiable) || len(w.authorizations) != 1+maxSteps {
		t.Errorf("the next request: %v, %d authorizations", err, len(w.authorizations))
	}
	w.advance(askPause)
	wantCall(t, c, "", http.StatusForbidden)
	if len(w.authorizations) != 1+2*maxSteps {
		t.Errorf("%d authorizations later", len(w.authorizations))
	}
}

// A registration is for its redirect URI: where its port is taken another is made.
func TestC10_PortOfTheRegistrationIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	for _, want := range []int{1, 2} {
		if want == 2 {
			uri, _ := url.Parse(w.registrations[0]["redirect_uris"].([]any)[0].(string))
			taken, err := net.Listen("tcp4", uri.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = taken.Close() }()
		}
		if err := c.Login(t.Context()); err != nil || len(w.registrations) != want {
			t.Fatalf("%v, %d registrations, want %d", err, len(w.registrations), want)
		}
	}
}

// Who cannot be asked for more is told so each time.
func TestC7_NobodyToAskForMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := NewMemoryStore()
	if err := w.client(func(o *Options) { o.Store = store }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := w.client(func(o *Options) { o.Store, o.Authorizer = store, nil })
	for range 4 {
		if _, err := call(t.Context(), c, "write"); !errors.Is(err, ErrLoginRequired) {
			t.Fatalf("error %v", err)
		}
	}
	wantCall(t, c, "read", http.StatusOK)
}

// The answer's request is the caller's: who prints it prints no token.
func TestAnswersHoldNoToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	resp, err := w.client().HTTPClient().Get(w.url())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Request.Header.Get("Authorization") != "" {
		t.Errorf("%d, request with %v", resp.StatusCode, resp.Request.Header)
	}
}
