package authclient

import (
	"net/http"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/netguard"
)

// redirected returns req as it may go out when an http.Client sends it after a redirect:
// not over plain http, but to this machine, and to another origin without what the
// caller said to the MCP server, its body and its session (MM-16).
func redirected(req *http.Request) (*http.Request, error) {
	// net/http gives every request of a chain the header of the first
	from := req
	for from.Response != nil && from.Response.Request != nil {
		from = from.Response.Request
	}
	if sameOrigin(from.URL, req.URL) {
		return req, nil
	}
	if req.URL.Scheme != "https" && !netguard.IsLoopback(req.URL.Hostname()) {
		return nil, refuseBody(req, "the server redirects to %s, without TLS", quoted(origin(req.URL)))
	}
	if !isRead(from.Method) || !isRead(req.Method) {
		return nil, refuseBody(req, "the server redirects a %s to another origin, %s", from.Method, quoted(origin(req.URL)))
	}
	out := req.Clone(req.Context())
	for name := range out.Header {
		if strings.HasPrefix(name, "Mcp-") || name == "Last-Event-Id" {
			out.Header.Del(name)
		}
	}
	return out, nil
}

func isRead(method string) bool {
	return method == "" || method == http.MethodGet || method == http.MethodHead
}

// refuseBody makes an ErrRefused of a RoundTrip, which closes the request's body.
func refuseBody(req *http.Request, format string, args ...any) error {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return refused(format, args...)
}
