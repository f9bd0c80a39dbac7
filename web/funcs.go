package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxClaim is how much of a client's name is shown, in characters.
const maxClaim = 60

// funcs are what templates call.
func (rd *Renderer) funcs() template.FuncMap {
	c := rd.catalogue
	return template.FuncMap{
		"t": c.html, "text": c.text, "plural": c.plural,
		"asset":    func(name string) string { return rd.o.Base + rd.static[name].path },
		"quoted":   rd.quoted,
		"claimed":  rd.claimed,
		"plain":    clean,
		"strong":   func(s string) template.HTML { return "<b>" + escape(s) + "</b>" },
		"exact":    exact,
		"isolated": func(s string) template.HTML { return "<bdi>" + escape(s) + "</bdi>" },
		"link":     func(href, text any) template.HTML { return link(fmt.Sprint(href), text, "") },
		"linkNew":  rd.linkNew,
		"away":     away,
		"contact":  rd.contact,
		"day":      rd.day,
		"moment":   rd.moment,
		"minute":   rd.minute,
		"ago":      rd.ago,
		"daysTo":   rd.daysTo,
		"zulu":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"advice":   rd.advice,
		"problem":  rd.problem,
		"message":  rd.message,
		"who":      rd.who,
		"named":    rd.named,
		"wait":     rd.wait,
		"snippet":  snippet,
		"warned": func(p interface {
			warned(w Warning) consentWarning
		}, w Warning) consentWarning {
			return p.warned(w)
		},
		"permission": func(server string, p Permission) permission {
			return permission{Permission: p, Server: server}
		},
	}
}

func escape(s string) template.HTML { return template.HTML(template.HTMLEscapeString(clean(s))) }

// exact is a host in a sentence, to be read letter by letter: it does not break
// at a hyphen, which would look like one that hyphenation put there.
func exact(host string) template.HTML { return `<b class="exact">` + escape(host) + `</b>` }

// clean drops what could change how its surroundings read: control, bidi and
// zero-width characters, and bytes that are no UTF-8 (CS-12).
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, s)
}

// claimed returns the name a client gave itself, cut, in quotation marks, for
// titles. An app without a name is called by its client ID, when it is given.
func (rd *Renderer) claimed(c Client, clientID ...string) string {
	name := strings.TrimSpace(norm.NFC.String(clean(c.Name)))
	if name == "" && len(clientID) > 0 {
		name = clean(clientID[0])
	}
	if name == "" {
		return rd.catalogue["app.unnamed"]
	}
	if runes := []rune(name); len(runes) > maxClaim {
		name = strings.TrimSpace(string(runes[:maxClaim-1])) + "…"
	}
	return "“" + name + "”"
}

// quoted is claimed, kept apart from the text around it whatever its direction.
func (rd *Renderer) quoted(c Client, clientID ...string) template.HTML {
	return "<bdi>" + escape(rd.claimed(c, clientID...)) + "</bdi>"
}

// link makes a link inside a sentence; href is one of ours or of the operator.
func link(href string, text any, attrs template.HTML) template.HTML {
	label, ok := text.(template.HTML)
	if !ok {
		label = escape(fmt.Sprint(text))
	}
	return `<a href="` + template.HTML(template.HTMLEscapeString(href)) + `"` + attrs + `>` + label + `</a>`
}

// linkNew opens a new tab, and says so in words.
func (rd *Renderer) linkNew(href string, text template.HTML) (template.HTML, error) {
	hint, err := rd.catalogue.html("link.new_tab")
	return link(href, text+`<span class="vh"> `+hint+`</span>`, ` target="_blank" rel="noopener"`), err
}

// away allows the one link that leaves us: html/template would replace a
// private-use scheme by #ZgotmplZ. The caller built the URL from a redirect URI
// that matched exactly; schemes that run or show something here are refused all
// the same (decision D15).
func away(raw string) (template.URL, error) {
	for i := range len(raw) {
		if c := raw[i]; c <= 0x20 || c >= 0x7f || strings.IndexByte("\"'<>`", c) >= 0 {
			return "", fmt.Errorf("return URL has a character that a URI may not contain")
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("return URL cannot be parsed")
	}
	switch u.Scheme {
	case "", "javascript", "data", "file", "blob", "vbscript", "about", "filesystem", "view-source", "ws", "wss":
		return "", fmt.Errorf("return URL has the scheme %q", u.Scheme)
	}
	return template.URL(raw), nil
}

// contact names whom to ask.
func (rd *Renderer) contact() (template.HTML, error) {
	if rd.o.HelpContact == "" {
		return rd.catalogue.html("contact.none", "operator", rd.o.Operator)
	}
	if to := mailto(rd.o.HelpContact); to != "" {
		return link(to, rd.o.HelpContact, ""), nil
	}
	return escape(rd.o.HelpContact), nil
}

// day is "3 November", with the year when it is not this one. Dates are UTC and
// English; other languages come with their own (decision D20).
func (rd *Renderer) day(t time.Time) string {
	t = t.UTC()
	if t.Year() == rd.o.Now().UTC().Year() {
		return t.Format("2 January")
	}
	return t.Format("2 January 2006")
}

// moment is "today at 10:42 UTC", or the day alone.
func (rd *Renderer) moment(t time.Time) (template.HTML, error) {
	t, now := t.UTC(), rd.o.Now().UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return rd.catalogue.html("date.today_at", "time", t.Format("15:04"))
	}
	return template.HTML(rd.day(t)), nil
}

