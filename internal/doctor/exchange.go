package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// query is one request. The zero method is GET.
type query struct {
	method, url string
	header      http.Header
	body        string
}

func get(rawURL string, header ...string) query {
	q := query{method: http.MethodGet, url: rawURL, header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		q.header.Set(header[i], header[i+1])
	}
	return q
}

// post sends a body that cannot succeed, or, with --write, one that shall.
func post(rawURL, contentType, body string, header ...string) query {
	q := get(rawURL, header...)
	q.method, q.body = http.MethodPost, body
	q.header.Set("Content-Type", contentType)
	return q
}

// preflight is what a browser asks before a page's request (Fetch §4.8).
func preflight(origin, rawURL, method string, headers ...string) query {
	q := get(rawURL, "Origin", origin, "Access-Control-Request-Method", method)
	q.method = http.MethodOptions
	if len(headers) > 0 {
		slices.Sort(headers)
		q.header.Set("Access-Control-Request-Headers", strings.ToLower(strings.Join(headers, ",")))
	}
	return q
}

// Origins of pages: one somewhere, at a name that RFC 2606 keeps free, and the
// MCP Inspector on this machine. Servers on a loopback host serve the second alone.
const (
	browserOrigin  = "https://doctor.example"
	loopbackOrigin = "http://localhost:6274"
)

// origin is that of a page which the MCP server should serve.
func (x *examination) origin() string {
	if isLoopbackHost(x.target.Hostname()) {
		return loopbackOrigin
	}
	return browserOrigin
}

// exchange is a request and what came of it: an answer or err.
type exchange struct {
	query
	status int
	header http.Header
	body   []byte
	tls    *tls.ConnectionState
	took   time.Duration
	at     time.Time
	err    error
}

// asked says what was asked, in one line.
func (e *exchange) asked() string {
	s := e.method + " " + e.url
	if ua := e.query.header.Get("User-Agent"); ua != "" {
		s += ", as " + ua
	}
	if e.query.header.Get("Authorization") != "" {
		s += ", with Authorization"
	}
	return s
}

// shown are the answer's headers worth a place in a report.
var shown = []string{"Location", "Www-Authenticate", "Content-Type", "Retry-After", "Server"}

// came says what came, in one line.
func (e *exchange) came() string {
	if e.err != nil {
		return plainError(e.err)
	}
	s := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	for _, name := range shown {
		for _, v := range e.header.Values(name) {
			s += "; " + name + ": " + v
		}
	}
	if about := e.excerpt(); about != "" && e.status >= 400 {
		s += "; " + about
	}
	return s
}

// maxExcerpt bounds what is shown of a body, in bytes.
const maxExcerpt = 160

var title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// excerpt is what a body says: the JSON of an error, the title of a page.
func (e *exchange) excerpt() string {
	switch m := title.FindSubmatch(e.body[:min(len(e.body), maxRead)]); {
	case e.isHTML() && m != nil:
		return "a page titled " + strconv.Quote(html.UnescapeString(strings.TrimSpace(string(m[1]))))
	case parseDocument(e.body) != nil && len(e.body) <= maxExcerpt:
		return strings.TrimSpace(string(e.body))
	case oauthError(e) != "":
		about := parseDocument(e.body).text("error_description")
		return strings.ToValidUTF8(about[:min(len(about), maxExcerpt)], "")
	}
	return ""
}

// redirects reports a redirect and where it leads.
func (e *exchange) redirects() (string, bool) {
	if e.status < 300 || e.status > 399 || e.status == http.StatusNotModified {
		return "", false
	}
	return e.header.Get("Location"), true
}

// isJSON reports a JSON media type (RFC 6839 §3.1 allows the suffix).
func (e *exchange) isJSON() bool {
	t := e.mediaType()
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

func (e *exchange) mediaType() string {
	t, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// isHTML reports a page, whatever its media type says.
func (e *exchange) isHTML() bool {
	start := strings.ToLower(strings.TrimSpace(string(e.body[:min(len(e.body), 200)])))
	return strings.Contains(e.mediaType(), "html") || strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
}

// plainError is the innermost error that tells something, without the URL that
// net/http puts before it.
func plainError(err error) string {
	var private *privateError
	if errors.As(err, &private) {
		return private.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", requestTimeout)
	}
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "net/http: "), "HTTP/1.x transport connection broken: ")
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before the answer had come"
	case errors.Is(err, syscall.ECONNRESET):
		return "the connection was reset before the answer had come"
	case strings.HasPrefix(text, "malformed "):
		return "what came is not HTTP: " + text
	}
	return text
}
