package resourceserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ostiary-auth/ostiary/metadata"
)

// Metadata serves the document without a token wherever a mux puts it; the
// document names the resource, not the place.
func TestMetadataOnAMux(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	mux := http.NewServeMux()
	mux.Handle("/elsewhere", f.server.Metadata())
	for _, tt := range []struct {
		method     string
		wantStatus int
	}{
		{http.MethodGet, http.StatusOK},
		{http.MethodOptions, http.StatusNoContent},
		{http.MethodPost, http.StatusMethodNotAllowed},
	} {
		t.Run("M2 "+tt.method, func(t *testing.T) {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(tt.method, "https://mcp.example.com/elsewhere", nil))
			if w.Code != tt.wantStatus || w.Header().Get("Access-Control-Allow-Origin") != "*" {
				t.Fatalf("status = %d, header %v; want %d, readable by every origin", w.Code, w.Header(), tt.wantStatus)
			}
			if tt.method != http.MethodGet {
				return
			}
			doc, err := metadata.ParseProtectedResource(w.Body.Bytes(), testResource)
			if err != nil || len(doc.AuthorizationServers) != 1 || doc.AuthorizationServers[0] != f.issuer.URL {
				t.Errorf("document = %+v, %v; want it to name %s", doc, err, f.issuer.URL)
			}
		})
	}
}
