package authclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// served lists the requests for documents, as "resource" or "server" and the path.
func (w *world) served() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.seen {
		host, request, _ := strings.Cut(line, " ")
		path, ok := strings.CutPrefix(request, "GET ")
		if !ok || !strings.Contains(path, "/.well-known/") && !strings.Contains(path, "/doc") {
			continue
		}
		whose := "resource "
		if "http://"+host == w.as.URL {
			whose = "server "
		}
		list = append(list, whose+path)
	}
	return list
}

func serveDocument(w *world, doc func() map[string]any) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		_ = json.NewEncoder(rw).Encode(doc())
	}
}

func TestC1_OrderOfDocuments(t *testing.T) {
	t.Parallel()
	notFound := http.HandlerFunc(http.NotFound)
	const well = "/.well-known/oauth-protected-resource"
	for _, tt := range []struct {
		name   string
		change func(*world)
		want   []string
	}{
		{name: "that of the challenge", want: []string{"resource /doc", "server /.well-known/oauth-authorization-server"}, change: func(w *world) {
			w.challenge = `resource_metadata="` + w.mcp.URL + `/doc"`
			w.hook("GET /doc", serveDocument(w, func() map[string]any { return w.resource }))
		}},
		{name: "then that of the path", want: []string{"resource /doc", "resource " + well + "/mcp", "server /.well-known/oauth-authorization-server"}, change: func(w *world) {
			w.challenge = `resource_metadata="` + w.mcp.URL + `/doc"`
			w.hook("GET /doc", notFound)
		}},
		{name: "then that of the root", want: []string{"resource " + well + "/mcp", "resource " + well, "server /.well-known/oauth-authorization-server"}, change: func(w *world) {
			w.challenge = ""
			w.hook("GET "+well+"/mcp", notFound)
			w.resource = with(w.resource, "resource", w.mcp.URL)
			w.hook("GET "+well, serveDocument(w, func() map[string]any { return w.resource }))
		}},
		{name: "a challenge that names the root's", want: []string{"resource " + well, "server /.well-known/oauth-authorization-server"}, change: func(w *world) {
			w.challenge = `resource_metadata="` + w.mcp.URL + well + `"`
			w.resource = with(w.resource, "resource", w.mcp.URL)
			w.hook("GET "+well, serveDocument(w, func() map[string]any { return w.resource }))
		}},
		{name: "no header at all", want: []string{"resource " + well + "/mcp", "server /.well-known/oauth-authorization-server"}, change: func(w *world) { w.challenge = "" }},
		{name: "OpenID Connect's document", want: []string{"resource " + well + "/mcp", "server /.well-known/oauth-authorization-server",
			"server /.well-known/openid-configuration"}, change: func(w *world) {
			w.hook("GET /.well-known/oauth-authorization-server", notFound)
			w.hook("GET /.well-known/openid-configuration", serveDocument(w, func() map[string]any { return w.server }))
		}},
		{name: "an issuer with a path: inserted, inserted, appended", want: []string{"resource " + well + "/mcp",
			"server /.well-known/oauth-authorization-server/t1", "server /.well-known/openid-configuration/t1", "server /t1/.well-known/openid-configuration"},
			change: func(w *world) {
				w.resource = with(w.resource, "authorization_servers", []string{w.as.URL + "/t1"})
				w.server = with(with(w.document(w.as.URL), "issuer", w.as.URL+"/t1"), "authorization_response_iss_parameter_supported", false)
				w.hook("GET /t1/.well-known/openid-configuration", serveDocument(w, func() map[string]any { return w.server }))
				w.hook("GET /authorize", func(rw http.ResponseWriter, r *http.Request) {
					w.locked(func() { w.codes["path-code"] = r.URL.Query() })
					http.Redirect(rw, r, r.URL.Query().Get("redirect_uri")+"?code=path-code&state="+r.URL.Query().Get("state"), http.StatusFound)
				})
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.change(w)
			wantCall(t, w.client(), "", http.StatusOK)
			if diff := cmp.Diff(tt.want, w.served()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What must not be followed ends the discovery: nothing is registered, asked or sent.
func TestDiscoveryRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*world)
	}{
		{name: "MM-07 issuer with a slash", change: func(w *world) { w.server = with(w.server, "issuer", w.as.URL+"/") }},
		{name: "MM-07 issuer with a path", change: func(w *world) { w.server = with(w.server, "issuer", w.as.URL+"/x") }},
		{name: "MM-07 issuer of another host", change: func(w *world) { w.server = with(w.server, "issuer", "https://as.example") }},
		{name: "MM-07 no issuer", change: func(w *world) { w.server = without(w.server, "issuer") }},
		{name: "MM-10 foreign origin", change: func(w *world) { w.resource = with(w.resource, "resource", "https://mcp.example/mcp") }},
		{name: "MM-10 sibling path", change: func(w *world) { w.resource = with(w.resource, "resource", w.mcp.URL+"/other") }},
		{name: "MM-10 path below", change: func(w *world) { w.resource = with(w.resource, "resource", w.url()+"/x") }},
		{name: "MM-10 path above", change: func(w *world) { w.resource = with(w.resource, "resource", w.mcp.URL) }},
		{name: "MM-10 cross-origin resource_metadata", change: func(w *world) { w.challenge = `resource_metadata="` + w.as.URL + `/doc"` }},
		{name: "MM-10 cross-origin redirect", change: func(w *world) {
			w.hook("GET /.well-known/oauth-protected-resource/mcp", func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, w.as.URL+"/doc", http.StatusFound)
			})
		}},
		{name: "MM-12 authorization server metadata redirects", change: func(w *world) {
			w.hook("GET /.well-known/oauth-authorization-server", func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "/doc", http.StatusFound)
			})
		}},
		{name: "MM-14 no PKCE", change: func(w *world) { w.server = without(w.server, "code_challenge_methods_supported") }},
		{name: "MM-14 plain alone", change: func(w *world) { w.server = with(w.server, "code_challenge_methods_supported", []string{"plain"}) }},
		{name: "no authorization server", change: func(w *world) { w.resource = without(w.resource, "authorization_servers") }},
		{name: "MM-12 authorization server on a private network", change: func(w *world) {
			w.resource = with(w.resource, "authorization_servers", []string{"https://10.0.0.1"})
		}},
		{name: "MM-12 authorization server without TLS", change: func(w *world) {
			w.resource = with(w.resource, "authorization_servers", []string{"http://as.example"})
		}},
		{name: "issuer with a query", change: func(w *world) { w.resource = with(w.resource, "authorization_servers", []string{w.as.URL + "?x"}) }},
		{name: "MM-12 token endpoint at a cloud's metadata service", change: func(w *world) {
			w.server = with(w.server, "token_endpoint", "http://169.254.169.254/token")
		}},
		{name: "MM-12 registration endpoint on a private network", change: func(w *world) {
			w.server = with(w.server, "registration_endpoint", "https://192.168.1.1/register")
		}},
		{name: "MM-12 revocation endpoint without TLS", change: func(w *world) {
			w.server = with(w.server, "revocation_endpoint", "http://as.example/revoke")
		}},
		{name: "MM-11 javascript", change: func(w *world) { w.server = with(w.server, "authorization_endpoint", "javascript:alert(1)") }},
		{name: "MM-11 file", change: func(w *world) {
			w.server = with(w.server, "authorization_endpoint", "file:///c:/windows/system32/calc.exe")
		}},
		{name: "MM-11 command in a scheme (CVE-2025-6514)", change: func(w *world) {
			w.server = with(w.server, "authorization_endpoint", "a:$(cmd.exe /c whoami > c:\\temp\\pwned.txt)?response_type=code")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.change(w)
			_, err := call(t.Context(), w.client(), "")
			if !errors.Is(err, ErrRefused) {
				t.Errorf("error %v, want ErrRefused", err)
			}
			if len(w.registrations)+len(w.authorizations)+len(w.tokens) > 0 {
				t.Errorf("%d registrations, %d authorizations, %d token requests", len(w.registrations), len(w.authorizations), len(w.tokens))
			}
		})
	}
}

