package mcpsdk_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver/mcpsdk"
)

func TestHandlerWithoutProtect(t *testing.T) {
	t.Parallel()
	h := mcpsdk.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer anything")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("status = %d, want 401", w.Code)
	}
}
