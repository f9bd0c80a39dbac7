package testkit

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxPage bounds a page, in bytes.
const maxPage = 1 << 20

// Page is an HTML page as a browser without scripts sees it.
type Page struct {
	// URL is where the page was found, after redirects within its origin.
	URL    *url.URL
	Status int
	Header http.Header
	Body   string
	// Title and Heading are the texts of title and h1.
	Title, Heading string
	Forms          []*Form
	// Links are the targets of a elements, absolute.
	Links []string
	// Leaves is where a Refresh header or a redirect to another origin leads, nil
	// for none.
	Leaves *url.URL
}

// Form is one form of a page.
type Form struct {
	// Method is GET or POST, Action the attribute's value.
	Method, Action string
	// Values are what the form sends as it stands: hidden and filled fields and
	// ticked boxes, no buttons.
	Values url.Values
	// Boxes are the values of all check-boxes by name, ticked or not.
	Boxes url.Values
}

// Form returns the form whose action has this path, below the issuer's, or nil.
func (p *Page) Form(path string) *Form {
	for _, f := range p.Forms {
		if u, err := p.URL.Parse(f.Action); err == nil && strings.HasSuffix(u.Path, path) {
			return f
		}
	}
	return nil
}

func (p *Page) unexpected(want string) error {
	at := *p.URL
	at.RawQuery = "" // it may carry what must not be logged
	return fmt.Errorf("%s answered %d, %q (%q): want %s", &at, p.Status, p.Title, p.Heading, want)
}

func readPage(resp *http.Response) (*Page, error) {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return nil, err
	}
	p := &Page{URL: resp.Request.URL, Status: resp.StatusCode, Header: resp.Header, Body: string(b)}
	if p.Leaves, err = leaves(resp); err != nil {
		return nil, err
	}
	root, err := html.Parse(strings.NewReader(p.Body))
	if err != nil {
		return nil, err
	}
	for n := range root.Descendants() {
		p.read(n)
	}
	return p, nil
}

// leaves returns the target of a redirect that was not followed or of a Refresh
// header ("0; url=…").
func leaves(resp *http.Response) (*url.URL, error) {
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return resp.Location()
	}
	_, target, ok := strings.Cut(resp.Header.Get("Refresh"), "url=")
	if !ok {
		return nil, nil
	}
	return resp.Request.URL.Parse(target)
}

func (p *Page) read(n *html.Node) {
	switch n.DataAtom {
	case atom.Title:
		p.Title = textOf(n)
	case atom.H1:
		p.Heading = textOf(n)
	case atom.A:
		if u, err := p.URL.Parse(attr(n, "href")); err == nil {
			p.Links = append(p.Links, u.String())
		}
	case atom.Form:
		p.Forms = append(p.Forms, readForm(n))
	}
}

func readForm(form *html.Node) *Form {
	f := &Form{Method: strings.ToUpper(attr(form, "method")), Action: attr(form, "action"), Values: url.Values{}, Boxes: url.Values{}}
	for n := range form.Descendants() {
		if n.DataAtom == atom.Input && attr(n, "name") != "" {
			f.readInput(n)
		}
	}
	return f
}

func (f *Form) readInput(n *html.Node) {
	name, value := attr(n, "name"), attr(n, "value")
	switch attr(n, "type") {
	case "submit", "button", "image", "reset":
	case "checkbox", "radio":
		if value == "" {
			value = "on"
		}
		f.Boxes.Add(name, value)
		if hasAttr(n, "checked") && !hasAttr(n, "disabled") {
			f.Values.Add(name, value)
		}
	default:
		f.Values.Add(name, value)
	}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}
