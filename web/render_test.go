package web

import (
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func newRenderer(t testing.TB) *Renderer {
	t.Helper()
	rd, err := New(Options{Operator: "Fernhill", Issuer: "https://id.fernhill.example", HelpURL: "https://help.fernhill.example/",
		PrivacyURL: "https://fernhill.example/privacy", HelpContact: "help@fernhill.example", Now: func() time.Time { return testNow }})
	if err != nil {
		t.Fatal(err)
	}
	return rd
}

func write(t testing.TB, rd *Renderer, status int, p Page) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	if err := rd.Write(w, httptest.NewRequest("GET", "/", nil), status, p); err != nil {
		t.Fatalf("Write(%s): %v", p.template(), err)
	}
	return w
}

func TestGolden(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	for _, s := range states() {
		t.Run(s.name, func(t *testing.T) {
			w := write(t, rd, s.status, s.page)
			if w.Code != s.status {
				t.Errorf("status = %d, want %d", w.Code, s.status)
			}
			// The style sheet's hash is not this test's business.
			got := strings.ReplaceAll(w.Body.String(), rd.static["style.css"].path, "/static/style.css")
			file := filepath.Join("testdata", s.name+".html")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("page differs from %s (-want +got); run with -update and look:\n%s", file, diff)
			}
		})
	}
}
