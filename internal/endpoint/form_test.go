package endpoint_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body, wantCode string
		mayRepeat            []string
	}{
		{name: "each field once", body: "txn=a&email=b"},
		{name: "repeated field", body: "txn=a&txn=b", wantCode: "invalid_request"},
		{name: "same value twice", body: "txn=a&txn=a", wantCode: "invalid_request"},
		{name: "checkboxes", body: "txn=a&scope=x&scope=y", mayRepeat: []string{"scope"}},
		{name: "repeated field beside checkboxes", body: "txn=a&txn=b&scope=x&scope=y", mayRepeat: []string{"scope"}, wantCode: "invalid_request"},
		{name: "undecodable", body: "txn=%zz", wantCode: "invalid_request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x?txn=query", strings.NewReader(tt.body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			params, err := endpoint.Form(r, tt.mayRepeat...)
			if got := oauth.Code(err); got != tt.wantCode {
				t.Fatalf("code = %q, want %q (%v)", got, tt.wantCode, err)
			}
			if err == nil && params.Get("txn") != "a" {
				t.Errorf("txn = %q, want the body's", params.Get("txn"))
			}
		})
	}
}
