package mcpsdk_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/mcpsdk"
	"github.com/ostiary-auth/ostiary/test/testkit/site"
)

// connect connects the SDK's client, which knows nothing of authorization but t.
func connect(t *testing.T, transport *mcp.StreamableClientTransport) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func call(t *testing.T, session *mcp.ClientSession, tool string) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	if text := result.Content[0].(*mcp.TextContent).Text; result.IsError || len(text) <= len(tool+" for ") || !strings.HasPrefix(text, tool+" for ") {
		t.Errorf("call %s = %q", tool, text)
	}
}

// The whole life of a grant, by either way into the SDK: the person is asked at first
// and for more, and never for what a refresh brings.
func TestClientOfTheSDK(t *testing.T) {
	t.Parallel()
	for name, transport := range map[string]func(c *authclient.Client, url string) *mcp.StreamableClientTransport{
		"OAuthHandler": func(c *authclient.Client, url string) *mcp.StreamableClientTransport {
			return &mcp.StreamableClientTransport{Endpoint: url, OAuthHandler: mcpsdk.Handler(c)}
		},
		"HTTPClient": func(c *authclient.Client, url string) *mcp.StreamableClientTransport {
			return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c.HTTPClient()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t)
			c := s.Client()
			session := connect(t, transport(c, s.URL))
			call(t, session, "greet")
			if s.Asked() != 1 {
				t.Errorf("the person was asked %d times before the first tool", s.Asked())
			}
			call(t, session, "add_note")
			if status, err := c.Status(t.Context()); s.Asked() != 2 || err != nil || !strings.Contains(strings.Join(status.Scopes, " "), "notes:read notes:write") {
				t.Errorf("C7 after the step-up: asked %d times, %+v, %v", s.Asked(), status, err)
			}
			s.Server.Clock.Advance(11 * time.Minute)
			before := s.Requests("POST /token")
			call(t, session, "add_note")
			if s.Asked() != 2 || s.Requests("POST /token") != before+1 {
				t.Errorf("C6 after the token's end: asked %d times, %d requests for tokens, want a refresh", s.Asked(), s.Requests("POST /token")-before)
			}
			// another session of the program finds the login
			call(t, connect(t, transport(s.Client(), s.URL)), "greet")
			if s.Asked() != 3 {
				t.Errorf("another Client with a memory of its own: asked %d times in all", s.Asked())
			}
			call(t, connect(t, transport(c, s.URL)), "greet")
			if s.Asked() != 3 {
				t.Errorf("another session of the same Client asked the person")
			}
		})
	}
}

// Without somebody to ask, the SDK's caller hears why.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	c := s.Client(func(o *authclient.Options) { o.Authorizer = nil })
	_, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.URL, OAuthHandler: mcpsdk.Handler(c)}, nil)
	if !errors.Is(err, authclient.ErrLoginRequired) {
		t.Errorf("Connect = %v, want ErrLoginRequired", err)
	}
}

// A server that refuses for another reason than a token's is not asked twice.
func TestRefusalThatNoTokenMends(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	c := s.Client()
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	body := &closed{Reader: strings.NewReader("no")}
	resp := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: body}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	if err := mcpsdk.Handler(c).Authorize(t.Context(), req, resp); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("Authorize = %v, want an error that says 403", err)
	}
	if !body.is || s.Asked() != 1 {
		t.Errorf("body closed: %t; asked %d times, want once", body.is, s.Asked())
	}
}

type closed struct {
	io.Reader
	is bool
}

func (c *closed) Close() error { c.is = true; return nil }

// A bound token is an error instead of a request that is refused for a reason that
// nobody understands.
func TestDPoPIsRefused(t *testing.T) {
	t.Parallel()
	const server, issuer = "https://mcp.example.com/mcp", "https://id.example.com"
	answers := map[string]string{
		"https://mcp.example.com/.well-known/oauth-protected-resource/mcp": `{"resource":"` + server + `","authorization_servers":["` + issuer + `"]}`,
		issuer + "/.well-known/oauth-authorization-server":                 `{"issuer":"` + issuer + `","token_endpoint":"` + issuer + `/token","authorization_endpoint":"` + issuer + `/authorize","response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"dpop_signing_alg_values_supported":["ES256"]}`,
		issuer + "/token": `{"access_token":"bound","token_type":"DPoP","expires_in":600}`,
	}
	c, err := authclient.New(authclient.Options{Server: server, RequireDPoP: true, Transport: answering(answers),
		Machine: &authclient.ClientCredentials{Client: authclient.RegisteredClient{Issuer: issuer, ClientID: "c", ClientSecret: "s"}}})
	if err != nil {
		t.Fatal(err)
	}
	h := mcpsdk.Handler(c)
	if ts, err := h.TokenSource(t.Context()); ts != nil || err != nil {
		t.Errorf("before the first challenge: %v, %v", ts, err)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, server, nil)
	resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody}
	if err := h.Authorize(t.Context(), req, resp); err != nil {
		t.Fatal(err)
	}
	if ts, err := h.TokenSource(t.Context()); !errors.Is(err, mcpsdk.ErrDPoP) {
		t.Errorf("TokenSource = %v, %v, want ErrDPoP", ts, err)
	}
}

// answering is a transport that has an answer for some URLs.
type answering map[string]string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	body, ok := a[r.URL.String()]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// Requests that meet the end of a token at the same moment refresh it once.
func TestC6_ConcurrentCalls(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	session := connect(t, &mcp.StreamableClientTransport{Endpoint: s.URL, OAuthHandler: mcpsdk.Handler(s.Client())})
	call(t, session, "greet")
	s.Server.Clock.Advance(11 * time.Minute)
	before := s.Requests("POST /token")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { call(t, session, "greet") })
	}
	wg.Wait()
	if got := s.Requests("POST /token") - before; got != 1 || s.Asked() != 1 {
		t.Errorf("%d requests for tokens, asked %d times, want one refresh and no question", got, s.Asked())
	}
}

// A program that gives up while the person is at the browser leaves nothing waiting.
func TestCancelledLogin(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := s.Client(func(o *authclient.Options) {
		o.Authorizer = &authclient.Loopback{Open: func(context.Context, string) error { cancel(); return nil }}
	})
	_, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: s.URL, OAuthHandler: mcpsdk.Handler(c)}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Connect = %v, want context.Canceled", err)
	}
}
