package web

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

//go:embed templates/*.html
var templateFiles embed.FS

// Options configures New.
type Options struct {
	// Operator is the name in the header of every page. Default: the issuer's host.
	Operator string
	// Issuer is the issuer identifier. Required.
	Issuer string
	// Base is the issuer's path, "" for none: every link begins with it. Default:
	// taken from Issuer.
	Base string
	// HelpURL and PrivacyURL are the operator's pages; without one its link is left out.
	HelpURL, PrivacyURL string
	// HelpContact is whom people ask: an e-mail address, or words. Default: nobody
	// is named.
	HelpContact string
	// Now is the clock that dates are compared with. Default time.Now.
	Now func() time.Time
}

// Renderer writes pages. It is safe for concurrent use.
type Renderer struct {
	o         Options
	host      string
	https     bool
	catalogue catalogue
	pages     map[string]*template.Template
	static    map[string]staticFile
}

// New parses every template and checks the options.
func New(o Options) (*Renderer, error) {
	issuer, err := url.Parse(o.Issuer)
	if err != nil || issuer.Host == "" {
		return nil, errors.New("web: Issuer must be an absolute URL")
	}
	if o.Base == "" {
		o.Base = strings.TrimSuffix(issuer.Path, "/")
	}
	if o.Operator == "" {
		o.Operator = issuer.Hostname()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	rd := &Renderer{o: o, host: issuer.Host, https: issuer.Scheme == "https"}
	if rd.catalogue, err = loadCatalogue("en"); err != nil {
		return nil, err
	}
	if rd.static, err = loadStatic(); err != nil {
		return nil, err
	}
	return rd, rd.parse()
}

// parse makes one template set a page: the layout, the shared parts, the page.
func (rd *Renderer) parse() error {
	shared, err := template.New("").Funcs(rd.funcs()).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return fmt.Errorf("web: parse layout: %w", err)
	}
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		return fmt.Errorf("web: list templates: %w", err)
	}
	rd.pages = map[string]*template.Template{}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		t, err := shared.Clone()
		if err != nil {
			return fmt.Errorf("web: clone layout: %w", err)
		}
		if rd.pages[name], err = t.ParseFS(templateFiles, path.Join("templates", f.Name())); err != nil {
			return fmt.Errorf("web: parse %s: %w", f.Name(), err)
		}
	}
	return nil
}

// view is what a template sees: the page, and the server around it.
type view struct {
	P                                        Page
	Operator, Base, IssuerHost               string
	HelpURL, PrivacyURL, HelpContact, HelpTo string
}

// Write writes page p with its status and every header that pages.md §3 asks
// for. Nothing is written when the page cannot be made. A Refresh header that
// the caller set is left alone.
func (rd *Renderer) Write(w http.ResponseWriter, _ *http.Request, status int, p Page) error {
	var body bytes.Buffer
	if err := rd.render(&body, p); err != nil {
		return err
	}
	rd.setHeaders(w.Header(), p)
	w.WriteHeader(status)
	if _, err := body.WriteTo(w); err != nil {
		return fmt.Errorf("write page %s: %w", p.template(), err)
	}
	return nil
}

func (rd *Renderer) render(body *bytes.Buffer, p Page) error {
	t, ok := rd.pages[p.template()]
	if !ok {
		return fmt.Errorf("page %s has no template", p.template())
	}
	v := view{P: p, Operator: rd.o.Operator, Base: rd.o.Base, IssuerHost: rd.host,
		HelpURL: rd.o.HelpURL, PrivacyURL: rd.o.PrivacyURL, HelpContact: rd.o.HelpContact, HelpTo: mailto(rd.o.HelpContact)}
	if err := t.ExecuteTemplate(body, "layout", v); err != nil {
		return fmt.Errorf("render page %s: %w", p.template(), err)
	}
	return nil
}

// mailto returns the link for a help contact that is an e-mail address, else "".
func mailto(contact string) string {
	if strings.Count(contact, "@") != 1 || strings.ContainsAny(contact, " ?&<>\"'") {
		return ""
	}
	return "mailto:" + contact
}
