package resourceserver

import "net/http"

// exposedHeaders are what a browser client must be able to read (M2): without
// WWW-Authenticate it cannot even discover where to sign in.
const exposedHeaders = "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version"

// allowBrowsers lets pages of any origin read the answer. No cookie is
// involved, so a page gains nothing that it has no token for.
func allowBrowsers(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
}

// isPreflight tells a CORS preflight from another OPTIONS request, which needs
// a token like everything else (JW-28).
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// writePreflight answers without a token, for browsers send none (M2).
func writePreflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, MCP-Protocol-Version, "+
		"Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID")
	h.Set("Access-Control-Max-Age", "3600")
	w.WriteHeader(http.StatusNoContent)
}
