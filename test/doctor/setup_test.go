package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/doctor"
	"github.com/ostiary-auth/ostiary/resourceserver"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// setup is a healthy Ostiary and MCP server; nginx stands in front of both. The
// faults share it: they change nginx alone.
type setup struct {
	ca     *authority
	issuer *testkit.Server
	// server and front are the backends of nginx, as host:port.
	server, front string
	// client is a real client's metadata document at a host of its own.
	client *testkit.HTTPSHost

	examined atomic.Int32
}

const clientDocument = "/client.json"

func newSetup(t *testing.T, opts ...testkit.ServerOption) *setup {
	t.Helper()
	s := &setup{ca: newAuthority(t)}
	s.client = testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"client_id":"https://%s%s","client_name":"Example Client","redirect_uris":["http://127.0.0.1/callback"],
			"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"]}`, r.Host, clientDocument)
	}))
	opts = append([]testkit.ServerOption{func(c *config.Config) {
		c.RegistrationManagement = "all" // so that the doctor can take back what it registers
		c.TrustedProxies = []string{"127.0.0.1"}
	}}, opts...)
	s.issuer = testkit.NewServerWithHosts(t, testkit.OpenSQLite(t), []*testkit.HTTPSHost{s.client}, opts...)
	s.issuer.Clock.Advance(time.Since(s.issuer.Clock.Now()))
	front := httptest.NewServer(s.issuer.App.Public())
	t.Cleanup(front.Close)
	s.front = host(front.URL)
	s.server = host(protected(t, s.issuer, testkit.Resource).URL)
	return s
}

// protected is an MCP server behind the middleware. What nginx says in
// X-Clock is its clock.
func protected(t *testing.T, issuer *testkit.Server, resource string) *httptest.Server {
	t.Helper()
	rs, err := resourceserver.New(resourceserver.Options{Issuer: issuer.Config.Issuer, Resource: resource, Scopes: []string{"files:read"}, HTTPClient: issuer.Client()})
	if err != nil {
		t.Fatal(err)
	}
	mcp := rs.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`)
	}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if date := r.Header.Get("X-Clock"); date != "" {
			w.Header().Set("Date", date)
		}
		mcp.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func host(rawURL string) string { return strings.TrimPrefix(rawURL, "http://") }

// examine runs the doctor against the set-up behind n.
func (s *setup) examine(t *testing.T, n nginx, change func(*doctor.Options)) *doctor.Report {
	t.Helper()
	// the server counts guesses by address: each examination comes from its own
	n.from = fmt.Sprintf("203.0.113.%d", s.examined.Add(1))
	n.server, n.issuer = proxied(n.server, s.server, n.from), proxied(n.issuer, s.front, n.from)
	at := n.start(t, s.ca, s.server, s.front)
	roots := s.ca.pool()
	roots.AddCert(s.client.Authority())
	tls := fmt.Sprintf("127.0.0.1:%d", at.tls)
	begun := time.Now() // a clock that stands still: no answer is slow, however busy the machine
	o := doctor.Options{
		URL:               testkit.Resource,
		ClientMetadataURL: s.client.URL + clientDocument,
		RootCAs:           roots,
		ConnectTo: map[string]string{serverHost + ":443": tls, issuerHost + ":443": tls, serverHost + ":80": fmt.Sprintf("127.0.0.1:%d", at.plain),
			s.client.Host: "127.0.0.1" + s.client.Host[strings.LastIndex(s.client.Host, ":"):]},
		Resolver: public(),
		Now:      func() time.Time { return begun },
	}
	if change != nil {
		change(&o)
	}
	r, err := doctor.Examine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// public is a DNS that knows the two hosts at public addresses, and one inside.
func public() *testkit.Resolver {
	r := &testkit.Resolver{}
	r.Set(serverHost, []netip.Addr{netip.MustParseAddr("198.51.100.7")})
	r.Set(issuerHost, []netip.Addr{netip.MustParseAddr("198.51.100.8")})
	r.Set("inside.example.com", []netip.Addr{netip.MustParseAddr("10.0.0.5")})
	return r
}

// logIn lets a person log in, over Ostiary's own pages.
func (s *setup) logIn(o *doctor.Options) {
	o.Write = true
	o.Begin = func(context.Context) (doctor.Attempt, error) { return &person{s.issuer.Person()}, nil }
}

// person is an Attempt of somebody who allows everything.
type person struct{ *testkit.Person }

func (*person) RedirectURI() string { return "http://127.0.0.1:49320/callback" }
func (*person) Close() error        { return nil }
func (p *person) Authorize(ctx context.Context, rawURL string) (url.Values, error) {
	to, err := p.Person.Authorize(ctx, rawURL)
	if err != nil {
		return nil, err
	}
	return to.Query(), nil
}

// refusing is an Attempt of somebody who allows nothing.
type refusing struct{ person }

func (r *refusing) Authorize(ctx context.Context, rawURL string) (url.Values, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return url.Values{"error": {"access_denied"}, "state": u.Query()["state"], "iss": {testkit.Issuer}}, nil
}

// expire makes a certificate that has expired.
func expire(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }
