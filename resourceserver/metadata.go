package resourceserver

import (
	"encoding/json"
	"net/http"

	"github.com/ostiary-auth/ostiary/metadata"
)

// wellKnown returns the metadata document's URL and the paths that serve it.
// The root form belongs to a resource that is a bare origin: RFC 9728 §3.3 lets
// clients refuse it for any other (M3).
func wellKnown(resource string, atRoot bool) (string, map[string]bool, error) {
	at, err := metadata.ProtectedResourceURL(resource)
	if err != nil {
		return "", nil, err
	}
	list, err := metadata.ProtectedResourcePaths(resource)
	if err != nil {
		return "", nil, err
	}
	paths := map[string]bool{}
	for _, p := range list {
		paths[p] = true
	}
	if atRoot {
		const root = "/.well-known/oauth-protected-resource"
		paths[root], paths[root+"/"] = true, true
	}
	return at, paths, nil
}

// document returns the protected resource metadata (RFC 9728 §2). resource is
// byte-exact as configured: clients compare it with the URL they were given.
func document(o Options) ([]byte, error) {
	b, err := json.MarshalIndent(metadata.ProtectedResource{
		Resource: o.Resource, AuthorizationServers: identifiers(o.Issuers), ScopesSupported: o.Scopes,
		BearerMethodsSupported: []string{"header"}, ResourceName: o.Name, ResourceDocumentation: o.Documentation,
	}, "", "  ")
	return append(b, '\n'), err
}

// MetadataURL returns where the metadata document is served.
func (s *Server) MetadataURL() string { return s.metadataURL }

// Metadata returns a handler that serves the metadata document at whatever
// path it is mounted. Protect serves it too; Metadata is for a mux on which
// Protect covers the MCP endpoint alone.
func (s *Server) Metadata() http.Handler { return http.HandlerFunc(s.serveMetadata) }

func (s *Server) serveMetadata(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		writeDocument(w, s.document)
		return
	}
	writeDocumentMethods(w, r)
}

// writeDocument answers a GET for a public document.
func writeDocument(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body)
}

// writeDocumentMethods answers every other method: a preflight, or a mistake.
func writeDocumentMethods(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Accept, Content-Type, MCP-Protocol-Version")
		h.Set("Access-Control-Max-Age", "3600")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h.Set("Allow", "GET, HEAD, OPTIONS")
	http.Error(w, "this document is read by GET", http.StatusMethodNotAllowed)
}
