package interop

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/ostiary-auth/ostiary/test/testkit"
)

func TestInterop_GoSDK(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, mcpURL := servers(t, database(t))
			c := newGoClient(t)
			session := c.connect(t, mcpURL)

			if got := callTool(t, session, "list_notes", nil); !strings.Contains(got, "no notes") {
				t.Errorf("list_notes = %q", got)
			}
			if asked := c.asked(); asked != 1 {
				t.Errorf("the person was asked %d times, want once", asked)
			}
			c.expire(t)
			callTool(t, session, "list_notes", nil)
			if asked := c.asked(); asked != 1 {
				t.Errorf("the person was asked %d times: the expired token was not refreshed", asked)
			}
			t.Run("step up", func(t *testing.T) {
				callTool(t, session, "add_note", map[string]any{"text": "from the interop test"})
				if asked := c.asked(); asked != 2 {
					t.Errorf("the person was asked %d times, want twice", asked)
				}
				if got := callTool(t, session, "list_notes", nil); !strings.Contains(got, "interop") {
					t.Errorf("list_notes = %q", got)
				}
			})
			t.Run("revocation", func(t *testing.T) { c.revoke(t, o.Issuer) })
		})
	}
}

// goClient is a program on the go-sdk with a person beside it.
type goClient struct {
	handler  *auth.AuthorizationCodeHandler
	person   *testkit.Person
	arrived  chan url.Values
	mu       sync.Mutex
	count    int
	config   *oauth2.Config
	source   *expiring
	redirect string
}

func newGoClient(t *testing.T) *goClient {
	t.Helper()
	c := &goClient{person: testkit.NewPerson(email, password, nil), arrived: make(chan url.Values, 1)}
	listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { c.arrived <- r.URL.Query() }))
	t.Cleanup(listener.Close)
	c.redirect = listener.URL + "/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Interop", RedirectURIs: []string{c.redirect}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		RedirectURL: c.redirect, RequestRefreshToken: true,
		AuthorizationCodeFetcher: c.fetchCode, NewTokenSource: c.newTokenSource,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.handler = handler
	return c
}

// fetchCode is what the SDK calls to have the person open a browser.
func (c *goClient) fetchCode(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	c.mu.Lock()
	c.count++
	c.mu.Unlock()
	to, err := c.person.Authorize(ctx, args.URL)
	if err != nil {
		return nil, err
	}
	if err := c.person.Deliver(ctx, to); err != nil {
		return nil, err
	}
	got := <-c.arrived
	return &auth.AuthorizationResult{Code: got.Get("code"), State: got.Get("state"), Iss: got.Get("iss")}, nil
}

func (c *goClient) newTokenSource(ctx context.Context, cfg *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config, c.source = cfg, &expiring{ctx: ctx, config: cfg, token: t}
	return c.source, nil
}

func (c *goClient) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// expire makes the client believe that its access token has expired.
func (c *goClient) expire(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.source.token.RefreshToken == "" {
		t.Fatal("no refresh token was issued")
	}
	c.source.expire()
}

// revoke ends the grant and sees that a refresh fails with invalid_grant. The
// go-sdk has no call for it (RFC 7009).
func (c *goClient) revoke(t *testing.T, issuer string) {
	t.Helper()
	token, err := c.source.Token()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.PostForm(issuer+"/revoke", url.Values{"token": {token.RefreshToken}, "client_id": {c.config.ClientID}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("revocation answered %s", resp.Status)
	}
	c.source.expire()
	if _, err := c.source.Token(); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("refresh after revocation: %v, want invalid_grant", err)
	}
}

func (c *goClient) connect(t *testing.T, mcpURL string) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: mcpURL, OAuthHandler: c.handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func callTool(t *testing.T, session *mcp.ClientSession, name string, args map[string]any) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	i := slices.IndexFunc(result.Content, func(c mcp.Content) bool { _, ok := c.(*mcp.TextContent); return ok })
	if result.IsError || i < 0 {
		t.Fatalf("%s = %+v", name, result)
	}
	return result.Content[i].(*mcp.TextContent).Text
}

// expiring is x/oauth2's refreshing source with an expiry that tests bring on.
type expiring struct {
	ctx    context.Context
	config *oauth2.Config
	mu     sync.Mutex
	token  *oauth2.Token
}

// Token implements oauth2.TokenSource.
func (e *expiring) Token() (*oauth2.Token, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.config.TokenSource(e.ctx, e.token).Token()
	if err == nil {
		e.token = t
	}
	return t, err
}

func (e *expiring) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := *e.token
	old.Expiry = time.Unix(1, 0)
	e.token = &old
}