// A failure that is no absence is final: nothing weaker is tried.
func TestC1_FailureIsNoAbsence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, at, want string }{
		{"resource document", "GET /.well-known/oauth-protected-resource/mcp", "answered 500"},
		{"server document", "GET /.well-known/oauth-authorization-server", "answered 500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.challenge = ""
			w.hook(tt.at, answerJSON(http.StatusInternalServerError, `{}`))
			before := len(w.served())
			_, err := call(t.Context(), w.client(), "")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if list := w.served()[before:]; !strings.HasSuffix(list[len(list)-1], strings.TrimPrefix(tt.at, "GET ")) {
				t.Errorf("asked on: %v", list)
			}
		})
	}
}

// MCP 2025-03-26: the origin of the server is the authorization server.
func TestC1_Legacy(t *testing.T) {
	t.Parallel()
	for _, documented := range []bool{false, true} {
		w := newWorld(t)
		w.challenge, w.resource = "", nil
		// the authorization server's endpoints at the MCP server's origin
		for _, at := range []string{"GET /authorize", "POST /token", "POST /register"} {
			w.hooks[at] = w.serveAS
		}
		w.hook("GET /authorize", func(rw http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			w.locked(func() { w.authorizations, w.codes["old"] = append(w.authorizations, q), q })
			http.Redirect(rw, r, q.Get("redirect_uri")+"?code=old&state="+q.Get("state"), http.StatusFound)
		})
		if documented {
			w.hook("GET /.well-known/oauth-authorization-server", answerJSON(200, `{"issuer":"`+w.mcp.URL+`","authorization_endpoint":"`+w.mcp.URL+
				`/authorize","token_endpoint":"`+w.mcp.URL+`/token","registration_endpoint":"`+w.mcp.URL+`/register","code_challenge_methods_supported":["S256"]}`))
		}
		c := w.client()
		wantCall(t, c, "", http.StatusOK)
		if got := w.authorizations[0]; got.Has("resource") || got.Get("code_challenge_method") != "S256" {
			t.Errorf("documented %t: authorize %v", documented, got)
		}
		w.advance(time600)
		w.expire()
		wantCall(t, c, "", http.StatusOK)
		if got := w.tokens[len(w.tokens)-1]; got.Get("grant_type") != "refresh_token" || got.Has("resource") {
			t.Errorf("documented %t: refresh %v", documented, got)
		}
	}
}

