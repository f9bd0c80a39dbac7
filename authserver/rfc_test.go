package authserver_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The tests of this file show clauses that docs/rfc.md names and that no attack
// is about.

// TestOAuth21_EmptyParameters: parameters sent without a value count as omitted
// (OAuth 2.1 §3.1, §3.2).
func TestOAuth21_EmptyParameters(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		empty := url.Values{}
		for _, name := range []string{"request", "request_uri", "response_mode", "prompt", "nonce", "scope", "redirect_uri"} {
			empty.Set(name, "")
		}
		code := k.code(a, empty)
		got := k.redeem(a, code, values("redirect_uri", "", "client_secret", "", "client_assertion", "", "client_assertion_type", "", "scope", ""))
		want(t, got, 200, "")
		want(t, k.refresh(a, got.body.RefreshToken, values("scope", "", "client_secret", "")), 200, "")
		basic := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		want(t, k.redeem(basic, k.code(basic, nil), values("client_secret", "", "client_id", "")), 200, "")
	})
}

// TestOAuth21_UnrecognizedParameters: they are ignored at the token and the
// revocation endpoint (OAuth 2.1 §3.2); AR-19 has the authorization endpoint.
func TestOAuth21_UnrecognizedParameters(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		more := values("audience", "https://elsewhere.example", "foo", "bar", "token_type", "mac")
		got := k.redeem(a, k.code(a, more), more)
		want(t, got, 200, "")
		if aud := claims(t, got.body.AccessToken)["aud"]; aud != testkit.Resource {
			t.Errorf("aud = %v, want %s", aud, testkit.Resource)
		}
		want(t, k.refresh(a, got.body.RefreshToken, more), 200, "")
		want(t, k.post("/revoke", a, changed(more, values("token", got.body.AccessToken))), 200, "")
	})
}

// TestOAuth21_NoCORSAtAuthorize: pages answer no other origin (OAuth 2.1 §3.1, A7).
func TestOAuth21_NoCORSAtAuthorize(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			req, err := http.NewRequestWithContext(k.ctx, method, k.authorizeURL(a, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Origin", "https://app.example.net")
			req.Header.Set("Access-Control-Request-Method", "GET")
			resp, err := k.Browser().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = testkit.Body(t, resp)
			for name := range resp.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s /authorize answers %s", method, name)
				}
			}
		}
	})
}

// TestOAuth21_RedirectsAfterForms: a form that carried a password or an answer is
// followed by 303, never 307 (OAuth 2.1 §7.5.4).
func TestOAuth21_RedirectsAfterForms(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		browser := k.Browser()
		browser.Jar = k.person.Jar()
		post := func(on *testkit.Page, action string, change url.Values) {
			form := on.Form(action)
			if form == nil {
				t.Fatalf("no form to %s on %q", action, on.Heading)
			}
			k.Clock.Advance(time.Second)
			req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.URL(action), strings.NewReader(changed(form.Values, change).Encode()))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			resp, err := browser.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = testkit.Body(t, resp)
			if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/") {
				t.Errorf("%s: %d to %q, want 303 within this origin", action, resp.StatusCode, to)
			}
		}
		post(k.open(k.person, k.authorizeURL(a, nil)), "/sign-in", values("username", testkit.Email, "password", testkit.Password))
		post(k.toConsent(k.person, k.authorizeURL(a, nil)), "/consent", values("decision", "allow"))
	})
}

// TestOAuth21_ChallengeStaysHere: the challenge cannot be read from what leaves of
// the server (OAuth 2.1 §4.1.2).
func TestOAuth21_ChallengeStaysHere(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		left, err := k.person.Authorize(k.ctx, k.authorizeURL(k.register(appRedirect), nil))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(left.Query().Get("code"), "ost_ac_"))
		if err != nil || len(raw) == 0 {
			t.Fatalf("code %q: %v", left.Query().Get("code"), err)
		}
		sum, _ := base64.RawURLEncoding.DecodeString(challenge(verifier))
		if strings.Contains(left.String(), challenge(verifier)) || strings.Contains(string(raw), string(sum)) {
			t.Error("the response contains the code_challenge")
		}
	})
}

