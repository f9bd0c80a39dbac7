package registration_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const publisher = "https://publisher.example"

// trust makes a registrar believe what the keys of a file sign for publisher.
func trust(t testing.TB, keys ...*testkit.ClientKey) func(*registration.Options) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, testkit.JWKS(t, keys...), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(o *registration.Options) {
		manage(o)
		o.Statements = &registration.Statements{Audience: o.Issuer, Issuers: []registration.StatementIssuer{{Issuer: publisher, JWKS: file}}}
	}
}

// vouched are the claims of a statement about Quill.
func vouched(changes map[string]any) map[string]any {
	claims := map[string]any{"iss": publisher, "software_id": "quill", "client_name": "Quill", "redirect_uris": []string{"https://quill.example/cb"}}
	for name, v := range changes {
		if claims[name] = v; v == nil {
			delete(claims, name)
		}
	}
	return claims
}

func withStatement(t testing.TB, statement string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"software_statement": statement, "token_endpoint_auth_method": "none",
		"client_name": "Your Bank", "redirect_uris": []string{"https://evil.example/cb"}, "software_version": "3"})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRFC7591_SoftwareStatement(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	for _, alg := range registration.AssertionAlgorithms() {
		key := testkit.NewClientKey(t, alg, "k1")
		g := newRegistrar(t, db, trust(t, key))
		for _, tt := range []struct {
			name           string
			header, claims map[string]any
		}{
			{name: "plain"},
			{name: "no typ", header: map[string]any{"typ": nil}},
			{name: "no kid, one key", header: map[string]any{"kid": nil}},
			{name: "times", claims: map[string]any{"exp": g.now.Add(time.Hour).Unix(), "iat": g.now.Unix(), "nbf": g.now.Unix()}},
			{name: "for us", claims: map[string]any{"aud": "https://id.example.com"}},
			{name: "for several", claims: map[string]any{"aud": []string{"https://other.example", "https://id.example.com"}}},
		} {
			t.Run(alg+" "+tt.name, func(t *testing.T) {
				statement := key.Sign(t, tt.header, vouched(tt.claims))
				w := g.post("192.0.2.1", "application/json", withStatement(t, statement))
				got := decode(t, w.Body)
				uris, _ := got["redirect_uris"].([]any)
				if w.Code != http.StatusCreated || len(uris) != 1 || uris[0] != "https://quill.example/cb" || got["client_name"] != "Quill" {
					t.Errorf("2.3: the statement's claims must win: %d %v", w.Code, got)
				}
				if got["software_version"] != "3" || got["software_statement"] != statement {
					t.Errorf("3.2.1: %v", got)
				}
			})
		}
	}
}

func TestDR09_SoftwareStatementRefused(t *testing.T) {
	t.Parallel()
	db := testkit.OpenSQLite(t)
	key, second, foreign := testkit.NewClientKey(t, "ES256", "k1"), testkit.NewClientKey(t, "ES256", "k2"), testkit.NewClientKey(t, "ES256", "k1")
	rsa := testkit.NewClientKey(t, "RS256", "k1")
	g := newRegistrar(t, db, trust(t, key, second))
	sign := func(header, claims map[string]any) string { return key.Sign(t, header, vouched(claims)) }
	good := sign(nil, nil)
	parts := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	claims, _ := json.Marshal(vouched(nil))
	for name, statement := range map[string]string{
		"unsigned":               b64([]byte(`{"alg":"none"}`)) + "." + b64(claims) + ".",
		"alg none, signed":       b64([]byte(`{"alg":"none"}`)) + "." + parts[1] + "." + parts[2],
		"HS256":                  b64([]byte(`{"alg":"HS256"}`)) + "." + parts[1] + "." + parts[2],
		"another's key":          foreign.Sign(t, nil, vouched(nil)),
		"another kind of key":    rsa.Sign(t, nil, vouched(nil)),
		"unknown kid":            sign(map[string]any{"kid": "k9"}, nil),
		"no kid, two keys":       sign(map[string]any{"kid": nil}, nil),
		"untrusted issuer":       sign(nil, map[string]any{"iss": "https://evil.example"}),
		"issuer with a slash":    sign(nil, map[string]any{"iss": publisher + "/"}),
		"no issuer":              sign(nil, map[string]any{"iss": nil}),
		"expired":                sign(nil, map[string]any{"exp": g.now.Add(-time.Minute).Unix()}),
		"exp is a string":        sign(nil, map[string]any{"exp": "9999999999"}),
		"exp is null":            strings.Replace(sign(nil, map[string]any{"exp": json.RawMessage("null")}), " ", "", -1),
		"not yet":                sign(nil, map[string]any{"nbf": g.now.Add(time.Hour).Unix()}),
		"made in the future":     sign(nil, map[string]any{"iat": g.now.Add(time.Hour).Unix()}),
		"for another":            sign(nil, map[string]any{"aud": "https://other.example"}),
		"an access token":        sign(map[string]any{"typ": "at+jwt"}, nil),
		"a client assertion":     sign(map[string]any{"typ": "client-authentication+jwt"}, nil),
		"critical extension":     sign(map[string]any{"crit": []string{"x"}, "x": 1}, nil),
		"claims changed":         parts[0] + "." + b64([]byte(`{"iss":"`+publisher+`","client_name":"Evil"}`)) + "." + parts[2],
		"repeated claim":         b64([]byte(`{"alg":"ES256"}`)) + "." + b64([]byte(`{"iss":"a","iss":"`+publisher+`"}`)) + "." + parts[2],
		"padding":                good + "=",
		"two parts":              parts[0] + "." + parts[1],
		"no JWT":                 "hello",
		"too long":               strings.Repeat("a", 33<<10),
		"flattened JSON":         `{"payload":"` + parts[1] + `"}`,
		"key in its own header":  sign(map[string]any{"kid": "k9", "jku": "https://evil.example/jwks.json"}, nil),
		"metadata in a nonsense": sign(nil, map[string]any{"nbf": "now"}),
	} {
		t.Run("DR-09 "+name, func(t *testing.T) {
			w := g.post("192.0.2.1", "application/json", withStatement(t, statement))
			if got := decode(t, w.Body); w.Code != http.StatusBadRequest || got["error"] != "invalid_software_statement" {
				t.Errorf("%d %v", w.Code, got)
			}
		})
	}
	t.Run("DR-09 what it says is checked too", func(t *testing.T) {
		w := g.post("192.0.2.1", "application/json", withStatement(t, sign(nil, map[string]any{"redirect_uris": []string{"data:x"}})))
		if got := decode(t, w.Body); w.Code != http.StatusBadRequest || got["error"] != "invalid_redirect_uri" {
			t.Errorf("%d %v", w.Code, got)
		}
	})
	if n := len(g.clients(t)); n != 0 {
		t.Errorf("%d clients were made", n)
	}
}

