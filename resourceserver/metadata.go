package resourceserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

const wellKnownPath = "/.well-known/oauth-protected-resource"

// wellKnown returns the metadata document's URL (RFC 9728 §3.1: the well-known
// path goes between host and path, so it has the MCP server's own origin) and
// the paths that serve it. The root form belongs to a resource that is a bare
// origin: RFC 9728 §3.3 lets clients refuse it for any other (M3).
func wellKnown(resource string, atRoot bool) (string, map[string]bool) {
	u, err := url.Parse(resource)
	if err != nil { // New has checked it
		return "", nil
	}
	path := wellKnownPath + strings.TrimSuffix(u.EscapedPath(), "/")
	plain := wellKnownPath + strings.TrimSuffix(u.Path, "/")
	paths := map[string]bool{plain: true, plain + "/": true}
	if atRoot {
		paths[wellKnownPath], paths[wellKnownPath+"/"] = true, true
	}
	return u.Scheme + "://" + u.Host + path, paths
}

// document returns the protected resource metadata (RFC 9728 §2). resource is
// byte-exact as configured: clients compare it with the URL they were given.
func document(o Options) []byte {
	doc := struct {
		Resource               string   `json:"resource"`
		AuthorizationServers   []string `json:"authorization_servers"`
		ScopesSupported        []string `json:"scopes_supported,omitempty"`
		BearerMethodsSupported []string `json:"bearer_methods_supported"`
		ResourceName           string   `json:"resource_name,omitempty"`
		ResourceDocumentation  string   `json:"resource_documentation,omitempty"`
	}{o.Resource, []string{o.Issuer}, o.Scopes, []string{"header"}, o.Name, o.Documentation}
	b, _ := json.MarshalIndent(doc, "", "  ") // strings and lists of strings always marshal
	return append(b, '\n')
}

// MetadataURL returns where the metadata document is served.
func (s *Server) MetadataURL() string { return s.metadataURL }

// Metadata returns a handler that serves the metadata document at whatever
// path it is mounted. Protect serves it too; Metadata is for a mux on which
// Protect covers the MCP endpoint alone.
func (s *Server) Metadata() http.Handler { return http.HandlerFunc(s.serveMetadata) }

func (s *Server) serveMetadata(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(s.document)
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Accept, Content-Type, MCP-Protocol-Version")
		h.Set("Access-Control-Max-Age", "3600")
		w.WriteHeader(http.StatusNoContent)
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "this document is read by GET", http.StatusMethodNotAllowed)
	}
}