// TestRFC8414_AdvertisedIsMounted: every endpoint that the metadata names is
// there, below the issuer, without fragment, and every grant type is known.
func TestRFC8414_AdvertisedIsMounted(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		doc := k.metadata()
		n := 0
		for name, value := range doc {
			if !strings.HasSuffix(name, "_endpoint") && name != "jwks_uri" {
				continue
			}
			n++
			raw, _ := value.(string)
			if !strings.HasPrefix(raw, testkit.Issuer+"/") || strings.ContainsAny(raw, "#?") {
				t.Errorf("%s = %q", name, raw)
			}
			resp, err := k.Client().Get(raw)
			if err != nil {
				t.Fatal(err)
			}
			_ = testkit.Body(t, resp)
			if resp.StatusCode == http.StatusNotFound {
				t.Errorf("%s is not mounted at %s", name, raw)
			}
		}
		if n != 6 {
			t.Errorf("%d endpoints, want authorization, token, revocation, introspection, registration and the keys", n)
		}
		a := k.register(appRedirect)
		grants, _ := doc["grant_types_supported"].([]any)
		for _, g := range grants {
			got := k.post("/token", a, url.Values{"grant_type": {g.(string)}})
			if got.body.Error == "unsupported_grant_type" {
				t.Errorf("%s is advertised and unsupported", g)
			}
		}
		if !slices.Equal(grants, []any{"authorization_code", "refresh_token", "client_credentials"}) {
			t.Errorf("grant_types_supported = %v", grants)
		}
	})
}

func (k *kit) metadata() map[string]any {
	k.t.Helper()
	resp, err := k.Client().Get(k.URL("/.well-known/oauth-authorization-server"))
	if err != nil {
		k.t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(testkit.Body(k.t, resp)), &doc); err != nil {
		k.t.Fatal(err)
	}
	return doc
}

// TestRFC9068_AccessToken: header, signature and claims of an access token, with
// the key that the metadata leads to.
func TestRFC9068_AccessToken(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(appRedirect)
		first := k.connect(a, nil)
		second := k.refresh(a, first.body.RefreshToken, values("scope", "files:read"))
		want(t, second, 200, "")
		raw := first.body.AccessToken
		if _, err := jws.Verify([]byte(raw), jws.WithKeySet(k.publishedKeys())); err != nil {
			t.Errorf("RFC 9068 §4: the published keys do not verify it: %v", err)
		}
		var header map[string]any
		head, _ := base64.RawURLEncoding.DecodeString(strings.Split(raw, ".")[0])
		if err := json.Unmarshal(head, &header); err != nil || header["typ"] != "at+jwt" || header["alg"] != "ES256" || header["kid"] == nil {
			t.Errorf("RFC 9068 §2.1: header %s", head)
		}
		c, again := claims(t, raw), claims(t, second.body.AccessToken)
		now := float64(k.Clock.Now().Unix())
		for name, value := range map[string]any{"iss": testkit.Issuer, "aud": testkit.Resource, "client_id": a.id, "iat": now,
			"exp": now + first.body.ExpiresIn, "scope": "files:read files:write"} {
			if c[name] != value {
				t.Errorf("RFC 9068 §2.2: %s = %v, want %v", name, c[name], value)
			}
		}
		if at, _ := c["auth_time"].(float64); at == 0 || at > now || again["auth_time"] != c["auth_time"] {
			t.Errorf("RFC 9068 §2.2.1: auth_time %v, then %v", c["auth_time"], again["auth_time"])
		}
		if c["jti"] == nil || c["jti"] == again["jti"] {
			t.Errorf("RFC 9068 §2.2: jti %v, then %v", c["jti"], again["jti"])
		}
		if again["scope"] != "files:read" {
			t.Errorf("RFC 9068 §2.2.3: scope %v, want what was granted to this token", again["scope"])
		}
		if sub, _ := c["sub"].(string); sub == "" || sub == a.id || strings.Contains(sub, "@") || again["sub"] != sub {
			t.Errorf("RFC 9068 §5, §6: sub %q", sub)
		}
	})
}

func (k *kit) publishedKeys() jwk.Set {
	k.t.Helper()
	uri, _ := k.metadata()["jwks_uri"].(string)
	resp, err := k.Client().Get(uri)
	if err != nil {
		k.t.Fatal(err)
	}
	set, err := jwk.Parse([]byte(testkit.Body(k.t, resp)))
	if err != nil {
		k.t.Fatal(err)
	}
	return set
}

// TestRFC7591_UnknownMembersAreIgnored: what is not supported is neither stored
// nor echoed, a software statement among it (RFC 7591 §2, §3.1.1).
func TestRFC7591_UnknownMembersAreIgnored(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		resp, err := k.Client().Post(k.URL("/register"), "application/json", strings.NewReader(
			`{"redirect_uris":["`+appRedirect+`"],"client_name":"Quill","client_name#de":"Feder","software_statement":"eyJhbGciOiJub25lIn0.eyJjbGllbnRfbmFtZSI6IkV2aWwifQ.",`+
				`"jwks":{"keys":[]},"id_token_signed_response_alg":"none","require_auth_time":true}`))
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal([]byte(testkit.Body(t, resp)), &out); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("%d %v (%v)", resp.StatusCode, out, err)
		}
		for _, name := range []string{"software_statement", "jwks", "client_name#de", "id_token_signed_response_alg", "require_auth_time"} {
			if out[name] != nil {
				t.Errorf("%s is echoed", name)
			}
		}
		if out["client_name"] != "Quill" {
			t.Errorf("client_name %v: a claim of the statement won", out["client_name"])
		}
	})
}
