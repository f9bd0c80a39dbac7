package authclient

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// bearsIn reports whether a request to u may carry the token: it stays on the MCP
// server's origin, at or below its path or that of the resource.
func (c *Client) bearsIn(u *url.URL, resource string) bool {
	to := *u
	to.RawQuery, to.Fragment = "", ""
	target, err := oauth.CanonicalResource(to.String())
	if err != nil || !sameOrigin(u, c.server) || climbs(u.EscapedPath()) {
		return false
	}
	for _, r := range []string{c.o.Server, resource} {
		base, err := oauth.CanonicalResource(r)
		if err != nil {
			continue
		}
		base, _, _ = strings.Cut(base, "?")
		if oauth.ResourceWithin(base, target) {
			return true
		}
	}
	return false
}

// decodedOnce decodes what servers and proxies decode once more than they should.
var decodedOnce = strings.NewReplacer("%2e", ".", "%2f", "/", "%5c", `\`, "%3b", ";", "%25", "%")

// maxDecodings is how often: a path with more layers is not meant well.
const maxDecodings = 4

// climbs reports a path that some server reads as one above: with dot segments behind
// encodings, backslashes or parameters ("..;").
func climbs(path string) bool {
	path = strings.ToLower(path)
	for range maxDecodings {
		for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
				return true
			}
		}
		next := decodedOnce.Replace(path)
		if next == path {
			return false
		}
		path = next
	}
	return true
}

// bears reports whether a token of this client's may go to u.
func (c *Client) bears(u *url.URL) bool {
	if s := c.server; u.Scheme == s.Scheme && u.Host == s.Host && u.Path == s.Path && u.RawPath == s.RawPath && u.User == nil {
		return true // nearly every request
	}
	resource := c.o.Server
	if g := c.session.current(); g != nil && g.Resource != "" {
		resource = g.Resource
	}
	return c.bearsIn(u, resource)
}

// bearsToken reports whether a request is for the MCP server and has no token yet.
func (c *Client) bearsToken(req *http.Request) bool {
	return req.Header.Get("Authorization") == "" && c.bears(req.URL)
}

// CheckRedirect is for an http.Client that sends this client's tokens by itself, as
// SDKs with an OAuthHandler do: it refuses, with ErrRefused, a redirect to where no
// token may go. net/http would send it to another port of the same host. The client of
// HTTPClient needs none.
func (c *Client) CheckRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return refused("the server redirects more than %d times", maxRedirects)
	}
	if !c.bears(req.URL) {
		return refused("the server redirects to %s, outside of %s", quoted(origin(req.URL)), quoted(c.o.Server))
	}
	return nil
}
