package registration_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const (
	assertionIssuer = "https://id.example.com"
	tokenEndpoint   = assertionIssuer + "/token"
)

var assertionTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// usedOnce is an AssertionStore in memory.
type usedOnce struct {
	mu   sync.Mutex
	used map[string]time.Time
	err  error
}

func (u *usedOnce) UseAssertion(_ context.Context, clientID string, jtiHash []byte, expiresAt, _ time.Time) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := clientID + string(jtiHash)
	if _, ok := u.used[key]; ok || u.err != nil {
		return false, u.err
	}
	if u.used == nil {
		u.used = map[string]time.Time{}
	}
	u.used[key] = expiresAt
	return true, nil
}

func newAssertions() (*registration.Assertions, *usedOnce) {
	used := &usedOnce{}
	return &registration.Assertions{Issuer: assertionIssuer, TokenEndpoint: tokenEndpoint, Used: used,
		Keys: registration.NewClientKeys(registration.ClientKeysOptions{})}, used
}

// keyClient is a client with private_key_jwt whose row holds its keys.
func keyClient(jwks []byte) *registration.Client {
	return &registration.Client{ID: "quill", Metadata: registration.ClientMetadata{
		TokenEndpointAuthMethod: registration.AuthPrivateKeyJWT, JWKS: jwks}}
}

// present is Read and then Check.
func present(ctx context.Context, a *registration.Assertions, c *registration.Client, raw string, now time.Time) error {
	as, err := a.Read(oauth.Secret(raw), now)
	if err != nil {
		return err
	}
	if as.ClientID != c.ID {
		return fmt.Errorf("it is of client %q", as.ClientID)
	}
	return a.Check(ctx, c, as, now)
}

