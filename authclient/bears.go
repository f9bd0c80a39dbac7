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
	if err != nil || !sameOrigin(u, c.server) {
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

// bearsToken reports whether a request is for the MCP server and has no token yet.
func (c *Client) bearsToken(req *http.Request) bool {
	if req.Header.Get("Authorization") != "" {
		return false
	}
	resource := c.o.Server
	if g := c.session.current(); g != nil && g.Resource != "" {
		resource = g.Resource
	}
	return c.bearsIn(req.URL, resource)
}
