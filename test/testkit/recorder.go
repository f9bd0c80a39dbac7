package testkit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/html"
)

// shortestSecret leaves out values that may stand anywhere by chance.
const shortestSecret = 12

// Recorder remembers every secret that passes through its transports, so that a
// test can look for them where none may be kept. The zero value is ready. It is
// safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	seen map[string]string // value to what it is
}

// secretParams are the parameters and members whose values are secrets.
func secretParams() []string {
	return []string{"code", "code_verifier", "access_token", "refresh_token", "token", "client_secret", "client_assertion", "registration_access_token",
		"password", "txn", "link"}
}

// Add records a secret that did not pass through a transport.
func (r *Recorder) Add(what, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]string{}
	}
	if len(value) >= shortestSecret {
		r.seen[value] = what
	}
}

// Kinds returns what was recorded, each kind once, sorted.
func (r *Recorder) Kinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(r.seen)))
}

// Leaks returns the kinds of secret that text holds, plainly or in one of the
// usual encodings, each once, sorted.
func (r *Recorder) Leaks(text string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for value, what := range r.seen {
		if slices.ContainsFunc(encodings(value), func(form string) bool { return strings.Contains(text, form) }) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// encodings are the forms in which a value may be written down.
func encodings(value string) []string {
	quoted := strconv.Quote(value)
	forms := []string{value, quoted[1 : len(quoted)-1], url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value),
		hex.EncodeToString([]byte(value)), base64.RawStdEncoding.EncodeToString([]byte(value)),
		base64.RawURLEncoding.EncodeToString([]byte(value))}
	if raw, err := base64.RawURLEncoding.DecodeString(value); err == nil {
		quoted := strconv.Quote(string(raw)) // as Dump writes bytes
		forms = append(forms, hex.EncodeToString(raw), quoted[1:len(quoted)-1])
	}
	return forms
}

// Over returns next with this recorder listening.
func (r *Recorder) Over(next http.RoundTripper) http.RoundTripper { return recording{r, next} }

type recording struct {
	r    *Recorder
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t recording) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := drain(&req.Body)
	if err != nil {
		return nil, err
	}
	t.r.request(req, body)
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if body, err = drain(&resp.Body); err != nil {
		return nil, err
	}
	t.r.response(resp, body)
	return resp, nil
}

// drain reads a body and puts it back.
func drain(body *io.ReadCloser) ([]byte, error) {
	if *body == nil {
		return nil, nil
	}
	b, err := io.ReadAll(*body)
	_ = (*body).Close()
	*body = io.NopCloser(bytes.NewReader(b))
	return b, err
}

func (r *Recorder) request(req *http.Request, body []byte) {
	r.url(req.URL)
	for _, c := range req.Cookies() {
		r.Add("cookie "+c.Name, c.Value)
	}
	if _, credential, ok := strings.Cut(req.Header.Get("Authorization"), " "); ok {
		r.Add("Authorization", credential)
	}
	if _, secret, ok := req.BasicAuth(); ok {
		r.Add("client_secret", secret)
	}
	if form, err := url.ParseQuery(string(body)); err == nil {
		r.params(form)
	}
}

func (r *Recorder) response(resp *http.Response, body []byte) {
	for _, c := range resp.Cookies() {
		r.Add("cookie "+c.Name, c.Value)
	}
	_, refresh, _ := strings.Cut(resp.Header.Get("Refresh"), "url=")
	for _, target := range []string{resp.Header.Get("Location"), refresh} {
		if u, err := url.Parse(target); err == nil {
			r.url(u)
		}
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		r.page(body)
		return
	}
	var members map[string]any
	if json.Unmarshal(body, &members) != nil {
		return
	}
	for _, name := range secretParams() {
		if value, ok := members[name].(string); ok {
			r.Add(name, value)
		}
	}
}

// page records the hidden fields and the links of a page.
func (r *Recorder) page(body []byte) {
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "input" && slices.Contains(secretParams(), attr(n, "name")) {
			r.Add(attr(n, "name"), attr(n, "value"))
		}
		if u, err := url.Parse(attr(n, "href")); err == nil && n.Type == html.ElementNode {
			r.url(u)
		}
	}
}

func (r *Recorder) url(u *url.URL) {
	r.params(u.Query())
	if _, once, ok := strings.Cut(u.Path, "/return/"); ok {
		r.Add("return", once)
	}
}

func (r *Recorder) params(values url.Values) {
	for _, name := range secretParams() {
		for _, value := range values[name] {
			r.Add(name, value)
		}
	}
}
