package resourceserver

import (
	"net/http"
	"strings"
)

// exposedHeaders are what a browser client must be able to read (M2): without
// WWW-Authenticate it cannot even discover where to sign in.
const exposedHeaders = "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version"

// allowedHeaders are those that MCP clients send (M2).
const allowedHeaders = "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID"

// maxParamHeaders bounds the Mcp-Param- headers of one preflight.
const maxParamHeaders = 32

// allowBrowsers lets pages of the origins that are served read the answer. No
// cookie is involved, so a page gains nothing that it has no token for.
func (d *door) allowBrowsers(h http.Header, r *http.Request) {
	if d.any {
		h["Access-Control-Allow-Origin"] = d.allowOrigin
	} else {
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" {
			h.Set("Access-Control-Allow-Origin", origin) // checkOrigin let it in
		}
	}
	h["Access-Control-Expose-Headers"] = d.exposeHeaders
}

// isPreflight tells a CORS preflight from another OPTIONS request, which needs
// a token like everything else (JW-28).
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// writePreflight answers without a token, for browsers send none (M2).
func writePreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", allowedHeaders+paramHeaders(r.Header.Get("Access-Control-Request-Headers")))
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Max-Age", "3600")
	w.WriteHeader(http.StatusNoContent)
}

// paramHeaders returns the Mcp-Param- headers that a page asks for: tools name
// them (2026-07-28), so no list of ours can.
func paramHeaders(asked string) string {
	var b strings.Builder
	n := 0
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if rest, ok := strings.CutPrefix(name, "mcp-param-"); ok && isToken(rest) && n < maxParamHeaders {
			b.WriteString(", " + name)
			n++
		}
	}
	return b.String()
}

// isToken applies the token syntax of RFC 9110 §5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}
