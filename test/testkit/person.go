package testkit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxHops bounds the redirects of one step.
const maxHops = 10

// Person drives the pages as somebody at a browser without scripts: it follows
// redirects on the server's own origin, fills in the forms it finds, and never
// follows anything to another origin by itself.
type Person struct {
	// Email and Password are typed into the sign-in form.
	Email, Password string
	// Pause is called before a consent page is answered, because its buttons arm
	// after 0.7 s (D22). Default: sleep for 0.8 s; tests with a clock move it.
	Pause func()

	client *http.Client
}

// NewPerson returns a person at a browser of their own. transport reaches the
// server; nil is the network.
func NewPerson(email, password string, transport http.RoundTripper) *Person {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // cookiejar.New never fails without options
	}
	return &Person{Email: email, Password: password, Pause: func() { time.Sleep(800 * time.Millisecond) },
		client: &http.Client{Transport: transport, Jar: jar, Timeout: time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Person returns the person that every Server knows, at a browser of their own
// whose pauses move the server's clock.
func (s *Server) Person() *Person {
	p := NewPerson(Email, Password, s.transport())
	p.Pause = func() { s.Clock.Advance(time.Second) }
	return p
}

// Jar returns the browser's cookies.
func (p *Person) Jar() http.CookieJar { return p.client.Jar }

// Open GETs a page and follows redirects on its own origin.
func (p *Person) Open(ctx context.Context, rawURL string) (*Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return nil, err
	}
	return p.Do(req)
}

// Submit sends a form of a page with changes: a value replaces the field, nil
// removes it.
func (p *Person) Submit(ctx context.Context, on *Page, f *Form, changes url.Values) (*Page, error) {
	if f == nil {
		return nil, on.unexpected("a form")
	}
	fields := url.Values{}
	for name, values := range f.Values {
		fields[name] = slices.Clone(values)
	}
	for name, values := range changes {
		if fields.Del(name); values != nil {
			fields[name] = values
		}
	}
	target, err := on.URL.Parse(f.Action)
	if err != nil {
		return nil, err
	}
	if f.Method == http.MethodGet {
		return p.Open(ctx, target.String())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(fields.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Origin", on.URL.Scheme+"://"+on.URL.Host)
	return p.Do(req)
}

// Do sends a request as the browser would and follows redirects on its origin.
func (p *Person) Do(req *http.Request) (*Page, error) {
	for range maxHops {
		req.Header.Set("Accept", "text/html")
		resp, err := p.client.Do(req)
		if err != nil {
			return nil, err
		}
		page, err := readPage(resp)
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 || resp.StatusCode > 399 || !sameOrigin(page.Leaves, req.URL) {
			return page, nil
		}
		if req, err = http.NewRequestWithContext(req.Context(), http.MethodGet, page.Leaves.String(), nil); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("too many redirects")
}

func sameOrigin(a, b *url.URL) bool { return a != nil && a.Scheme == b.Scheme && a.Host == b.Host }

// SignIn fills in the sign-in page.
func (p *Person) SignIn(ctx context.Context, page *Page) (*Page, error) {
	return p.Submit(ctx, page, page.Form("/sign-in"), url.Values{"username": {p.Email}, "password": {p.Password}})
}

// Allow presses Allow on a consent page, with exactly these boxes ticked, or
// with the boxes as they stand when no scope is named.
func (p *Person) Allow(ctx context.Context, page *Page, scopes ...string) (*Page, error) {
	changes := url.Values{"decision": {"allow"}}
	if len(scopes) > 0 {
		changes["scope"] = scopes
	}
	p.Pause()
	return p.Submit(ctx, page, page.Form("/consent"), changes)
}

// Deny presses "Don't allow" on a consent page.
func (p *Person) Deny(ctx context.Context, page *Page) (*Page, error) {
	p.Pause()
	return p.Submit(ctx, page, page.Form("/consent"), url.Values{"decision": {"deny"}})
}

// Authorize opens an authorization URL, signs in where asked, allows, and
// returns where the browser is sent: the client's redirect URI with the response.
func (p *Person) Authorize(ctx context.Context, rawURL string, scopes ...string) (*url.URL, error) {
	page, err := p.ToConsent(ctx, rawURL)
	if err != nil {
		return nil, err
	}
	if page.Leaves == nil && page.Form("/consent") != nil {
		if page, err = p.Allow(ctx, page, scopes...); err != nil {
			return nil, err
		}
	}
	if page.Leaves == nil {
		return nil, page.unexpected("the way back to the client")
	}
	return page.Leaves, nil
}

// ToConsent opens an authorization URL and signs in where asked; the page it
// returns is the consent page, or whatever else came.
func (p *Person) ToConsent(ctx context.Context, rawURL string) (*Page, error) {
	page, err := p.Open(ctx, rawURL)
	if err != nil {
		return nil, err
	}
	if page.Leaves == nil && page.Form("/sign-in") != nil {
		return p.SignIn(ctx, page)
	}
	return page, nil
}

// Deliver brings the response to the client's listener, which must be on this
// machine.
func (p *Person) Deliver(ctx context.Context, to *url.URL) error {
	switch to.Hostname() {
	case "localhost", "127.0.0.1", "::1":
	default:
		return fmt.Errorf("%s is not a program on this machine", to.Host)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 400 {
		return fmt.Errorf("the client answered %s", resp.Status)
	}
	return nil
}