func TestC1_IssuerSlashByOption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server = with(w.server, "issuer", w.as.URL+"/")
	if _, err := call(t.Context(), w.client(), ""); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrIssuerSlash) {
		t.Errorf("without it: %v", err)
	}
	wantCall(t, w.client(func(o *Options) { o.TolerateIssuerSlash = true }), "", http.StatusOK)
	wantCall(t, w.client(func(o *Options) {
		o.TolerateIssuerSlash, o.Registered = true, []RegisteredClient{{Issuer: w.as.URL, ClientID: "known"}}
	}), "", http.StatusOK)
	if got := w.authorizations[1].Get("client_id"); got != "known" {
		t.Errorf("client_id %q", got)
	}
}

func TestMM10_ParentResourceByOption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resource = with(w.resource, "resource", w.mcp.URL)
	wantCall(t, w.client(func(o *Options) { o.AllowParentResource = true }), "", http.StatusOK)
	if got := w.authorizations[0].Get("resource"); got != w.mcp.URL {
		t.Errorf("resource = %q", got)
	}
	w = newWorld(t)
	w.resource = with(w.resource, "resource", w.mcp.URL+"/mc")
	if _, err := call(t.Context(), w.client(func(o *Options) { o.AllowParentResource = true }), ""); !errors.Is(err, ErrRefused) {
		t.Errorf("a prefix that is no parent: %v", err)
	}
}