// minute is "today at 10:42 UTC" or "on 3 November at 10:42 UTC", for what people
// compare with their own memory.
func (rd *Renderer) minute(t time.Time) (template.HTML, error) {
	if t, now := t.UTC(), rd.o.Now().UTC(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return rd.moment(t)
	}
	return rd.catalogue.html("date.on_at", "day", rd.day(t), "time", t.UTC().Format("15:04"))
}

// ago is how long t lies back, in the largest unit that fits.
func (rd *Renderer) ago(t time.Time) (template.HTML, error) {
	d := rd.o.Now().Sub(t)
	switch {
	case d < time.Minute:
		return rd.catalogue.html("ago.now")
	case d < time.Hour:
		return rd.catalogue.plural("ago.minutes", int(d/time.Minute))
	case d < 24*time.Hour:
		return rd.catalogue.plural("ago.hours", int(d/time.Hour))
	}
	return rd.catalogue.plural("ago.days", int(d/(24*time.Hour)))
}

// daysTo is the number of days until t, at least 1. It rounds: what was given 30
// days a moment ago has 30.
func (rd *Renderer) daysTo(t time.Time) int {
	return max(1, int(math.Round(t.Sub(rd.o.Now()).Hours()/24)))
}

// advice returns the keys of a stop's bullets, in order.
func (rd *Renderer) advice(c ErrorCase) []string {
	var keys []string
	for _, n := range []string{"1", "2", "3"} {
		key := "error." + string(c) + ".advice" + n
		if _, ok := rd.catalogue[key]; ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// problem returns the catalogue key of what is wrong with a field, "" for nothing.
func (rd *Renderer) problem(ps []FieldProblem, field string) string {
	for _, p := range ps {
		if p.Field == field {
			return p.Message
		}
	}
	return ""
}

// message returns the sentence of a FieldProblem; one that is unknown must not
// cost the person the page.
func (rd *Renderer) message(key string) (template.HTML, error) {
	if _, ok := rd.catalogue[key]; !ok {
		key = ProblemField
	}
	return rd.catalogue.html(key)
}

// who begins the sentence of an error page: the app by its name, or "An app".
func (rd *Renderer) who(c *Client) (template.HTML, error) {
	if c == nil || c.Unnamed || clean(c.Name) == "" {
		return rd.catalogue.html("error.app")
	}
	return rd.catalogue.html("error.app_named", "client", rd.quoted(*c))
}

// named is a server in a sentence, or words for one that is not known.
func (rd *Renderer) named(server string) (template.HTML, error) {
	if server == "" {
		return rd.catalogue.html("error.server_unnamed")
	}
	return "<b>" + escape(server) + "</b>", nil
}

// wait is how long to wait, in words.
func (rd *Renderer) wait(seconds int) (template.HTML, error) {
	switch {
	case seconds <= 0:
		return rd.catalogue.html("wait.moment")
	case seconds < 120:
		return rd.catalogue.plural("wait.seconds", seconds)
	}
	return rd.catalogue.plural("wait.minutes", (seconds+59)/60)
}

// consentWarning is one of a page's warnings, with the page it stands on. Sentences
// is where the catalogue has the words of the button that refuses.
type consentWarning struct {
	Consent
	Warning   Warning
	Sentences string
}

func (p Consent) warned(w Warning) consentWarning {
	return consentWarning{Consent: p, Warning: w, Sentences: "consent"}
}

func (p StepUp) warned(w Warning) consentWarning {
	return consentWarning{Consent: p.Consent, Warning: w, Sentences: "more"}
}

// permission is a Permission and the server whose it is.
type permission struct {
	Permission
	Server string
}

// snippet is the RFC 9728 document that an MCP server publishes to name us.
func snippet(resource, issuer string) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Resource             string   `json:"resource"`
		AuthorizationServers []string `json:"authorization_servers"`
	}{resource, []string{issuer}})
	return b.String(), err
}
