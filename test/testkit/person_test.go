package testkit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary-auth/ostiary/test/testkit"
)

// fakePages stands for the server: a sign-in, a consent and a return page.
func fakePages(t *testing.T, refresh string) (base string, answers *[]url.Values) {
	t.Helper()
	answers = &[]url.Values{}
	page := func(w http.ResponseWriter, body string) {
		_, _ = fmt.Fprintf(w, "<!doctype html><title>T</title><h1>A <b>heading</b></h1>%s", body)
	}
	post := func(next string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			*answers = append(*answers, r.PostForm)
			http.SetCookie(w, &http.Cookie{Name: "dev-sid", Value: "1", Path: "/"})
			http.Redirect(w, r, next, http.StatusSeeOther)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, _ *http.Request) {
		page(w, `<form method="post" action="/sign-in"><input type="hidden" name="txn" value="t1"><input name="username"><input type="password" name="password"></form>`)
	})
	mux.HandleFunc("POST /sign-in", post("/consent"))
	mux.HandleFunc("GET /consent", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("dev-sid"); err != nil {
			t.Error("the cookie did not come back")
		}
		page(w, `<form method="post" action="/consent"><input type="hidden" name="txn" value="t2">
			<input type="checkbox" name="scope" value="a" checked><input type="checkbox" name="scope" value="b">
			<input type="checkbox" name="stay_connected" value="yes" checked>
			<button name="decision" value="allow">Allow</button></form>`)
	})
	mux.HandleFunc("POST /consent", post("/return/x"))
	mux.HandleFunc("GET /return/x", func(w http.ResponseWriter, _ *http.Request) {
		if refresh != "" {
			w.Header().Set("Refresh", "0; url="+refresh)
		}
		page(w, "")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, answers
}

func TestPersonAuthorize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		scopes []string
		want   []string
	}{
		{"boxes as they stand", nil, []string{"a"}},
		{"chosen boxes", []string{"b"}, []string{"b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, answers := fakePages(t, "https://app.example/cb?code=1")
			p := testkit.NewPerson("ada@example.com", "correct horse", nil)
			paused := false
			p.Pause = func() { paused = true }
			left, err := p.Authorize(t.Context(), base+"/authorize", tt.scopes...)
			if err != nil || left.String() != "https://app.example/cb?code=1" {
				t.Fatalf("Authorize = %v, %v", left, err)
			}
			want := []url.Values{
				{"txn": {"t1"}, "username": {"ada@example.com"}, "password": {"correct horse"}},
				{"txn": {"t2"}, "scope": tt.want, "stay_connected": {"yes"}, "decision": {"allow"}},
			}
			if d := cmp.Diff(want, *answers); d != "" || !paused {
				t.Errorf("answers (-want +got), paused %t:\n%s", paused, d)
			}
			if err := p.Deliver(t.Context(), left); err == nil {
				t.Error("Deliver went to a host that is not this machine")
			}
		})
	}
}

func TestPersonStopsAtPagesItDoesNotKnow(t *testing.T) {
	t.Parallel()
	base, _ := fakePages(t, "")
	p := testkit.NewPerson("ada@example.com", "x", nil)
	p.Pause = func() {}
	if left, err := p.Authorize(t.Context(), base+"/authorize"); err == nil {
		t.Errorf("Authorize = %v though the last page leads nowhere", left)
	}
}
