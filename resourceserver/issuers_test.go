package resourceserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/metadata"
	"github.com/ostiary-auth/ostiary/resourceserver"
)

// trusting makes the fixture's issuer one with further options.
func trusting(change func(*resourceserver.Issuer)) func(*resourceserver.Options) {
	return func(o *resourceserver.Options) {
		is := resourceserver.Issuer{Identifier: o.Issuer}
		change(&is)
		o.Issuer, o.Issuers = "", []resourceserver.Issuer{is}
	}
}

func TestSeveralIssuers(t *testing.T) {
	t.Parallel()
	second, stranger := newIssuer(t), newIssuer(t)
	f := newFixture(t, func(o *resourceserver.Options) {
		o.Issuers = []resourceserver.Issuer{{Identifier: o.Issuer},
			{Identifier: second.URL, Profile: resourceserver.ProfileUntypedJWT, Algorithms: []string{"ES256"}}}
		o.Issuer = ""
	})
	f.issuer.addECKey(t, "only-first")
	second.addECKey(t, "only-second")
	untyped := map[string]any{"alg": "ES256", "kid": "ec-1"}
	for _, tt := range []struct {
		name   string
		signer *issuer
		header map[string]any
		iss    string
		want   int
	}{
		{"the first", f.issuer, header("ES256", "ec-1"), f.issuer.URL, 200},
		{"the second", second, header("ES256", "only-second"), second.URL, 200},
		{"the second's profile", second, untyped, second.URL, 200},
		{"JW-13 the first's profile is its own", f.issuer, untyped, f.issuer.URL, 401},
		{"JW-14 a key of the second, iss the first", second, header("ES256", "only-second"), f.issuer.URL, 401},
		{"JW-14 the same kid, another issuer's key", second, header("ES256", "ec-1"), f.issuer.URL, 401},
		{"JW-14 a key of the first, iss the second", f.issuer, header("ES256", "only-first"), second.URL, 401},
		{"JW-14 an issuer that is not trusted", stranger, header("ES256", "ec-1"), stranger.URL, 401},
		{"JW-14 iss an array of both", f.issuer, header("ES256", "ec-1"), "", 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.signer.claims(testResource, f.now, "notes:read")
			if c["iss"] = tt.iss; tt.iss == "" {
				c["iss"] = []string{f.issuer.URL, second.URL}
			}
			if w := f.get(tt.signer.sign(t, tt.header, c)); w.Code != tt.want {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
	if n := stranger.fetched(); n != 0 {
		t.Errorf("an issuer that is not trusted was asked for keys %d times", n)
	}
	t.Run("M4 authorization_servers in that order", func(t *testing.T) {
		w := f.call(httptest.NewRequest("GET", "/.well-known/oauth-protected-resource/mcp", nil), "")
		doc, err := metadata.ParseProtectedResource(w.Body.Bytes(), testResource)
		if want := []string{f.issuer.URL, second.URL}; err != nil || !slices.Equal(doc.AuthorizationServers, want) {
			t.Errorf("authorization_servers = %q, %v; want %q", doc.AuthorizationServers, err, want)
		}
	})
	t.Run("M8 one issuer's outage is not the other's", func(t *testing.T) {
		broken := newIssuer(t)
		broken.set(func(i *issuer) { i.status = 500 })
		f := newFixture(t, func(o *resourceserver.Options) {
			o.Issuers = []resourceserver.Issuer{{Identifier: o.Issuer}, {Identifier: broken.URL}}
			o.Issuer = ""
		})
		c := broken.claims(testResource, f.now, "notes:read")
		if w := f.get(broken.sign(t, header("ES256", "ec-1"), c)); w.Code != http.StatusServiceUnavailable {
			t.Errorf("the broken one: status = %d, want 503", w.Code)
		}
		if w := f.get(f.token(t, "notes:read")); w.Code != http.StatusOK {
			t.Errorf("the other: status = %d, want 200: %s", w.Code, w.Body)
		}
	})
}

// What the servers' tokens look like: their documentation, 2026.
func TestProfiles(t *testing.T) {
	t.Parallel()
	jwt := map[string]any{"typ": "JWT"}
	bare := map[string]any{}
	atJWT := map[string]any{"typ": "at+jwt"}
	const (
		rfc9068  = resourceserver.ProfileRFC9068
		keycloak = resourceserver.ProfileKeycloak
		entra    = resourceserver.ProfileEntra
		untyped  = resourceserver.ProfileUntypedJWT
	)
	for _, tt := range []struct {
		name    string
		profile resourceserver.Profile
		header  map[string]any
		claims  map[string]any // over those of a valid token; nil removes one
		want    int
		client  string
	}{
		{"rfc9068, node-oidc-provider", rfc9068, atJWT, nil, 200, "c_1"},
		{"rfc9068, Auth0 with that token profile", rfc9068, atJWT, map[string]any{"aud": []string{testResource, "https://t.auth0.com/userinfo"}}, 200, "c_1"},
		{"rfc9068, Keycloak 26.2 told to", rfc9068, atJWT, map[string]any{"client_id": nil, "azp": "app", "typ": "Bearer"}, 200, "app"},
		{"client_id before azp", rfc9068, atJWT, map[string]any{"azp": "c_2"}, 200, "c_1"},
		{"JW-13 rfc9068, typ JWT", rfc9068, jwt, nil, 401, ""},
		{"JW-13 rfc9068, no typ", rfc9068, bare, nil, 401, ""},
		{"keycloak", keycloak, jwt, map[string]any{"typ": "Bearer", "azp": "app", "client_id": nil}, 200, "app"},
		{"keycloak switched to at+jwt", keycloak, atJWT, map[string]any{"typ": "Bearer"}, 200, "c_1"},
		{"JW-13 keycloak, an ID token", keycloak, jwt, map[string]any{"typ": "ID"}, 401, ""},
		{"JW-13 keycloak, a refresh token", keycloak, jwt, map[string]any{"typ": "Refresh"}, 401, ""},
		{"JW-13 keycloak, an offline token", keycloak, jwt, map[string]any{"typ": "Offline"}, 401, ""},
		{"JW-13 keycloak, claim typ missing", keycloak, jwt, nil, 401, ""},
		{"JW-13 keycloak, claim typ in another case", keycloak, jwt, map[string]any{"typ": "bearer"}, 401, ""},
		{"JW-13 keycloak, logout token", keycloak, map[string]any{"typ": "logout+jwt"}, map[string]any{"typ": "Bearer"}, 401, ""},
		{"JW-13 keycloak, no typ", keycloak, bare, map[string]any{"typ": "Bearer"}, 401, ""},
		{"entra v2", entra, jwt, map[string]any{"scp": "notes:read", "scope": nil, "azp": "app", "client_id": nil}, 200, "app"},
		{"entra v1", entra, jwt, map[string]any{"scp": "notes:read", "scope": nil, "appid": "app", "client_id": nil}, 200, "app"},
		{"JW-13 entra, an ID token", entra, jwt, map[string]any{"scope": nil, "client_id": nil}, 401, ""},
		{"JW-13 entra, no scp", entra, jwt, map[string]any{"azp": "app"}, 401, ""},
		{"JW-13 entra, no client", entra, jwt, map[string]any{"scp": "notes:read"}, 401, ""},
		{"untyped, typ JWT, as of Auth0", untyped, jwt, map[string]any{"azp": "app", "client_id": nil}, 200, "app"},
		{"untyped, no typ, as of Okta", untyped, bare, map[string]any{"cid": "app", "client_id": nil}, 200, "app"},
		{"JW-13 untyped, an ID token with a nonce", untyped, jwt, map[string]any{"nonce": "n"}, 401, ""},
		{"JW-13 untyped, an ID token with at_hash", untyped, jwt, map[string]any{"at_hash": "h"}, 401, ""},
		{"JW-13 untyped, a logout token", untyped, jwt, map[string]any{"events": map[string]any{}}, 401, ""},
		{"JW-13 untyped, another typ", untyped, map[string]any{"typ": "logout+jwt"}, nil, 401, ""},
		{"JW-13 untyped, typ in another case", untyped, map[string]any{"typ": "jwt"}, nil, 401, ""},
		{"JW-13 untyped, typ a number", untyped, map[string]any{"typ": 1}, nil, 401, ""},
		{"JW-21 untyped, bound to a key", untyped, jwt, map[string]any{"cnf": map[string]any{}}, 401, ""},
		{"AU-07 untyped, another audience", untyped, jwt, map[string]any{"aud": "https://other.example/mcp"}, 401, ""},
		{"AU-09 untyped, aud the client", untyped, jwt, map[string]any{"aud": "c_1"}, 401, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, trusting(func(i *resourceserver.Issuer) { i.Profile = tt.profile }))
			c := f.issuer.claims(testResource, f.now, "notes:read")
			for name, v := range tt.claims {
				if c[name] = v; v == nil {
					delete(c, name)
				}
			}
			h := map[string]any{"alg": "ES256", "kid": "ec-1"}
			for name, v := range tt.header {
				h[name] = v
			}
			w := f.get(f.issuer.sign(t, h, c))
			if w.Code != tt.want {
				t.Fatalf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			if tt.want != http.StatusOK {
				expect401(t, f, w, "invalid_token")
				return
			}
			token, _ := resourceserver.TokenFromContext(f.served[0].Context())
			if token.ClientID != tt.client || !token.HasScopes("notes:read") {
				t.Errorf("client %q with %q, want %q with notes:read", token.ClientID, token.Scopes, tt.client)
			}
		})
	}
}

func TestJW20_ScopeClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		issuer resourceserver.Issuer
		claims map[string]any
		want   []string
	}{
		{"a string", resourceserver.Issuer{}, map[string]any{"scope": "a b a"}, []string{"a", "b"}},
		{"an array is not read unasked", resourceserver.Issuer{}, map[string]any{"scope": []string{"a"}}, nil},
		{"an array, by configuration", resourceserver.Issuer{ScopeClaims: []string{"scope"}}, map[string]any{"scope": []string{"a", "b"}}, []string{"a", "b"}},
		{"Okta's scp", resourceserver.Issuer{ScopeClaims: []string{"scp"}}, map[string]any{"scp": []string{"a", "b"}, "scope": "x"}, []string{"a", "b"}},
		{"Auth0's permissions beside scope", resourceserver.Issuer{ScopeClaims: []string{"scope", "permissions"}},
			map[string]any{"scope": "a", "permissions": []string{"b", "a"}}, []string{"a", "b"}},
		{"Entra's scp with a prefix", resourceserver.Issuer{Profile: resourceserver.ProfileEntra, ScopePrefix: "api://notes/"},
			map[string]any{"scp": "read write", "azp": "app"}, []string{"api://notes/read", "api://notes/write"}},
		{"Entra's roles", resourceserver.Issuer{Profile: resourceserver.ProfileEntra, ScopeClaims: []string{"scp", "roles"}},
			map[string]any{"roles": []string{"Reader"}, "azp": "app"}, []string{"Reader"}},
		{"an array with a number", resourceserver.Issuer{ScopeClaims: []string{"scp"}}, map[string]any{"scp": []any{"a", 1}}, nil},
		{"an array with a space", resourceserver.Issuer{ScopeClaims: []string{"scp"}}, map[string]any{"scp": []string{"a b"}}, nil},
		{"an array with an empty one", resourceserver.Issuer{ScopeClaims: []string{"scp"}}, map[string]any{"scp": []string{""}}, nil},
		{"an object", resourceserver.Issuer{ScopeClaims: []string{"scp"}}, map[string]any{"scp": map[string]any{"a": true}}, nil},
		{"201 of them", resourceserver.Issuer{ScopeClaims: []string{"scp"}}, map[string]any{"scp": make201()}, nil},
	} {
		t.Run("JW-20 "+tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, trusting(func(i *resourceserver.Issuer) {
				id := i.Identifier
				*i = tt.issuer
				i.Identifier = id
			}))
			c := f.issuer.claims(testResource, f.now, "")
			delete(c, "scope")
			for name, v := range tt.claims {
				c[name] = v
			}
			if w := f.get(f.issuer.sign(t, header("ES256", "ec-1"), c)); w.Code != http.StatusOK {
				t.Fatalf("status = %d: %s", w.Code, w.Body)
			}
			token, _ := resourceserver.TokenFromContext(f.served[0].Context())
			if !slices.Equal(token.Scopes, tt.want) {
				t.Errorf("scopes = %q, want %q", token.Scopes, tt.want)
			}
		})
	}
}

