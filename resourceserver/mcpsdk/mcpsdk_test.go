package mcpsdk_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
	"github.com/ostiary-auth/ostiary/test/testkit/issuer"
)

const resource = "https://mcp.example.com/mcp"

func newServer(t *testing.T, i *issuer.Issuer, now func() time.Time) *resourceserver.Server {
	t.Helper()
	rs, err := resourceserver.New(resourceserver.Options{Issuer: i.URL, Resource: resource, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func serve(t *testing.T, h http.Handler, token string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, resource, strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandlerWithoutProtect(t *testing.T) {
	t.Parallel()
	h := mcpsdk.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	if w := serve(t, h, "anything"); w.Code != http.StatusUnauthorized {
		t.Errorf("status = %d, want 401", w.Code)
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	var info *auth.TokenInfo
	h := newServer(t, i, nil).Protect(mcpsdk.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		info = auth.TokenInfoFromContext(r.Context())
		if got := r.Header.Get("Authorization"); got != "" {
			t.Errorf("JW-24 the handler sees Authorization %q", got)
		}
	})))
	if w := serve(t, h, i.Token(t, resource, "u_1", "notes:read notes:write")); w.Code != http.StatusOK {
		t.Fatalf("status = %d: %s", w.Code, w.Body)
	}
	if info == nil || info.UserID != i.URL+" u_1" || !slices.Equal(info.Scopes, []string{"notes:read", "notes:write"}) || info.Expiration.IsZero() {
		t.Fatalf("TokenInfo = %+v", info)
	}
	if token, ok := mcpsdk.Token(request(info)); !ok || token.Subject != "u_1" {
		t.Errorf("Token = %+v, %v", token, ok)
	}
}

// With AllowTokenPassthrough the handler gets what it asked for.
func TestHandlerWithPassthrough(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	rs, err := resourceserver.New(resourceserver.Options{Issuer: i.URL, Resource: resource, AllowTokenPassthrough: true})
	if err != nil {
		t.Fatal(err)
	}
	token, got := i.Token(t, resource, "u_1", ""), ""
	h := rs.Protect(mcpsdk.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") })))
	if w := serve(t, h, token); got != "Bearer "+token {
		t.Errorf("status = %d, Authorization = %q", w.Code, got)
	}
}

// What Protect lets in by its clock, the SDK does not refuse by another.
func TestHandlerLeavesTheClockToProtect(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	expired := time.Now().Add(-time.Hour)
	served := false
	h := newServer(t, i, func() time.Time { return expired.Add(5 * time.Second) }). // within ClockSkew
											Protect(mcpsdk.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true })))
	if w := serve(t, h, i.TokenUntil(t, resource, "u_1", "", expired)); !served {
		t.Errorf("status = %d: %s", w.Code, w.Body)
	}
}

// A proxy on the same machine passes the public name on; the SDK would refuse it.
func TestHandlerBehindLocalProxy(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	srv := httptest.NewServer(newServer(t, i, nil).Protect(mcpsdk.Handler(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))))
	t.Cleanup(srv.Close)
	for host, want := range map[string]int{"mcp.example.com": http.StatusOK, "JW-27.rebound.example": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+i.Token(t, resource, "u_1", ""))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %s: %s, want %d", host, resp.Status, want)
		}
	}
}

func TestVerifier(t *testing.T) {
	t.Parallel()
	i, away := issuer.New(t), issuer.New(t)
	gone := away.Token(t, resource, "u_1", "notes:read")
	away.Close()
	for _, tt := range []struct {
		name, token string
		issuer      *issuer.Issuer
		want        int
	}{
		{"good", i.Token(t, resource, "u_1", "notes:read"), i, http.StatusOK},
		{"scope missing", i.Token(t, resource, "u_1", "other"), i, http.StatusForbidden},
		{"JW-15 another audience", i.Token(t, "https://other.example.com/mcp", "u_1", "notes:read"), i, http.StatusUnauthorized},
		{"JW-04 huge", strings.Repeat("a", 1<<20), i, http.StatusUnauthorized},
		{"no token at all", "!", i, http.StatusUnauthorized},
		{"M8 issuer away", gone, away, http.StatusInternalServerError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require := auth.RequireBearerToken(mcpsdk.Verifier(newServer(t, tt.issuer, nil)), &auth.RequireBearerTokenOptions{Scopes: []string{"notes:read"}})
			h := require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				token, ok := mcpsdk.Token(request(auth.TokenInfoFromContext(r.Context())))
				if !ok || token.Subject != "u_1" {
					t.Errorf("Token = %+v, %v", token, ok)
				}
			}))
			if w := serve(t, h, tt.token); w.Code != tt.want {
				t.Errorf("status = %d %s, want %d", w.Code, w.Body, tt.want)
			}
		})
	}
}

func TestTokenOfRequestsWithout(t *testing.T) {
	t.Parallel()
	for name, req := range map[string]mcp.Request{
		"no extra":        &mcp.CallToolRequest{},
		"no token info":   &mcp.CallToolRequest{Extra: &mcp.RequestExtra{}},
		"somebody else's": request(&auth.TokenInfo{UserID: "u_1"}),
		"other type":      request(&auth.TokenInfo{Extra: map[string]any{"token": "u_1"}}),
	} {
		if token, ok := mcpsdk.Token(req); ok || token != nil {
			t.Errorf("%s: Token = %+v, %v", name, token, ok)
		}
	}
}

// A tool finds the token of its own request, not of the one that began the session.
func TestTokenIsThatOfTheRequest(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "scopes"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		token, _ := mcpsdk.Token(req)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(token.Scopes, " ")}}}, nil, nil
	})
	srv := httptest.NewServer(newServer(t, i, nil).Protect(mcpsdk.Handler(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))))
	t.Cleanup(srv.Close)
	bearer := &bearer{token: i.Token(t, resource, "u_1", "notes:read")}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: &http.Client{Transport: bearer}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	for _, scope := range []string{"notes:read", "notes:read notes:write"} {
		bearer.token = i.Token(t, resource, "u_1", scope)
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "scopes"})
		if err != nil || len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != scope {
			t.Errorf("the tool saw %+v, %v; want %q", result, err, scope)
		}
	}
}

func request(info *auth.TokenInfo) mcp.Request {
	return &mcp.CallToolRequest{Extra: &mcp.RequestExtra{TokenInfo: info}}
}

// bearer adds its token to a client's requests.
type bearer struct{ token string }

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}
