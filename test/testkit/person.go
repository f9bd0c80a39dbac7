package testkit

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// Person drives the pages as somebody at a browser without JavaScript: it
// follows redirects on the server's own origin, fills in the forms it finds,
// and never follows anything to another origin.
type Person struct {
	// HTTP keeps the cookies and follows no redirect: Server.Browser, or a client
	// for a real listener.
	HTTP *http.Client
	// Email and Password are typed into the sign-in form.
	Email, Password string
	// Wait is called before a consent page is answered: buttons arm after 0.7 s
	// (D22), so it moves the clock or sleeps.
	Wait func()
}

// Form is one form of a page.
type Form struct {
	Action, Method string
	// Fields are what the browser would send untouched: hidden and text inputs,
	// and ticked checkboxes.
	Fields url.Values
	// Boxes are all checkboxes, "name=value", ticked or not.
	Boxes []string
}

// Page is where the browser ended.
type Page struct {
	URL    *url.URL
	Status int
	Header http.Header
	Body   string
	// Foreign is the URL of a redirect that leaves the server, "" for none.
	Foreign string
	Forms   []Form
}

// NewPerson returns the person every Server knows, at a browser of their own.
func NewPerson(s *Server) *Person {
	return &Person{HTTP: s.Browser(), Email: Email, Password: Password, Wait: func() { s.Clock.Advance(time.Second) }}
}

// Form returns the first form with that action path, or fails.
func (p *Page) Form(t testing.TB, action string) Form {
	t.Helper()
	for _, f := range p.Forms {
		if u, err := url.Parse(f.Action); err == nil && strings.HasSuffix(u.Path, action) {
			return f
		}
	}
	t.Fatalf("page %s (%d) has no form for %s:\n%s", p.URL, p.Status, action, p.Body)
	return Form{}
}

// Refresh returns where the page's Refresh header leads, "" without one.
func (p *Page) Refresh() string {
	_, u, _ := strings.Cut(p.Header.Get("Refresh"), "url=")
	return u
}

// Open GETs a URL and follows redirects on its own origin.
func (p *Person) Open(t testing.TB, rawURL string) *Page {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.do(t, req)
}

// Submit POSTs a form of a page with changes: a value replaces the field, a nil
// slice removes it.
func (p *Person) Submit(t testing.TB, on *Page, f Form, changes url.Values) *Page {
	t.Helper()
	fields := url.Values{}
	for name, values := range f.Fields {
		fields[name] = slices.Clone(values)
	}
	for name, values := range changes {
		if fields.Del(name); values != nil {
			fields[name] = values
		}
	}
	target := on.URL.ResolveReference(&url.URL{Path: on.URL.Path, RawQuery: on.URL.RawQuery})
	if f.Action != "" {
		u, err := url.Parse(f.Action)
		if err != nil {
			t.Fatal(err)
		}
		target = on.URL.ResolveReference(u)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target.String(), strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Origin", on.URL.Scheme+"://"+on.URL.Host)
	return p.do(t, req)
}

func (p *Person) do(t testing.TB, req *http.Request) *Page {
	t.Helper()
	req.Header.Set("Accept", "text/html")
	for range 10 {
		resp, err := p.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := Body(t, resp)
		page := &Page{URL: req.URL, Status: resp.StatusCode, Header: resp.Header, Body: body, Forms: forms(body)}
		loc, err := resp.Location()
		if err != nil || resp.StatusCode < 300 || resp.StatusCode > 399 {
			return page
		}
		if loc.Host != req.URL.Host || loc.Scheme != req.URL.Scheme {
			page.Foreign = resp.Header.Get("Location")
			return page
		}
		if req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, loc.String(), nil); err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
	}
	t.Fatalf("too many redirects, the last one to %s", req.URL)
	return nil
}

// SignIn fills in the sign-in page.
func (p *Person) SignIn(t testing.TB, page *Page) *Page {
	t.Helper()
	return p.Submit(t, page, page.Form(t, "/sign-in"), url.Values{"username": {p.Email}, "password": {p.Password}})
}

// Allow presses Allow on a consent page, with the boxes as shown but for the
// scopes to tick and those to untick ("-scope").
func (p *Person) Allow(t testing.TB, page *Page, scopes ...string) *Page {
	t.Helper()
	form := page.Form(t, "/consent")
	ticked := slices.Clone(form.Fields["scope"])
	for _, s := range scopes {
		if name, untick := strings.CutPrefix(s, "-"); untick {
			ticked = slices.DeleteFunc(ticked, func(v string) bool { return v == name })
		} else if !slices.Contains(ticked, s) {
			ticked = append(ticked, s)
		}
	}
	p.wait()
	return p.Submit(t, page, form, url.Values{"decision": {"allow"}, "scope": ticked})
}

// Deny presses Don't allow on a consent page.
func (p *Person) Deny(t testing.TB, page *Page) *Page {
	t.Helper()
	p.wait()
	return p.Submit(t, page, page.Form(t, "/consent"), url.Values{"decision": {"deny"}})
}

func (p *Person) wait() {
	if p.Wait != nil {
		p.Wait()
	}
}

// Authorize opens an authorization URL, signs in where asked, allows, and
// returns where the browser is sent: the client's callback with its parameters.
func (p *Person) Authorize(t testing.TB, rawURL string, scopes ...string) *url.URL {
	t.Helper()
	page := p.Open(t, rawURL)
	if page.Foreign == "" && strings.HasSuffix(page.URL.Path, "/sign-in") {
		page = p.SignIn(t, page)
	}
	if page.Foreign == "" && strings.HasSuffix(page.URL.Path, "/consent") {
		page = p.Allow(t, page, scopes...)
	}
	target := page.Foreign
	if target == "" {
		target = page.Refresh()
	}
	u, err := url.Parse(target)
	if err != nil || target == "" {
		t.Fatalf("no way back to the client from %s (%d):\n%s", page.URL, page.Status, page.Body)
	}
	return u
}

// forms reads the forms of a page.
func forms(body string) []Form {
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		return nil
	}
	var list []Form
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == "form" {
			f := Form{Action: attr(n, "action"), Method: attr(n, "method"), Fields: url.Values{}}
			inputs(n, &f)
			list = append(list, f)
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(doc)
	return list
}

func inputs(n *html.Node, f *Form) {
	if n.Type == html.ElementNode && n.Data == "input" && attr(n, "name") != "" {
		name, value := attr(n, "name"), attr(n, "value")
		switch attr(n, "type") {
		case "checkbox", "radio":
			f.Boxes = append(f.Boxes, fmt.Sprintf("%s=%s", name, value))
			if has(n, "checked") {
				f.Fields.Add(name, value)
			}
		case "submit", "button":
		default:
			f.Fields.Add(name, value)
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		inputs(c, f)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}
