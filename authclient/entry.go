package authclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// grant is an entry of KindGrant: what one authorization brought. It is never
// changed: who refreshes makes a new one.
type grant struct {
	Issuer       string    `json:"issuer"`
	Resource     string    `json:"resource,omitempty"` // the resource parameter
	ClientID     string    `json:"client_id,omitempty"`
	AccessToken  string    `json:"access_token"`
	TokenType    string    `json:"token_type"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Issued       time.Time `json:"issued"`
	Expiry       time.Time `json:"expiry,omitzero"`
	// Scopes is what was granted, as far as the server said, or else asked for.
	Scopes []string `json:"scopes,omitempty"`
	// Key is the key of a DPoP-bound token, as proofKey.encode writes it.
	Key json.RawMessage `json:"dpop_key,omitempty"`
}

// soon is how long before its end a token counts as expired, at most: the request
// has to arrive.
const soon = 10 * time.Second

// fresh reports whether the access token will do for a request that starts now. One
// without an end is good until it is refused.
func (g *grant) fresh(now time.Time) bool {
	if g == nil || g.AccessToken == "" {
		return false
	}
	if g.Expiry.IsZero() {
		return true
	}
	early := min(soon, g.Expiry.Sub(g.Issued)/5)
	return now.Before(g.Expiry.Add(-early))
}

// alive reports whether the access token has not ended.
func (g *grant) alive(now time.Time) bool {
	return g != nil && g.AccessToken != "" && (g.Expiry.IsZero() || now.Before(g.Expiry))
}

// pointer is an entry of KindServer: where the grant for an MCP server is. It is
// where a process begins that has asked nobody yet.
type pointer struct {
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"` // as in the grant's key
	ClientID string `json:"client_id,omitempty"`
}

// registration is an entry of KindClient.
type registration struct {
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"`
	AuthMethod   string    `json:"token_endpoint_auth_method"`
	RedirectURI  string    `json:"redirect_uri,omitempty"`
	Expires      time.Time `json:"client_secret_expires,omitzero"`
}

// auth is how the client proves itself.
func (r *registration) auth() clientAuth {
	return secretAuth{clientID: r.ClientID, secret: Secret(r.ClientSecret), method: r.AuthMethod}
}

func (c *Client) serverKey() Key {
	return Key{Kind: KindServer, Resource: c.name, Account: c.o.Account}
}

func (c *Client) clientKey(issuer string) Key {
	return Key{Kind: KindClient, Issuer: issuer, Account: c.o.Account}
}

func (c *Client) grantKey(p pointer) Key {
	return Key{Kind: KindGrant, Issuer: p.Issuer, Resource: p.Resource, Client: p.ClientID, Account: c.o.Account}
}

// pointerOf is where g is stored.
func (c *Client) pointerOf(g *grant) pointer {
	resource := g.Resource
	if resource == "" {
		resource = c.name
	}
	return pointer{Issuer: g.Issuer, Resource: resource, ClientID: g.ClientID}
}

// loadPointer returns nil when nothing is stored for the server.
func (c *Client) loadPointer(ctx context.Context) (*pointer, error) {
	return load[pointer](ctx, c.o.Store, c.serverKey())
}

// loadGrant returns nil when there is none. What is stored under the key of another
// issuer, resource or client is not believed (rule C5).
func (c *Client) loadGrant(ctx context.Context, p pointer) (*grant, error) {
	g, err := load[grant](ctx, c.o.Store, c.grantKey(p))
	if err != nil || g == nil {
		return nil, err
	}
	if c.pointerOf(g) != p {
		return nil, errors.New("the stored tokens are of another authorization server, resource or client")
	}
	return g, nil
}

// loadRegistration returns nil when there is none that is good still.
func (c *Client) loadRegistration(ctx context.Context, issuer string) (*registration, error) {
	r, err := load[registration](ctx, c.o.Store, c.clientKey(issuer))
	if err != nil || r == nil {
		return nil, err
	}
	if r.Issuer != issuer || !r.Expires.IsZero() && !c.o.Now().Before(r.Expires) {
		return nil, nil
	}
	return r, nil
}

// saveGrant stores g where it will be found. It returns when the grant is safe: only
// then may its tokens be used (rule C6).
func (c *Client) saveGrant(ctx context.Context, g *grant) error {
	p := c.pointerOf(g)
	if err := save(ctx, c.o.Store, c.grantKey(p), g); err != nil {
		return err
	}
	old, err := c.loadPointer(ctx)
	if err == nil && old != nil && *old == p {
		return nil
	}
	return save(ctx, c.o.Store, c.serverKey(), p)
}

func load[T any](ctx context.Context, s Store, k Key) (*T, error) {
	raw, err := s.Load(ctx, k)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the stored %s: %w", k.Kind, err)
	}
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("the stored %s cannot be read", k.Kind) // err may quote it
	}
	return v, nil
}

func save(ctx context.Context, s Store, k Key, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the %s: %w", k.Kind, err)
	}
	if err := s.Save(ctx, k, raw); err != nil {
		return fmt.Errorf("store the %s: %w", k.Kind, err)
	}
	return nil
}
