package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/ostiary-auth/ostiary/registration"
)

// driveGoSDK drives github.com/modelcontextprotocol/go-sdk as the drivers in
// JavaScript do theirs.
func driveGoSDK(t *testing.T, o order) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := newGoClient(t, o)
	if err != nil {
		return result{said: err.Error()}
	}
	return c.drive(ctx)
}

// drive plays, and ends the session.
func (c *goClient) drive(ctx context.Context) result {
	err := c.play(ctx)
	if c.session != nil {
		_ = c.session.Close()
	}
	r := result{steps: c.steps}
	if err != nil {
		r.said = err.Error()
	}
	return r
}

// goClient is a program on the go-sdk.
type goClient struct {
	order     order
	transport *mcp.StreamableClientTransport
	session   *mcp.ClientSession
	steps     []string
	arrived   chan url.Values
	// wait, when set, lets pass what a server asks to wait.
	wait func()
	// logout, when set, revokes what there is.
	logout func(context.Context) error

	mu     sync.Mutex
	source tokens
}

// tokens are those that a client holds.
type tokens interface {
	refreshToken() string
	// expire makes the client believe that its access token has expired, and that
	// refresh, when not empty, is its refresh token.
	expire(refresh string)
}

func newGoClient(t *testing.T, o order) (*goClient, error) {
	t.Helper()
	c := &goClient{order: o, arrived: make(chan url.Values, 1)}
	listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { c.arrived <- r.URL.Query() }))
	t.Cleanup(listener.Close)
	cfg := &auth.AuthorizationCodeHandlerConfig{RedirectURL: listener.URL + "/callback", RequestRefreshToken: true,
		AuthorizationCodeFetcher: c.fetchCode, NewTokenSource: c.newTokenSource}
	switch o.Kind {
	case "dcr":
		cfg.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Interop", RedirectURIs: []string{cfg.RedirectURL}, TokenEndpointAuthMethod: registration.AuthNone,
			GrantTypes: []string{registration.GrantAuthorizationCode, registration.GrantRefreshToken},
		}}
	case "cimd":
		cfg.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: o.ClientID}
	default:
		cfg.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.ClientID, Issuer: o.Issuer}
		if o.ClientSecret != "" {
			cfg.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
		}
	}
	handler, err := auth.NewAuthorizationCodeHandler(cfg)
	c.transport = &mcp.StreamableClientTransport{Endpoint: o.MCPURL, OAuthHandler: handler}
	return c, err
}

// fetchCode is what the SDK calls to have the person open a browser.
func (c *goClient) fetchCode(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	if err := c.control(ctx, "open", args.URL); err != nil {
		return nil, err
	}
	got := <-c.arrived
	return &auth.AuthorizationResult{Code: got.Get("code"), State: got.Get("state"), Iss: got.Get("iss")}, nil
}

func (c *goClient) newTokenSource(ctx context.Context, cfg *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	source := &expiring{ctx: ctx, config: cfg, token: t}
	c.source = source
	return source, nil
}

// control asks the test to do its half.
func (c *goClient) control(ctx context.Context, action, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.order.ControlURL+"/"+action, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", action, said)
	}
	return err
}

// then runs a step and notes that it was passed.
func (c *goClient) then(ctx context.Context, step string, fn func(context.Context) error) error {
	if err := fn(ctx); err != nil {
		return err
	}
	c.steps = append(c.steps, step)
	return nil
}

// play takes the client through the order's situation (situations.mjs).
func (c *goClient) play(ctx context.Context) error {
	if err := c.then(ctx, "login", c.login); err != nil {
		return err
	}
	if err := c.then(ctx, "tool", c.list); err != nil {
		return err
	}
	first := c.refreshToken()
	switch c.order.Situation {
	case "refresh":
		return c.then(ctx, "refresh", c.refresh)
	case "retry":
		if err := c.then(ctx, "refresh", c.refresh); err != nil {
			return err
		}
		return c.then(ctx, "retry", func(ctx context.Context) error { return c.retry(ctx, first) })
	case "deleted":
		return c.deleted(ctx)
	case "unavailable":
		return c.unavailable(ctx)
	case "wider", "stepup":
		return c.then(ctx, "wider", c.widen)
	}
	if c.logout == nil {
		return nil
	}
	return c.then(ctx, "revoke", c.logout)
}

