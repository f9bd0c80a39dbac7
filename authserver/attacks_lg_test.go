package authserver_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestLG03: whatever a client sends, an answer never repeats it in
// error_description, and an error page shows no inside of the server.
func TestLG03_ErrorsSayNothingOfTheInside(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		const marker = "zzmarkerzz"
		a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		for name, form := range map[string]url.Values{
			"grant_type": values("grant_type", marker), "code": values("grant_type", "authorization_code", "code", marker, "code_verifier", verifier),
			"refresh_token": values("grant_type", "refresh_token", "refresh_token", marker),
			"scope":         values("grant_type", "refresh_token", "refresh_token", marker, "scope", marker+"\x00ü"),
			"resource":      values("grant_type", "authorization_code", "code", marker, "code_verifier", verifier, "resource", "https://"+marker),
			"token":         values("token", marker, "token_type_hint", marker),
		} {
			k.sub("LG-03 "+name, func(t *testing.T) {
				path := "/token"
				if name == "token" {
					path = "/revoke"
				}
				got := k.post(path, a, form)
				wantNoInside(t, got.raw, marker)
			})
		}
		for name, changes := range map[string]url.Values{
			"client_id": values("client_id", marker), "redirect_uri": values("redirect_uri", "https://"+marker+".example/cb"),
			"response_type": values("response_type", marker), "code_challenge": values("code_challenge", marker),
			"prompt": values("prompt", marker), "resource": values("resource", "https://"+marker+".example"),
		} {
			k.sub("LG-03 authorize "+name, func(t *testing.T) {
				page := k.open(k.person, k.authorizeURL(a, changes))
				if page.Leaves != nil {
					wantNoInside(t, page.Leaves.Query().Get("error_description"), marker)
					return
				}
				// the page may name the client and the host it was shown, as text, and nothing else
				wantNoInside(t, strings.ReplaceAll(page.Body, marker, ""), marker)
			})
		}
	})
}

// wantNoInside checks a text for what only this server's inside would say.
func wantNoInside(t *testing.T, text, marker string) {
	t.Helper()
	for _, inside := range []string{marker, "goroutine", ".go:", "SQL", "sqlite", "pgx", "fosite", "SELECT", "127.0.0.1:", "panic"} {
		if strings.Contains(text, inside) {
			t.Errorf("the answer says %q: %s", inside, text)
		}
	}
	for _, c := range text {
		if strings.HasPrefix(text, "{") && c > 0x7e {
			t.Errorf("the answer has %U: %s", c, text)
		}
	}
}

// TestLG05: what operators look at is on the second listener only.
func TestLG05_NothingForOperatorsInPublic(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/profile", "/debug/vars", "/healthz", "/livez", "/readyz", "/admin"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				req, err := http.NewRequestWithContext(k.ctx, method, k.URL(path), nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := k.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if body := testkit.Body(t, resp); resp.StatusCode != http.StatusNotFound || strings.Contains(body, "go_") {
					t.Errorf("%s %s: %d %.80q, want 404", method, path, resp.StatusCode, body)
				}
			}
		}
	})
}
