package interop

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/authclient"
)

// driveAuthclient drives package authclient, under the go-sdk's client, which knows of
// no authorization.
func driveAuthclient(t *testing.T, o order) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := &goClient{order: o}
	p := &authclientProgram{t: t, entries: &grants{Store: authclient.NewMemoryStore()}}
	p.options = authclient.Options{Server: o.MCPURL, Store: p.entries, Now: p.now, Metadata: authclient.ClientMetadata{ClientName: "Interop"},
		Authorizer: &authclient.Loopback{Open: func(ctx context.Context, u string) error { return c.control(ctx, "open", u) }}}
	switch o.Kind {
	case "dcr":
	case "cimd":
		p.options.ClientMetadataURL = o.ClientID
	default:
		client := authclient.RegisteredClient{Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: authclient.Secret(o.ClientSecret), AuthMethod: authMethods[o.Kind]}
		if o.PrivateJWK != nil {
			client.Key = signingKey(t, o.PrivateJWK)
		}
		p.options.Registered = []authclient.RegisteredClient{client}
	}
	p.restart()
	c.transport = &mcp.StreamableClientTransport{Endpoint: o.MCPURL, HTTPClient: &http.Client{Transport: p}}
	c.source, c.wait = p, func() { p.advance(2 * time.Second) }
	c.logout = func(ctx context.Context) error {
		_ = c.session.Close() // while there is a token to do it with
		return p.client().Logout(ctx)
	}
	return c.drive(ctx)
}

func signingKey(t *testing.T, raw []byte) *authclient.SigningKey {
	t.Helper()
	k, err := jwk.ParseKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	var private ecdsa.PrivateKey
	if err := k.Raw(&private); err != nil {
		t.Fatal(err)
	}
	return &authclient.SigningKey{ID: k.KeyID(), Signer: &private}
}

// authclientProgram is a program that can be started again on the same store. It
// implements tokens.
type authclientProgram struct {
	t       *testing.T
	options authclient.Options
	entries *grants

	mu      sync.Mutex
	current *authclient.Client
	offset  time.Duration
}

func (p *authclientProgram) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.offset)
}

func (p *authclientProgram) advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offset += d
}

// restart is another process, which has nothing but the store.
func (p *authclientProgram) restart() {
	p.t.Helper()
	c, err := authclient.New(p.options)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = c
}

func (p *authclientProgram) client() *authclient.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// RoundTrip implements http.RoundTripper.
func (p *authclientProgram) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.client().RoundTrip(r)
}

func (p *authclientProgram) refreshToken() string {
	token, _ := p.entries.read(p.t)["refresh_token"].(string)
	return token
}

func (p *authclientProgram) expire(refresh string) {
	grant := p.entries.read(p.t)
	grant["expiry"] = time.Unix(1, 0)
	if refresh != "" {
		grant["refresh_token"] = refresh
	}
	p.entries.write(p.t, grant)
	p.restart()
}

// grants is a store that knows under which key tokens were saved last.
type grants struct {
	authclient.Store
	mu   sync.Mutex
	last authclient.Key
}

// Save implements authclient.Store.
func (g *grants) Save(ctx context.Context, k authclient.Key, value []byte) error {
	if k.Kind == authclient.KindGrant {
		g.mu.Lock()
		g.last = k
		g.mu.Unlock()
	}
	return g.Store.Save(ctx, k, value)
}

func (g *grants) key() authclient.Key {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

func (g *grants) read(t *testing.T) map[string]any {
	t.Helper()
	entry := map[string]any{}
	raw, err := g.Load(t.Context(), g.key())
	if err == nil {
		err = json.Unmarshal(raw, &entry)
	}
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func (g *grants) write(t *testing.T, entry map[string]any) {
	t.Helper()
	raw, err := json.Marshal(entry)
	if err == nil {
		err = g.Store.Save(t.Context(), g.key(), raw)
	}
	if err != nil {
		t.Fatal(err)
	}
}
