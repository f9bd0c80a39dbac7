package oauth

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Params are the parameters of an OAuth request, each at most once but for
// resource (RFC 6749 §3.1, RFC 8707 §2).
type Params url.Values

// Get returns the parameter's value, "" when it is absent.
func (p Params) Get(name string) string { return url.Values(p).Get(name) }

// Has reports whether the parameter was sent, be it empty.
func (p Params) Has(name string) bool { return url.Values(p).Has(name) }

// All returns every value of a parameter that may repeat.
func (p Params) All(name string) []string { return p[name] }

// Repeated returns the names sent more than once, resource left out, sorted.
func (p Params) Repeated() []string {
	var names []string
	for name, values := range p {
		if len(values) > 1 && name != "resource" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// QueryParams parses the query of a GET request strictly: a pair that cannot be
// decoded, invalid UTF-8 or a NUL is invalid_request, never dropped. Repeats
// are kept, for the caller to refuse (Repeated).
func QueryParams(r *http.Request) (Params, error) { return parseParams(r.URL.RawQuery) }

// FormParams parses an application/x-www-form-urlencoded POST body as strictly.
// Nothing is ever taken from the query string (OAuth 2.1 §3.2). The body must
// already be limited in size.
func FormParams(r *http.Request) (Params, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/x-www-form-urlencoded" {
		return nil, InvalidRequest("Content-Type must be application/x-www-form-urlencoded")
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, &Error{Code: "invalid_request", Status: http.StatusUnsupportedMediaType,
			Description: "Content-Encoding is not supported; send the body as it is"}
	}
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	return parseParams(body)
}

func parseParams(raw string) (Params, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, InvalidRequest("the parameters cannot be decoded").With(err)
	}
	for name, vs := range values {
		for _, v := range append(vs, name) {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return nil, InvalidRequest("a parameter is not valid UTF-8 or contains NUL")
			}
		}
	}
	return Params(values), nil
}

func readAll(r *http.Request) (string, error) {
	var b strings.Builder
	if r.Body == nil {
		return "", nil
	}
	if _, err := io.Copy(&b, r.Body); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return "", &Error{Code: "invalid_request", Status: http.StatusRequestEntityTooLarge,
				Description: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit), Err: err}
		}
		return "", InvalidRequest("the body could not be read").With(err)
	}
	return b.String(), nil
}