func (c *goClient) login(ctx context.Context) (err error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, nil)
	c.session, err = client.Connect(ctx, c.transport, nil)
	return err
}

func (c *goClient) list(ctx context.Context) error { return c.call(ctx, "list_notes", nil, "notes") }

func (c *goClient) widen(ctx context.Context) error {
	if err := c.call(ctx, "add_note", map[string]any{"text": "from the interop test"}, "Noted"); err != nil {
		return err
	}
	return c.call(ctx, "list_notes", nil, "interop")
}

func (c *goClient) refresh(ctx context.Context) error {
	before := c.refreshToken()
	c.spoil("")
	if err := c.list(ctx); err != nil {
		return err
	}
	if after := c.refreshToken(); before == "" || after == before {
		return errors.New("the refresh token was not rotated")
	}
	return nil
}

func (c *goClient) retry(ctx context.Context, first string) error {
	second := c.refreshToken()
	c.spoil(first)
	if err := c.list(ctx); err != nil {
		return err
	}
	if c.refreshToken() != second {
		return errors.New("the token before the last one got another successor")
	}
	return nil
}

func (c *goClient) deleted(ctx context.Context) error {
	if err := c.then(ctx, "deleted", func(ctx context.Context) error { return c.control(ctx, "delete-client", "") }); err != nil {
		return err
	}
	c.spoil("")
	if authMethods[c.order.Kind] != "" {
		return c.then(ctx, "refused", c.refused)
	}
	if err := c.then(ctx, "login", c.list); err != nil {
		return err
	}
	return c.then(ctx, "tool", c.list)
}

// refused sees that a client which only the operator could bring back ends with
// a clear error.
func (c *goClient) refused(ctx context.Context) error {
	err := c.list(ctx)
	if err == nil {
		return errors.New("a client that was removed got in")
	}
	if !strings.Contains(err.Error(), "invalid_client") {
		return fmt.Errorf("the error is not clear: %w", err)
	}
	return nil
}

func (c *goClient) unavailable(ctx context.Context) error {
	before := c.refreshToken()
	if err := c.control(ctx, "fail-token-once", ""); err != nil {
		return err
	}
	c.spoil("")
	_ = c.list(ctx) // it may also wait and try again by itself
	c.steps = append(c.steps, "unavailable")
	if c.wait != nil {
		c.wait()
	}
	if err := c.list(ctx); err != nil {
		return err
	}
	if c.refreshToken() == before {
		return errors.New("nothing was refreshed")
	}
	c.steps = append(c.steps, "refresh")
	return nil
}

func (c *goClient) call(ctx context.Context, name string, args map[string]any, want string) error {
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	i := slices.IndexFunc(result.Content, func(c mcp.Content) bool { _, ok := c.(*mcp.TextContent); return ok })
	if result.IsError || i < 0 || !strings.Contains(result.Content[i].(*mcp.TextContent).Text, want) {
		return fmt.Errorf("%s answered %+v, want %q", name, result, want)
	}
	return nil
}

func (c *goClient) refreshToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.source.refreshToken()
}

// spoil makes the client believe that its access token has expired, and that
// refresh, when not empty, is its refresh token.
func (c *goClient) spoil(refresh string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.source.expire(refresh)
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

func (e *expiring) refreshToken() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.token.RefreshToken
}

func (e *expiring) expire(refresh string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := *e.token
	old.Expiry = time.Unix(1, 0)
	if refresh != "" {
		old.RefreshToken = refresh
	}
	e.token = &old
}