func make201() []string {
	var list []string
	for i := range 201 {
		list = append(list, fmt.Sprint(i))
	}
	return list
}

func TestAllowAudiences(t *testing.T) {
	t.Parallel()
	const app = "6e74172b-be56-4843-9ff4-e66a39bb12e3"
	f := newFixture(t, trusting(func(i *resourceserver.Issuer) { i.AllowAudiences = []string{app} }))
	for _, tt := range []struct {
		name string
		aud  any
		want int
	}{
		{"the application's id", app, 200},
		{"M7 the resource still is one", testResource, 200},
		{"M7 a list with it", []string{"other", app}, 200},
		{"JW-15 in another case", strings.ToUpper(app), 401},
		{"JW-15 a prefix", app[:10], 401},
		{"JW-15 as a URL", "api://" + app, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.issuer.claims(testResource, f.now, "notes:read")
			c["aud"] = tt.aud
			if w := f.get(f.issuer.sign(t, header("ES256", "ec-1"), c)); w.Code != tt.want {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}

func TestKeysWithoutDiscovery(t *testing.T) {
	t.Parallel()
	t.Run("from a JWK set at hand", func(t *testing.T) {
		f := newFixture(t, func(o *resourceserver.Options) {
			o.Issuers = []resourceserver.Issuer{{Identifier: o.Issuer, JWKS: []byte(`{"keys":[` + ownKey(t) + `]}`)}}
			o.Issuer = ""
		})
		foreign := f.get(f.token(t, "notes:read"))
		expect401(t, f, foreign, "invalid_token")
		if n := f.issuer.fetched(); n != 0 {
			t.Errorf("keys were fetched %d times", n)
		}
	})
	t.Run("the set's own key, years later", func(t *testing.T) {
		signer := newIssuer(t)
		set, err := json.Marshal(map[string]any{"keys": signer.keys})
		if err != nil {
			t.Fatal(err)
		}
		f := newFixture(t, func(o *resourceserver.Options) {
			o.Issuers = []resourceserver.Issuer{{Identifier: signer.URL, JWKS: set}}
			o.Issuer = ""
		})
		f.advance(10 * 365 * 24 * 3600e9)
		c := signer.claims(testResource, f.now, "notes:read")
		if w := f.get(signer.sign(t, header("ES256", "ec-1"), c)); w.Code != http.StatusOK {
			t.Errorf("status = %d: %s", w.Code, w.Body)
		}
	})
	t.Run("from jwks_uri", func(t *testing.T) {
		f := newFixture(t, trusting(func(i *resourceserver.Issuer) { i.JWKSURI = i.Identifier + "/jwks" }))
		f.issuer.set(func(i *issuer) { i.claimed = "https://no-metadata.example" }) // nobody may ask for it
		if w := f.get(f.token(t, "notes:read")); w.Code != http.StatusOK {
			t.Errorf("status = %d: %s", w.Code, w.Body)
		}
	})
}

// ownKey is the JWK of a key that nobody signs with.
func ownKey(t *testing.T) string {
	t.Helper()
	return mustJSON(t, newIssuer(t).keys[0])
}

func TestNewRefusesIssuers(t *testing.T) {
	t.Parallel()
	good := resourceserver.Issuer{Identifier: "https://login.example.com"}
	with := func(change func(*resourceserver.Issuer)) []resourceserver.Issuer {
		is := good
		change(&is)
		return []resourceserver.Issuer{is}
	}
	asking := func(change func(*resourceserver.Introspection)) []resourceserver.Issuer {
		return with(func(i *resourceserver.Issuer) {
			i.Introspection = &resourceserver.Introspection{ClientID: "rs", ClientSecret: "s"}
			change(i.Introspection)
		})
	}
	for _, tt := range []struct {
		name    string
		issuers []resourceserver.Issuer
		want    string
	}{
		{"no identifier", with(func(i *resourceserver.Issuer) { i.Identifier = "" }), "required"},
		{"http", with(func(i *resourceserver.Issuer) { i.Identifier = "http://login.example.com" }), "https"},
		{"twice", []resourceserver.Issuer{good, good}, "twice"},
		{"a profile that is none", with(func(i *resourceserver.Issuer) { i.Profile = 99 }), "Profile"},
		{"JW-32 empty algorithms", with(func(i *resourceserver.Issuer) { i.Algorithms = []string{} }), "empty"},
		{"JW-07 HMAC", with(func(i *resourceserver.Issuer) { i.Algorithms = []string{"HS256"} }), "HS256"},
		{"JW-32 empty audience", with(func(i *resourceserver.Issuer) { i.AllowAudiences = []string{""} }), "AllowAudiences"},
		{"AU-09 the issuer as audience", with(func(i *resourceserver.Issuer) { i.AllowAudiences = []string{good.Identifier} }), "AllowAudiences"},
		{"JW-32 no claims of scopes", with(func(i *resourceserver.Issuer) { i.ScopeClaims = []string{} }), "ScopeClaims"},
		{"JW-30 prefix with a space", with(func(i *resourceserver.Issuer) { i.ScopePrefix = "a b" }), "ScopePrefix"},
		{"JW-22 jwks_uri over http", with(func(i *resourceserver.Issuer) { i.JWKSURI = "http://login.example.com/jwks" }), "jwks_uri"},
		{"JW-22 jwks_uri on this machine", with(func(i *resourceserver.Issuer) { i.JWKSURI = "http://127.0.0.1/jwks" }), "less secure"},
		{"JW-22 a set with a secret", with(func(i *resourceserver.Issuer) { i.JWKS = []byte(`{"keys":[{"kty":"oct","k":"AA"}]}`) }), "symmetric"},
		{"JW-32 an empty set", with(func(i *resourceserver.Issuer) { i.JWKS = []byte(`{"keys":[]}`) }), "no usable key"},
		{"both a set and where it is", with(func(i *resourceserver.Issuer) { i.JWKS, i.JWKSURI = []byte(`{}`), "https://a.example/" }), "exclude"},
		{"IR-01 no credential", asking(func(i *resourceserver.Introspection) { *i = resourceserver.Introspection{} }), "ClientSecret"},
		{"IR-01 a client without a secret", asking(func(i *resourceserver.Introspection) { i.ClientSecret = "" }), "ClientSecret"},
		{"IR-01 two credentials", asking(func(i *resourceserver.Introspection) { i.BearerToken = "t" }), "either"},
		{"JW-30 a bearer token with a line break", asking(func(i *resourceserver.Introspection) {
			*i = resourceserver.Introspection{BearerToken: "a\r\nX: y"}
		}), "BearerToken"},
		{"an endpoint over http", asking(func(i *resourceserver.Introspection) { i.Endpoint = "http://login.example.com/i" }), "Endpoint"},
		{"JW-23 answers older than a minute", asking(func(i *resourceserver.Introspection) { i.MaxAge = 61e9 }), "MaxAge"},
		{"two that are asked", append(asking(func(*resourceserver.Introspection) {}), resourceserver.Issuer{Identifier: "https://b.example",
			Introspection: &resourceserver.Introspection{BearerToken: "t"}}), "more than one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := resourceserver.New(resourceserver.Options{Resource: testResource, Issuers: tt.issuers})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want an error about %s", err, tt.want)
			}
		})
	}
	t.Run("Issuer beside Issuers", func(t *testing.T) {
		_, err := resourceserver.New(resourceserver.Options{Resource: testResource, Issuer: good.Identifier, Issuers: []resourceserver.Issuer{good}})
		if err == nil || !strings.Contains(err.Error(), "exclude") {
			t.Errorf("New = %v", err)
		}
	})
}

func TestParseProfile(t *testing.T) {
	t.Parallel()
	for p := resourceserver.ProfileRFC9068; p <= resourceserver.ProfileUntypedJWT; p++ {
		if got, err := resourceserver.ParseProfile(p.String()); got != p || err != nil {
			t.Errorf("ParseProfile(%q) = %v, %v", p, got, err)
		}
	}
	for _, name := range []string{"", "RFC9068", "none"} {
		if _, err := resourceserver.ParseProfile(name); err == nil {
			t.Errorf("ParseProfile(%q) is accepted", name)
		}
	}
}
