package oauth_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func formRequest(body, contentType string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/token?client_id=from-the-query", strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

const formType = "application/x-www-form-urlencoded"

func TestFormParams(t *testing.T) {
	for _, tt := range []struct{ name, body, contentType, wantCode string }{
		{name: "a form", body: "a=1&b=2", contentType: formType + "; charset=utf-8"},
		{name: "JSON", body: `{}`, contentType: "application/json", wantCode: "invalid_request"},
		{name: "no content type", body: "a=1", wantCode: "invalid_request"},
		{name: "a semicolon, whose pair FormValue would drop", body: "a=1;b=2", contentType: formType, wantCode: "invalid_request"},
		{name: "broken escape", body: "a=%zz", contentType: formType, wantCode: "invalid_request"},
		{name: "ST-07 NUL", body: "a=%00", contentType: formType, wantCode: "invalid_request"},
		{name: "ST-07 invalid UTF-8", body: "a=%ff", contentType: formType, wantCode: "invalid_request"},
		{name: "ST-07 invalid UTF-8 in a name", body: "%ff=a", contentType: formType, wantCode: "invalid_request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := oauth.FormParams(formRequest(tt.body, tt.contentType))
			if got := oauth.Code(err); got != tt.wantCode {
				t.Errorf("code = %q, want %q (%v)", got, tt.wantCode, err)
			}
			if p.Has("client_id") {
				t.Error("TK-02: a value of the query string was taken")
			}
		})
	}
}

func TestFormParamsLimits(t *testing.T) {
	r := formRequest("a="+strings.Repeat("x", 100), formType)
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 10)
	_, err := oauth.FormParams(r)
	var e *oauth.Error
	if e, _ = err.(*oauth.Error); e == nil || e.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body beyond the limit: %v, want 413", err)
	}
	r = formRequest("a=1", formType)
	r.Header.Set("Content-Encoding", "gzip")
	if e, _ = mustFail(oauth.FormParams(r)).(*oauth.Error); e == nil || e.Status != http.StatusUnsupportedMediaType {
		t.Errorf("TK-14 a gzip body: %v, want 415", e)
	}
}

func mustFail(_ oauth.Params, err error) error { return err }

func TestRepeated(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/authorize?scope=a&scope=b&resource=x&resource=y&state=1&client_id=c&client_id=c", nil)
	p, err := oauth.QueryParams(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Repeated(); !slices.Equal(got, []string{"client_id", "scope"}) {
		t.Errorf("Repeated = %v, want client_id and scope; resource may repeat (RFC 8707 §2)", got)
	}
}

func FuzzParams(f *testing.F) {
	for _, seed := range []string{"", "a=1", "a=1;b=2", "a=%00", "resource=x&resource=y&a&a", "%=%", "a=%ff&b=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		p, err := oauth.FormParams(formRequest(body, formType))
		if err != nil && oauth.Code(err) != "invalid_request" {
			t.Fatal(err)
		}
		for name, values := range p {
			if len(values) > 1 && name != "resource" && !slices.Contains(p.Repeated(), name) {
				t.Fatalf("%q repeats unseen", name)
			}
			if strings.ContainsRune(strings.Join(values, ""), 0) {
				t.Fatal("a NUL came through")
			}
		}
	})
}
