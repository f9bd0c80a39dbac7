package web_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/web"
	"github.com/ostiary-auth/ostiary/web/webtest"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	for _, s := range webtest.States() {
		h := write(t, rd, s.Status, s.Page).Header()
		want := map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "X-Robots-Tag": "noindex", "Strict-Transport-Security": "max-age=31536000",
			"Cross-Origin-Opener-Policy": "", "Access-Control-Allow-Origin": "",
		}
		switch s.Page.(type) {
		case web.Account, web.Disconnect, web.EndSessions, web.SetupStart, web.SetupAccount, web.SetupServer, web.SetupDone:
			want["Cross-Origin-Opener-Policy"] = "same-origin"
		}
		for name, v := range want {
			if got := h.Get(name); got != v {
				t.Errorf("%s: %s = %q, want %q", s.Name, name, got, v)
			}
		}
		if !strings.Contains(h.Get("Permissions-Policy"), "camera=()") {
			t.Errorf("%s: Permissions-Policy = %q", s.Name, h.Get("Permissions-Policy"))
		}
	}
}

func TestCS04NoPageIsFramed(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	for _, s := range webtest.States() {
		h := write(t, rd, s.Status, s.Page).Header()
		formAction := "'self'"
		if _, ok := s.Page.(web.Return); ok {
			formAction = "'none'"
		}
		csp := "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'none'; form-action " + formAction +
			"; base-uri 'none'; frame-ancestors 'none'"
		if h.Get("Content-Security-Policy") != csp || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("CS-04 %s: CSP %q, X-Frame-Options %q", s.Name, h.Get("Content-Security-Policy"), h.Get("X-Frame-Options"))
		}
	}
}

func TestLG04Referrer(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	foreign := regexp.MustCompile(`(?:src|<link[^>]* href)="(?:https?:)?//`)
	for _, s := range webtest.States() {
		w := write(t, rd, s.Status, s.Page)
		want := "same-origin"
		if _, ok := s.Page.(web.Return); ok {
			want = "no-referrer"
		}
		if got := w.Header().Get("Referrer-Policy"); got != want {
			t.Errorf("LG-04 %s: Referrer-Policy = %q, want %q", s.Name, got, want)
		}
		if m := foreign.FindString(w.Body.String()); m != "" {
			t.Errorf("LG-04 %s loads from elsewhere: %s", s.Name, m)
		}
	}
}

func TestRefreshOfTheCallerIsKept(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	w.Header().Set("Refresh", "0; url=https://app.example/cb")
	if err := newRenderer(t).Write(w, httptest.NewRequest("GET", "/", nil), 200, web.Return{URL: "https://app.example/cb"}); err != nil {
		t.Fatal(err)
	}
	if w.Header().Get("Refresh") == "" {
		t.Error("Write dropped the Refresh header")
	}
}

func TestNoHSTSOnHTTP(t *testing.T) {
	t.Parallel()
	rd, err := web.New(web.Options{Issuer: "http://localhost:8414"})
	if err != nil {
		t.Fatal(err)
	}
	if got := write(t, rd, 200, web.SignedOut{}).Header().Get("Strict-Transport-Security"); got != "" {
		t.Errorf("Strict-Transport-Security = %q on http", got)
	}
}

func TestStaticFiles(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	mux := http.NewServeMux()
	rd.Routes(mux, nil)
	body := write(t, rd, 200, web.SignedOut{}).Body.String()
	files := map[string]string{"/favicon.ico": "image/svg+xml"}
	for _, m := range regexp.MustCompile(`<link rel="\w+"[^>]* href="(/static/[^"]+)"`).FindAllStringSubmatch(body, -1) {
		files[m[1]] = map[bool]string{true: "text/css; charset=utf-8", false: "image/svg+xml"}[strings.HasSuffix(m[1], ".css")]
	}
	if len(files) != 3 {
		t.Fatalf("page links %v, want a style sheet and an icon", files)
	}
	for file, contentType := range files {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", file, nil))
		if w.Code != 200 || w.Header().Get("Content-Type") != contentType || w.Body.Len() == 0 {
			t.Errorf("%s: %d %s", file, w.Code, w.Header().Get("Content-Type"))
		}
		if strings.HasPrefix(file, "/static/") && !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: Cache-Control = %q", file, w.Header().Get("Cache-Control"))
		}
	}
}