// DR-09: where nobody is trusted a statement is ignored, and never echoed.
func TestDR09_StatementIgnored(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k1")
	g := newRegistrar(t, testkit.OpenSQLite(t), nil)
	w := g.post("192.0.2.1", "application/json", withStatement(t, key.Sign(t, nil, vouched(nil))))
	if got := decode(t, w.Body); w.Code != http.StatusCreated || got["client_name"] != "Your Bank" || got["software_statement"] != nil {
		t.Errorf("%d %v", w.Code, got)
	}
}

func TestStatementMode(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k1")
	trusted := trust(t, key)
	g := newRegistrar(t, testkit.OpenSQLite(t), func(o *registration.Options) {
		trusted(o)
		o.Policy.Mode, o.Policy.Management = registration.ModeStatement, registration.ManageAll
	})
	if w := g.post("192.0.2.1", "application/json", quill); w.Code != http.StatusBadRequest || decode(t, w.Body)["error"] != "invalid_software_statement" {
		t.Errorf("without a statement: %d %s", w.Code, w.Body)
	}
	w := g.post("192.0.2.1", "application/json", withStatement(t, key.Sign(t, nil, vouched(nil))))
	m := &managed{registrar: g, metadata: decode(t, w.Body)}
	if w.Code != http.StatusCreated {
		t.Fatalf("with one: %d %v", w.Code, m.metadata)
	}
	m.id, m.token = m.metadata["client_id"].(string), m.metadata["registration_access_token"].(string)
	if w := m.put(t, m.token, map[string]any{"software_statement": nil}); w.Code != http.StatusBadRequest {
		t.Errorf("an update without the statement: %d %s", w.Code, w.Body)
	}
	if w := m.put(t, m.token, map[string]any{"client_name": "Your Bank"}); w.Code != http.StatusOK || decode(t, w.Body)["client_name"] != "Quill" {
		t.Errorf("an update with it: %d %s", w.Code, w.Body)
	}
}

// Keys at a URL are fetched through the guard, once for many statements; while
// they cannot be had nobody is told that the statement is bad.
func TestStatementKeysByURL(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k1")
	up := true
	host := testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(testkit.JWKS(t, key))
	}), "publisher.example")
	var g *registrar
	by := func(url string) func(o *registration.Options) {
		return func(o *registration.Options) {
			keys := registration.NewClientKeys(registration.ClientKeysOptions{Fetcher: testkit.Outbound(t, host), Now: o.Now})
			o.Statements = &registration.Statements{Audience: o.Issuer, Keys: keys, Issuers: []registration.StatementIssuer{{Issuer: publisher, JWKS: url}}}
		}
	}
	post := func() *httptest.ResponseRecorder {
		return g.post("192.0.2.1", "application/json", withStatement(t, key.Sign(t, nil, vouched(nil))))
	}
	g = newRegistrar(t, testkit.OpenSQLite(t), by(host.URL+"/jwks.json"))
	up = false
	if w := post(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("keys that cannot be had: %d %s", w.Code, w.Body)
	}
	up, g.now = true, g.now.Add(time.Minute)
	for range 3 {
		if w := post(); w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if n := host.Requests(); n != 2 {
		t.Errorf("%d fetches, want one that failed and one more", n)
	}
	g = newRegistrar(t, g.db, by("https://10.0.0.1/jwks.json"))
	if w := post(); w.Code != http.StatusServiceUnavailable {
		t.Errorf("DR-08 a private address: %d %s", w.Code, w.Body)
	}
}

// Whatever stands in software_statement, nobody gets a client by it without the
// issuer's key.
func FuzzSoftwareStatement(f *testing.F) {
	key, foreign := testkit.NewClientKey(f, "ES256", "k1"), testkit.NewClientKey(f, "ES256", "k1")
	g := newRegistrar(f, testkit.OpenSQLite(f), trust(f, key))
	f.Add("x")
	f.Add(foreign.Sign(f, nil, vouched(nil)))
	f.Add("eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL3B1Ymxpc2hlci5leGFtcGxlIn0.")
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, statement string) {
		if statement == "" {
			return
		}
		w := g.post("192.0.2.1", "application/json", withStatement(t, statement))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d %s", statement, w.Code, w.Body)
		}
	})
}
