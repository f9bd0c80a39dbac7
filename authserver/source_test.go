package authserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestDO04_RequestsCountByClass: who holds a /64 does not get the cap on open
// requests once for each of its addresses.
func TestDO04_RequestsCountByClass(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		for address, want := range map[string]string{
			"[2001:db8:1:2::1]:4711":     "2001:db8:1:2::/64",
			"[2001:db8:1:2:a:b:c:d]:1":   "2001:db8:1:2::/64",
			"[::ffff:198.51.100.7]:4711": "198.51.100.7",
		} {
			r := httptest.NewRequest(http.MethodGet, k.authorizeURL(a, nil), nil)
			r.RemoteAddr = address
			w := httptest.NewRecorder()
			k.App.Public().ServeHTTP(w, r)
			next, err := url.Parse(w.Header().Get("Location"))
			if err != nil || w.Code != http.StatusSeeOther {
				t.Fatalf("authorize from %s: %d to %q, %v", address, w.Code, w.Header().Get("Location"), err)
			}
			req, err := k.DB.GetRequest(k.ctx, next.Query().Get("request"))
			if err != nil || req.Source != want {
				t.Errorf("request from %s counts for %q, %v; want %q", address, req.Source, err, want)
			}
		}
	})
}
