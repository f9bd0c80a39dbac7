package authserver_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// FuzzAuthorizationRequest sends any query to GET /authorize: it is never a 5xx,
// and a redirect leads to a page of ours or, for the operator's client, to its
// registered redirect URI.
func FuzzAuthorizationRequest(f *testing.F) {
	// no document is fetched: what a URL leads to is not this target's
	s := testkit.NewServer(f, testkit.OpenSQLite(f), func(c *config.Config) { c.CIMD = "off" })
	c, _, err := s.App.Clients.Add(f.Context(), registration.AddOptions{Name: "Fuzz", RedirectURIs: []string{appRedirect, loopbackRedirect}})
	if err != nil {
		f.Fatal(err)
	}
	valid := url.Values{"response_type": {"code"}, "client_id": {c.ID}, "redirect_uri": {appRedirect}, "state": {"s"},
		"code_challenge": {challenge(verifier)}, "code_challenge_method": {"S256"}, "resource": {testkit.Resource}, "scope": {"files:read"}}
	for _, change := range []url.Values{nil, {"state": nil}, {"scope": {`"`}}, {"response_type": {"token"}}, {"prompt": {"none"}},
		{"redirect_uri": {"http://127.0.0.1:49152/cb"}}, {"redirect_uri": {"https://evil.example/cb"}}, {"client_id": {"x"}},
		{"resource": {testkit.Resource, testkit.OtherResource}}, {"client_id": {"https://quill.example/c.json"}}} {
		f.Add(changed(url.Values(http.Header(valid).Clone()), change).Encode())
	}
	f.Add("client_id=" + c.ID + "&client_id=" + c.ID)
	f.Add("%zz;&&==&\x00")
	client := s.Client()
	f.Fuzz(func(t *testing.T, query string) {
		s.Clock.Advance(2 * flow.RequestMax) // so that open requests do not add up to the cap
		req := &http.Request{Method: http.MethodGet, Header: http.Header{}, Body: http.NoBody,
			URL: &url.URL{Scheme: "https", Host: "id.example.com", Path: "/authorize", RawQuery: query}}
		resp, err := client.Do(req.WithContext(t.Context()))
		if err != nil {
			return // not a request that HTTP can carry
		}
		body := testkit.Body(t, resp)
		if resp.StatusCode >= 500 {
			t.Fatalf("%q is answered %d", query, resp.StatusCode)
		}
		to := resp.Header.Get("Location")
		if to != "" && !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, appRedirect+"?") && !strings.HasPrefix(to, "http://127.0.0.1") {
			t.Fatalf("%q redirects to %q", query, to)
		}
		if strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\r\n") {
			t.Fatalf("%q redirects to %q", query, to)
		}
		if resp.StatusCode == http.StatusOK && body == "" {
			t.Fatalf("%q gets an empty page", query)
		}
	})
}