// The resource parameter is what the document says, byte by byte.
func TestC2_ResourceAsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	written := strings.Replace(w.url(), "http://", "HTTP://", 1)
	w.resource = with(w.resource, "resource", written)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	w.advance(time600)
	wantCall(t, c, "", http.StatusOK)
	for i, got := range []string{w.authorizations[0].Get("resource"), w.tokens[0].Get("resource"), w.tokens[1].Get("resource")} {
		if got != written {
			t.Errorf("request %d: resource = %q, want %q", i, got, written)
		}
	}
}

// MM-13: what one authorization server issued is not sent to the next.
func TestMM13_C5_AuthorizationServerChanges(t *testing.T) {
	t.Parallel()
	w, next := newWorld(t), newWorld(t)
	store := NewMemoryStore()
	wantCall(t, w.client(func(o *Options) { o.Store = store }), "", http.StatusOK)
	w.resource = with(w.resource, "authorization_servers", []string{next.as.URL})
	w.advance(time600)
	w.expire()
	var sent []string
	w.hook("POST /mcp", func(rw http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		next.mu.Lock()
		_, ok := next.access[token]
		sent = append(sent, token)
		next.mu.Unlock()
		if !ok {
			rw.Header().Set("WWW-Authenticate", "Bearer "+w.challenge)
			rw.WriteHeader(http.StatusUnauthorized)
		}
	})
	wantCall(t, w.client(func(o *Options) { o.Store = store }), "", http.StatusOK)
	if len(next.registrations) != 1 || len(next.authorizations) != 1 {
		t.Errorf("at the next: %d registrations, %d authorizations", len(next.registrations), len(next.authorizations))
	}
	for _, f := range next.tokens {
		if f.Get("grant_type") != "authorization_code" || f.Has("refresh_token") {
			t.Errorf("the next was sent %v", f)
		}
	}
	if got := w.asked("POST /token"); got != 1 {
		t.Errorf("the old one was asked %d times", got)
	}
	// with a client that is bound to the old one there is nothing to go on with
	w.resource = with(w.resource, "authorization_servers", []string{next.as.URL})
	next.server = without(next.server, "registration_endpoint")
	_, err := call(t.Context(), w.client(func(o *Options) {
		o.Registered = []RegisteredClient{{Issuer: w.as.URL, ClientID: "known", ClientSecret: "s3cret"}}
	}), "")
	if !errors.Is(err, ErrCannotRegister) {
		t.Errorf("error %v, want ErrCannotRegister", err)
	}
}

// MM-13: a client that is the same everywhere does not carry a refresh token along.
func TestMM13_SameClientAtTheNextServer(t *testing.T) {
	t.Parallel()
	w, next := newWorld(t), newWorld(t)
	for _, each := range []*world{w, next} {
		each.server = with(each.server, "client_id_metadata_document_supported", true)
	}
	store := NewMemoryStore()
	change := func(o *Options) { o.Store, o.ClientMetadataURL = store, "https://app.example/client.json" }
	wantCall(t, w.client(change), "", http.StatusOK)
	w.resource = with(w.resource, "authorization_servers", []string{next.as.URL})
	w.advance(time600)
	w.expire()
	if got, err := call(t.Context(), w.client(change), ""); err != nil || got != http.StatusUnauthorized {
		t.Fatalf("call: %d, %v", got, err) // this MCP server takes the old server's tokens alone
	}
	if len(next.tokens) != 1 || next.tokens[0].Has("refresh_token") {
		t.Errorf("the next server was sent %v", next.tokens)
	}
	if len(w.tokens) != 1 {
		t.Errorf("the old server was sent %v", w.tokens)
	}
}

