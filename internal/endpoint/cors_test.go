package endpoint

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestA7CORS(t *testing.T) {
	reached := 0
	h := CORS(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached++
		w.WriteHeader(http.StatusBadRequest)
	}), http.MethodPost)
	for _, tt := range []struct {
		name, method, origin string
		header               [2]string
		wantStatus           int
	}{
		{name: "preflight", method: http.MethodOptions, origin: "https://client.example", header: [2]string{"Access-Control-Request-Method", "POST"}, wantStatus: 204},
		{name: "OPTIONS that is no preflight", method: http.MethodOptions, wantStatus: 204},
		{name: "error with an origin", method: http.MethodPost, origin: "https://client.example", wantStatus: 400},
		{name: "error without an origin", method: http.MethodPost, wantStatus: 400},
		{name: "TK-10 hostile origin with a cookie", method: http.MethodPost, origin: "https://evil.example", header: [2]string{"Cookie", "a=b"}, wantStatus: 400},
		{name: "origin null", method: http.MethodPost, origin: "null", wantStatus: 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequest(tt.method, "/token", nil)
			if tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
			}
			if tt.header[0] != "" {
				req.Header.Set(tt.header[0], tt.header[1])
			}
			before := reached
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			if rec.Code != tt.wantStatus {
				t.Errorf("status = %d, want %d", rec.Code, tt.wantStatus)
			}
			if got := rec.Header().Values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{"*"}) {
				t.Errorf("Access-Control-Allow-Origin = %q, want one *", got)
			}
			if got := rec.Header().Values("Access-Control-Allow-Credentials"); len(got) != 0 {
				t.Errorf("TK-10 Access-Control-Allow-Credentials = %q, want none", got)
			}
			if tt.method == http.MethodOptions && reached != before {
				t.Error("OPTIONS reached the handler")
			}
		})
	}
}

func TestA7PreflightHeaders(t *testing.T) {
	h := CORS(http.NotFoundHandler(), http.MethodGet, http.MethodPost)
	for header, want := range map[string]bool{"authorization": true, "content-type": true, "accept": true,
		"mcp-protocol-version": true, "authorization,content-type,mcp-protocol-version": true, "x-evil": false} {
		req := httptest.NewRequest(http.MethodOptions, "/token", nil)
		req.Header.Set("Origin", "https://client.example")
		req.Header.Set("Access-Control-Request-Method", http.MethodPost)
		req.Header.Set("Access-Control-Request-Headers", header)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		allowed := strings.EqualFold(rec.Header().Get("Access-Control-Allow-Headers"), header)
		if rec.Code != http.StatusNoContent || allowed != want {
			t.Errorf("preflight for %q: %d, allowed %v, want 204 and %v", header, rec.Code, allowed, want)
		}
	}
}