func TestCA08_AssertionAccepted(t *testing.T) {
	t.Parallel()
	for _, alg := range registration.AssertionAlgorithms() {
		key := testkit.NewClientKey(t, alg, "k1")
		for _, tt := range []struct {
			name           string
			header, claims map[string]any
		}{
			{name: "issuer as aud"},
			{name: "token endpoint as aud", claims: map[string]any{"aud": tokenEndpoint}},
			{name: "aud is a list of one", claims: map[string]any{"aud": []string{tokenEndpoint}}},
			{name: "typ of rfc7523bis", header: map[string]any{"typ": "client-authentication+jwt"}},
			{name: "typ with application/", header: map[string]any{"typ": "application/client-authentication+jwt"}},
			{name: "no typ", header: map[string]any{"typ": nil}},
			{name: "no kid, one key", header: map[string]any{"kid": nil}},
			{name: "no iat", claims: map[string]any{"iat": nil}},
			{name: "exp in five minutes", claims: map[string]any{"exp": assertionTime.Add(5 * time.Minute).Unix()}},
			{name: "exp with a fraction", claims: map[string]any{"exp": float64(assertionTime.Unix()) + 30.5}},
			{name: "clocks a minute apart", claims: map[string]any{"iat": assertionTime.Unix() + 60, "nbf": assertionTime.Unix() + 60}},
			{name: "unknown members", header: map[string]any{"x": 1}, claims: map[string]any{"x": []int{1}}},
			{name: "header members that point at keys are not used", header: map[string]any{"jku": "https://evil.example/", "x5c": []string{"AA=="}}},
		} {
			t.Run(alg+"/"+tt.name, func(t *testing.T) {
				a, _ := newAssertions()
				claims := testkit.AssertionClaims("quill", assertionIssuer, assertionTime)
				maps.Copy(claims, tt.claims)
				if err := present(t.Context(), a, keyClient(testkit.JWKS(t, key)), key.Sign(t, tt.header, claims), assertionTime); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestCA08_AssertionRefused(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k1")
	at := assertionTime.Unix()
	for _, tt := range []struct {
		name           string
		header, claims map[string]any
		says           string
	}{
		{"CA-08 alg none", map[string]any{"alg": "none"}, nil, "alg"},
		{"CA-08 alg None", map[string]any{"alg": "None"}, nil, "alg"},
		{"CA-08 alg HS256", map[string]any{"alg": "HS256"}, nil, "alg"},
		{"CA-08 alg missing", map[string]any{"alg": nil}, nil, "alg"},
		{"CA-08 alg is a number", map[string]any{"alg": 1}, nil, "alg"},
		{"CA-08 alg ES384", map[string]any{"alg": "ES384"}, nil, "alg"},
		{"RFC 8725 3.11 access token", map[string]any{"typ": "at+jwt"}, nil, "typ"},
		{"RFC 8725 3.11 DPoP proof", map[string]any{"typ": "dpop+jwt"}, nil, "typ"},
		{"RFC 8725 3.11 another kind of assertion", map[string]any{"typ": "application/oauth-id-jag+jwt"}, nil, "typ"},
		{"RFC 7515 4.1.11 crit", map[string]any{"crit": []string{"exp"}}, nil, "extension"},
		{"RFC 7797 b64", map[string]any{"b64": false}, nil, "extension"},
		{"kid is a number", map[string]any{"kid": 7}, nil, "kid"},
		{"kid is long", map[string]any{"kid": strings.Repeat("k", 257)}, nil, "kid"},
		{"CA-08 iss missing", nil, map[string]any{"iss": nil}, "iss"},
		{"CA-08 sub missing", nil, map[string]any{"sub": nil}, "sub"},
		{"CA-08 iss is not sub", nil, map[string]any{"iss": "atlas"}, "iss"},
		{"CA-08 iss and sub empty", nil, map[string]any{"iss": "", "sub": ""}, "iss"},
		{"sub is a number", nil, map[string]any{"sub": 1}, "sub"},
		{"sub has a null character", nil, map[string]any{"iss": "a\x00", "sub": "a\x00"}, "sub"},
		{"aud missing", nil, map[string]any{"aud": nil}, "aud"},
		{"aud of another server", nil, map[string]any{"aud": "https://evil.example"}, "aud"},
		{"aud with a slash more", nil, map[string]any{"aud": assertionIssuer + "/"}, "aud"},
		{"aud is another of our endpoints", nil, map[string]any{"aud": assertionIssuer + "/authorize"}, "aud"},
		{"rfc7523bis two audiences", nil, map[string]any{"aud": []string{assertionIssuer, tokenEndpoint}}, "aud"},
		{"rfc7523bis ours and another's", nil, map[string]any{"aud": []string{assertionIssuer, "https://evil.example"}}, "aud"},
		{"aud is an empty list", nil, map[string]any{"aud": []string{}}, "aud"},
		{"aud is an object", nil, map[string]any{"aud": map[string]any{"a": assertionIssuer}}, "aud"},
		{"CA-08 exp missing", nil, map[string]any{"exp": nil}, "exp"},
		{"CA-08 exp past", nil, map[string]any{"exp": at - 60}, "expired"},
		{"CA-08 exp more than 5 minutes ahead", nil, map[string]any{"exp": at + 361}, "minutes ahead"},
		{"exp is a string", nil, map[string]any{"exp": fmt.Sprint(at + 60)}, "exp"},
		{"exp is negative", nil, map[string]any{"exp": -1}, "exp"},
		{"exp is huge", nil, map[string]any{"exp": 1e300}, "exp"},
		{"iat in the future", nil, map[string]any{"iat": at + 61}, "iat"},
		{"iat is a string", nil, map[string]any{"iat": "now"}, "iat"},
		{"iat long ago", nil, map[string]any{"iat": at - 3600}, "from its iat"},
		{"nbf in the future", nil, map[string]any{"nbf": at + 61}, "nbf"},
		{"nbf is null", nil, map[string]any{"nbf": []int{}}, "nbf"},
		{"CA-08 jti missing", nil, map[string]any{"jti": nil}, "jti"},
		{"CA-08 jti empty", nil, map[string]any{"jti": ""}, "jti"},
		{"jti is a number", nil, map[string]any{"jti": 1}, "jti"},
		{"jti is long", nil, map[string]any{"jti": strings.Repeat("j", 513)}, "jti"},
		{"large", nil, map[string]any{"x": strings.Repeat("x", 8<<10)}, "larger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, used := newAssertions()
			claims := testkit.AssertionClaims("quill", assertionIssuer, assertionTime)
			maps.Copy(claims, tt.claims)
			_, err := a.Read(oauth.Secret(key.Sign(t, tt.header, claims)), assertionTime)
			var oe *oauth.Error
			if !errors.As(err, &oe) || oe.Code != "invalid_client" || oe.HTTPStatus() != 401 || !strings.Contains(oe.Description, tt.says) {
				t.Errorf("err = %v, want invalid_client that says %q", err, tt.says)
			}
			if len(used.used) > 0 {
				t.Error("a refused assertion was used up (A18)")
			}
		})
	}
}

// Names are compared by their exact case, and no member may stand twice: two
// parsers would read it differently.
func TestCA08_AssertionSyntax(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k1")
	good := `{"iss":"quill","sub":"quill","aud":"` + assertionIssuer + `","jti":"1","exp":` + fmt.Sprint(assertionTime.Unix()+60) + `}`
	header := `{"alg":"ES256","kid":"k1"}`
	sign := func(h, c string) string {
		raw, err := key.SignRaw([]byte(h), []byte(c))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	a, _ := newAssertions()
	compact := sign(header, good)
	if err := present(t.Context(), a, keyClient(testkit.JWKS(t, key)), compact, assertionTime); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	for name, raw := range map[string]string{
		"empty":                      "",
		"one part":                   "abc",
		"a JWE has five parts":       compact + ".a.b",
		"no signature":               compact[:strings.LastIndexByte(compact, '.')+1],
		"padding":                    compact + "=",
		"line break":                 strings.Replace(compact, ".", "\n.", 1),
		"spaces around":              " " + compact + " ",
		"header is a list":           sign(`[]`, good),
		"header twice":               sign(`{"alg":"ES256","kid":"k1","alg":"none"}`, good),
		"claims are null":            sign(header, `null`),
		"claims are no JSON":         sign(header, `{`),
		"claims with more after":     sign(header, good+"{}"),
		"a claim twice":              sign(header, strings.Replace(good, `"sub":"quill"`, `"sub":"quill","sub":"atlas"`, 1)),
		"a claim in another case":    sign(header, strings.Replace(good, `"jti"`, `"JTI"`, 1)),
		"not UTF-8":                  sign(header, strings.Replace(good, `"jti":"1"`, "\"jti\":\"\xff\"", 1)),
		"alg in another case":        sign(`{"ALG":"ES256","kid":"k1"}`, good),
		"JSON serialization":         `{"payload":"` + b64([]byte(good)) + `","signatures":[]}`,
		"another spelling of base64": compact[:len(compact)-1] + "_",
	} {
		if err := present(t.Context(), a, keyClient(testkit.JWKS(t, key)), raw, assertionTime); oauth.Code(err) != "invalid_client" && !errors.Is(err, registration.ErrAssertion) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

func TestCA08_AssertionKeys(t *testing.T) {
	t.Parallel()
	es, ed, other := testkit.NewClientKey(t, "ES256", "es"), testkit.NewClientKey(t, "EdDSA", "ed"), testkit.NewClientKey(t, "ES256", "es")
	second := testkit.NewClientKey(t, "ES256", "es2")
	rs, ps := testkit.NewClientKey(t, "RS256", "rsa"), *testkit.NewClientKey(t, "PS256", "rsa")
	restricted := []byte(strings.Replace(string(testkit.JWKS(t, es)), `"kid":`, `"use":"enc","kid":`, 1))
	claims := func() map[string]any { return testkit.AssertionClaims("quill", assertionIssuer, assertionTime) }
	for _, tt := range []struct {
		name      string
		jwks      []byte
		alg       string
		assertion string
		ok        bool
	}{
		{"one of two by kid", testkit.JWKS(t, es, ed), "", ed.Sign(t, nil, claims()), true},
		{"no kid, one key fits the alg", testkit.JWKS(t, es, ed), "", es.Sign(t, map[string]any{"kid": nil}, claims()), true},
		{"no kid, two keys fit", testkit.JWKS(t, es, second), "", es.Sign(t, map[string]any{"kid": nil}, claims()), false},
		{"unknown kid", testkit.JWKS(t, es), "", es.Sign(t, map[string]any{"kid": "x"}, claims()), false},
		{"kid of another key", testkit.JWKS(t, es, second), "", es.Sign(t, map[string]any{"kid": "es2"}, claims()), false},
		{"bad signature: key of another client", testkit.JWKS(t, es), "", other.Sign(t, nil, claims()), false},
		{"RFC 8725 3.1 alg of another type of key", testkit.JWKS(t, es), "", ed.Sign(t, map[string]any{"kid": "es"}, claims()), false},
		{"RSA key signs PS256 too", testkit.JWKS(t, &ps), "", ps.Sign(t, nil, claims()), true},
		{"PS256 signature that says RS256", testkit.JWKS(t, &ps), "", ps.Sign(t, map[string]any{"alg": "RS256"}, claims()), false},
		{"registered alg", testkit.JWKS(t, rs), "RS256", rs.Sign(t, nil, claims()), true},
		{"another than the registered alg", testkit.JWKS(t, rs), "PS256", rs.Sign(t, nil, claims()), false},
		{"key for encryption", restricted, "", es.Sign(t, nil, claims()), false},
		{"no keys at all", nil, "", es.Sign(t, nil, claims()), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, used := newAssertions()
			c := keyClient(tt.jwks)
			c.Metadata.TokenEndpointAuthSigningAlg = tt.alg
			err := present(t.Context(), a, c, tt.assertion, assertionTime)
			if tt.ok && err != nil || !tt.ok && !errors.Is(err, registration.ErrAssertion) {
				t.Errorf("err = %v, want ok %t", err, tt.ok)
			}
			if (len(used.used) == 1) != tt.ok {
				t.Errorf("%d used up (A18)", len(used.used))
			}
		})
	}
}

func TestCA09_AssertionOnce(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k1")
	a, used := newAssertions()
	c := keyClient(testkit.JWKS(t, key))
	claims := testkit.AssertionClaims("quill", assertionIssuer, assertionTime)
	raw := key.Sign(t, nil, claims)
	if err := present(t.Context(), a, c, raw, assertionTime); err != nil {
		t.Fatal(err)
	}
	if err := present(t.Context(), a, c, raw, assertionTime); oauth.Code(err) != "invalid_client" {
		t.Errorf("replay: %v, want invalid_client", err)
	}
	// signed again with the same jti it is the same assertion
	claims["exp"] = assertionTime.Add(2 * time.Minute).Unix()
	if err := present(t.Context(), a, c, key.Sign(t, nil, claims), assertionTime); oauth.Code(err) != "invalid_client" {
		t.Errorf("same jti: %v, want invalid_client", err)
	}
	// it is remembered for as long as it would be accepted
	for _, until := range used.used {
		if want := assertionTime.Add(2 * time.Minute); !until.Equal(want) {
			t.Errorf("remembered until %s, want %s", until, want)
		}
		if _, err := a.Read(oauth.Secret(raw), until); oauth.Code(err) != "invalid_client" {
			t.Errorf("accepted again at %s: %v", until, err)
		}
	}
	// a database that fails is no fault of the client
	used.err = errors.New("disk full")
	claims["jti"] = "another"
	if err := present(t.Context(), a, c, key.Sign(t, nil, claims), assertionTime); oauth.Code(err) != "server_error" || errors.Is(err, registration.ErrAssertion) {
		t.Errorf("store fails: %v", err)
	}
}

func FuzzReadAssertion(f *testing.F) {
	key := testkit.NewClientKey(f, "ES256", "k1")
	for _, header := range []string{`{"alg":"ES256","kid":"k1"}`, `{"alg":"none"}`, `{"alg":"ES256","typ":"at+jwt"}`, `{"alg":"EdDSA","crit":["x"]}`, `[`} {
		for _, claims := range []string{
			`{"iss":"quill","sub":"quill","aud":"https://id.example.com","jti":"1","exp":1795262460}`,
			`{"iss":"quill","sub":"quill","aud":["https://id.example.com","x"],"jti":"1","exp":1e400}`, `null`, `{"exp":-0.0}`} {
			raw, err := key.SignRaw([]byte(header), []byte(claims))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw)
		}
	}
	f.Add("")
	f.Add("..")
	a, _ := newAssertions()
	c := keyClient(testkit.JWKS(f, testkit.NewClientKey(f, "ES256", "k1"), testkit.NewClientKey(f, "EdDSA", "k2")))
	f.Fuzz(func(t *testing.T, raw string) {
		as, err := a.Read(oauth.Secret(raw), assertionTime)
		if err != nil {
			if oauth.Code(err) != "invalid_client" {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if as.ClientID == "" {
			t.Fatal("an assertion of nobody")
		}
		if err := a.Check(context.Background(), c, as, assertionTime); !errors.Is(err, registration.ErrAssertion) {
			t.Fatalf("signed by nobody we know, and yet: %v", err)
		}
	})
}