// The token goes to the server's own path and nowhere else.
func TestTokenStaysWithTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	var other string
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { other = r.Header.Get("Authorization") }))
	t.Cleanup(foreign.Close)
	for _, url := range []string{foreign.URL + "/mcp", w.mcp.URL + "/mcp-other", w.mcp.URL + "/", w.mcp.URL + "/mcp/../x"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if c.bearsToken(req) {
			t.Errorf("%s would get the token", url)
		}
	}
	resp, err := c.HTTPClient().Get(foreign.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if other != "" {
		t.Errorf("another origin got %q", other)
	}
	if resp, err := c.HTTPClient().Get("https://10.0.0.1/mcp"); !errors.Is(err, ErrRefused) {
		t.Errorf("a host on the private network: %v, %v", resp, err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url()+"/below?x=y", nil)
	if !c.bearsToken(req) {
		t.Error("a path below the server's gets no token")
	}
}

func FuzzMetadata(f *testing.F) {
	for _, s := range []string{`{"issuer":"https://as.example","token_endpoint":"https://as.example/token","code_challenge_methods_supported":["S256"]}`,
		`{"issuer":"https://as.example","Issuer":"https://evil.example"}`, `{"issuer":"https://as.example","token_endpoint":"https://10.0.0.1/"}`,
		`{"resource":"https://mcp.example/mcp","authorization_servers":["https://as.example"],"scopes_supported":["a","b c"]}`, `[]`, `{"issuer":null}`} {
		f.Add([]byte(s))
	}
	c, err := New(Options{Server: "https://mcp.example/mcp"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if as, err := c.endpoint.readMetadata(body, "https://as.example"); err == nil {
			if as.Issuer != "https://as.example" {
				t.Errorf("issuer %q", as.Issuer)
			}
			for _, raw := range []string{as.AuthorizationEndpoint, as.TokenEndpoint, as.RegistrationEndpoint, as.RevocationEndpoint} {
				if raw != "" && !strings.HasPrefix(strings.ToLower(raw), "https://") {
					t.Errorf("endpoint %q", raw)
				}
			}
		}
		if p, err := c.readResource(body, documentPlace{"https://mcp.example/doc", []string{"https://mcp.example/mcp"}}); err == nil && p.issuer == "" {
			t.Error("no issuer")
		}
	})
}

func TestNotProtected(t *testing.T) {
	t.Parallel()
	open := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" {
			http.NotFound(rw, r)
			return
		}
		_, _ = io.WriteString(rw, "hello")
	}))
	t.Cleanup(open.Close)
	c, err := New(Options{Server: open.URL + "/mcp", Authorizer: &Loopback{Open: browse}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Login(t.Context()); !errors.Is(err, ErrNotProtected) {
		t.Errorf("Login: %v", err)
	}
	wantCall(t, c, "", http.StatusOK)
	for _, status := range []int{404, 502} {
		c, err := New(Options{Server: open.URL + "/nothing", Authorizer: &Loopback{Open: browse},
			Transport: &instant{http.Response{StatusCode: status, Header: http.Header{}}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Login(t.Context()); err == nil || errors.Is(err, ErrNotProtected) || !strings.Contains(err.Error(), fmt.Sprint(status)) {
			t.Errorf("a place that answers %d: %v", status, err)
		}
	}
}

// TestMM10_RefusedMetadataIsForgotten: a challenge that named what is refused, from a
// proxy perhaps, does not spoil those that name nothing.
func TestMM10_RefusedMetadataIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	w.locked(func() { w.challenge = `resource_metadata="` + w.as.URL + `/doc"` })
	if _, err := call(t.Context(), c, ""); !errors.Is(err, ErrRefused) {
		t.Fatalf("error %v, want ErrRefused", err)
	}
	w.locked(func() { w.challenge = `realm="x"` })
	wantCall(t, c, "", http.StatusOK)
}
