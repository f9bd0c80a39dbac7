package mcpsdk_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/mcpsdk"
	"github.com/ostiary-auth/ostiary/test/testkit/site"
)

// elsewhere is another server, which notes what it is sent.
type elsewhere struct {
	*httptest.Server
	mu     sync.Mutex
	tokens []string
	asked  int
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	e := &elsewhere{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.asked++
		if h := r.Header.Get("Authorization"); h != "" {
			e.tokens = append(e.tokens, h)
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *elsewhere) got() (asked int, tokens []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked, e.tokens
}

// TestTK12_AnotherEndpoint: a server that is not the Client's asks for a token and gets
// none, nor is anybody asked to log in for it.
func TestTK12_AnotherEndpoint(t *testing.T) {
	t.Parallel()
	s, other := site.Start(t), newElsewhere(t)
	_, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: other.URL, OAuthHandler: mcpsdk.Handler(s.Client())}, nil)
	if !errors.Is(err, authclient.ErrRefused) {
		t.Errorf("Connect = %v, want ErrRefused", err)
	}
	if asked, tokens := other.got(); asked == 0 || len(tokens) > 0 || s.Asked() != 0 {
		t.Errorf("asked %d times, got %q; the person was asked %d times", asked, tokens, s.Asked())
	}
}

// TestTK12_AnswerFromElsewhere: the challenge of a server behind a redirect is not the
// MCP server's.
func TestTK12_AnswerFromElsewhere(t *testing.T) {
	t.Parallel()
	s, other := site.Start(t), newElsewhere(t)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {"Bearer"}}, Body: http.NoBody,
		Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, other.URL, nil)}
	if err := mcpsdk.Handler(s.Client()).Authorize(t.Context(), req, resp); !errors.Is(err, authclient.ErrRefused) || !strings.Contains(err.Error(), other.URL) {
		t.Errorf("Authorize = %v, want ErrRefused and %s", err, other.URL)
	}
	if s.Asked() != 0 {
		t.Errorf("the person was asked %d times", s.Asked())
	}
}

// TestTK12_CheckRedirect: with it, the SDK follows no redirect to another port of the
// host, to which net/http would send the token too.
func TestTK12_CheckRedirect(t *testing.T) {
	t.Parallel()
	s, other := site.Start(t), newElsewhere(t)
	c := s.Client()
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	to.Host = at.Hostname() + ":" + to.Port()
	redirected := 0
	redirecting := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != at.Host {
			return http.DefaultTransport.RoundTrip(r)
		}
		redirected++
		_, _ = io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: http.StatusTemporaryRedirect, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Location": {to.String()}}, Body: http.NoBody, Request: r}, nil
	})
	_, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL,
		OAuthHandler: mcpsdk.Handler(c), HTTPClient: &http.Client{Transport: redirecting, CheckRedirect: c.CheckRedirect}}, nil)
	if err == nil || !strings.Contains(err.Error(), "redirects to") {
		t.Errorf("Connect = %v, want a refusal of the redirect", err)
	}
	if asked, tokens := other.got(); redirected == 0 || asked > 0 {
		t.Errorf("redirected %d times; the other port was asked %d times, with %d tokens", redirected, asked, len(tokens))
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRefusalWithoutEnd: nobody waits for the body of a refusal.
func TestRefusalWithoutEnd(t *testing.T) {
	t.Parallel()
	s := site.Start(t)
	body, end := io.Pipe()
	t.Cleanup(func() { _ = end.Close() })
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	resp := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: body, ContentLength: -1}
	if err := mcpsdk.Handler(s.Client()).Authorize(t.Context(), req, resp); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("Authorize = %v", err)
	}
	if _, err := end.Write([]byte("more")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the body is open: %v", err)
	}
}
