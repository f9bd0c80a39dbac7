package authserver_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	wiring "github.com/ostiary-auth/ostiary/internal/app"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// ST-01 stands in secrets_test.go.

// ST-02: whoever has read, or even written, the database and has not the state
// secret gets no token, no session and no client.
func TestST02_StoredValuesOpenNothing(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.operatorApp(registration.AuthClientSecretPost, appRedirect)
		token := k.connect(a, nil).body.RefreshToken
		k.code(a, url.Values{"prompt": {"consent"}})
		row, err := k.DB.GetClient(k.ctx, a.id)
		if err != nil {
			t.Fatal(err)
		}
		user, err := k.DB.GetUserByEmail(k.ctx, login.EmailKey(testkit.Email))
		if err != nil {
			t.Fatal(err)
		}
		for name, secret := range map[string]string{"bytes": string(row.SecretHash), "hex": hex.EncodeToString(row.SecretHash),
			"base64": base64.RawURLEncoding.EncodeToString(row.SecretHash)} {
			thief := a
			thief.secret = secret
			got := k.refresh(thief, token, nil)
			if got.status != 401 && got.status != 400 || got.body.AccessToken != "" {
				t.Errorf("ST-02 stored secret hash as %s: %d", name, got.status)
			}
		}
		for _, password := range []string{user.PasswordHash, user.ID} {
			page, err := k.Person().Open(k.ctx, k.URL("/sign-in"))
			if err != nil {
				t.Fatal(err)
			}
			thief := k.Person()
			page, err = thief.Open(k.ctx, page.URL.String())
			if err != nil {
				t.Fatal(err)
			}
			thief.Password = password
			if page, err = thief.SignIn(k.ctx, page); err != nil || page.Form("/sign-in") == nil {
				t.Errorf("ST-02 password hash as password: %v %v", page, err)
			}
		}
		k.everyStoredValueAsCookie()
		k.forgedRow(a)
		want(t, k.refresh(a, token, nil), 200, "")
	})
}

// everyStoredValueAsCookie sends each value of the tables that hold credentials'
// hashes as a session cookie and as a return link.
func (k *kit) everyStoredValueAsCookie() {
	k.t.Helper()
	tried := 0
	for line := range strings.Lines(testkit.Dump(k.ctx, k.t, k.DB)) {
		table, rest, _ := strings.Cut(line, " ")
		if table != "sessions" && table != "devices" && table != "authorization_requests" {
			continue
		}
		for _, field := range strings.Split(rest, `" `) {
			_, value, ok := strings.Cut(field, `="`)
			if value = strings.Trim(value, "\"\n"); !ok || len(value) < 16 || strings.ContainsAny(value, `\"{[ `) {
				continue
			}
			tried++
			got := k.raw("GET", "/account", "", http.Header{"Cookie": {"__Host-sid=" + value + "; __Host-device=" + value}, "Accept": {"text/html"}})
			if got.status == 200 {
				k.t.Errorf("ST-02: a value of %s opens a session", table)
			}
			if got := k.raw("GET", "/return/"+url.PathEscape(value), "", nil); got.status == 200 {
				k.t.Errorf("ST-02: a value of %s opens a return page", table)
			}
		}
	}
	if tried < 3 {
		k.t.Errorf("only %d values tried", tried)
	}
}

// forgedRow inserts a grant of the thief's own, with a salt they chose.
func (k *kit) forgedRow(a app) {
	k.t.Helper()
	now := k.Clock.Now()
	g := grant.Grant{ID: strings.Repeat("ab", 16), ClientID: a.id, Subject: k.grants()[0].Subject, Resource: testkit.Resource,
		Scopes: []string{"files:read", "admin"}, OfflineAccess: true, RedirectURI: a.redirect, CodeChallenge: challenge(verifier),
		Salt: []byte("a salt that the thief has chosen"), Generation: 1, AdvancedAt: now, CodeExpiresAt: now.Add(time.Minute),
		RefreshExpiresAt: now.Add(time.Hour), ExpiresAt: now.Add(time.Hour), CreatedAt: now}
	if err := k.DB.CreateGrant(k.ctx, g); err != nil {
		k.t.Fatal(err)
	}
	for _, secrets := range []*keys.Secrets{keys.GenerateSecrets(), mustSecrets(k.t, g.Salt)} {
		k.denied(400, "invalid_grant", func() answer { return k.refresh(a, k.mintedBy(secrets, testkit.Issuer, g, 1), nil) })
		k.denied(400, "invalid_grant", func() answer { return k.redeem(a, k.mintedBy(secrets, testkit.Issuer, g, 0), nil) })
	}
}

func mustSecrets(t *testing.T, raw []byte) *keys.Secrets {
	t.Helper()
	s, err := keys.ParseSecrets([]byte(base64.StdEncoding.EncodeToString(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ST-02, ST-03: the database alone starts no server and opens no signing key.
func TestST03_SigningKeysAreSealed(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		dump := testkit.Dump(k.ctx, t, k.DB)
		rows := 0
		for line := range strings.Lines(dump) {
			if !strings.HasPrefix(line, "signing_keys ") {
				continue
			}
			rows++
			if strings.Contains(line, `\"d\"`) || strings.Contains(line, "PRIVATE KEY") {
				t.Error("ST-03: the private key is in the clear")
			}
		}
		if rows == 0 {
			t.Error("no signing key in the dump")
		}
		for name, text := range map[string]string{"log": k.Logs.String(), "JWKS": k.raw("GET", "/jwks.json", "", nil).raw} {
			if strings.Contains(text, `"d":`) || strings.Contains(text, "private_sealed") || strings.Contains(text, k.Config.Secret.Reveal()) {
				t.Errorf("ST-03: key material in the %s", name)
			}
		}
		stolen := *k.Config
		stolen.Secret = oauth.Secret(keys.GenerateSecrets().Encode())
		k.changesOnly(func() {
			if _, err := wiring.New(k.ctx, wiring.Options{Config: &stolen, Now: k.Clock.Now, Store: k.DB}); err == nil {
				t.Error("ST-02: a server started on the database with another secret")
			} else if strings.Contains(err.Error(), stolen.Secret.Reveal()) {
				t.Error("ST-03: the error shows the secret")
			}
		})
		other := *k.Config
		other.Issuer = "https://other.example"
		if _, err := wiring.New(k.ctx, wiring.Options{Config: &other, Now: k.Clock.Now, Store: k.DB}); err == nil {
			t.Error("D2: a server started on the database of another issuer")
		}
	})
}

// hostile are inputs that break what builds statements or text by hand.
func hostile() []string {
	return []string{`' OR '1'='1`, `'; DROP TABLE grants; --`, `" OR ""="`, `\`, `%`, `_`, `$1`, "?", ":1", "a\tb", "a\r\nb",
		"\u202e", "\U0001F600", "e\u0301", strings.Repeat("x", 5000)}
}

// malformed are refused outright: PostgreSQL takes neither.
func malformed() []string { return []string{"a\x00b", "\x00", "\xff\xfe", "a\xc3", "\xed\xa0\x80"} }

func TestST07_HostileStringsEverywhere(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		token := k.connect(a, nil).body.RefreshToken
		tables := strings.Count(testkit.Dump(k.ctx, t, k.DB), "\nclients ")
		for i, value := range append(hostile(), malformed()...) {
			bad := i >= len(hostile())
			for _, name := range []string{"client_id", "redirect_uri", "state", "scope", "resource", "response_type", "code_challenge",
				"code_challenge_method", "prompt", "nonce", "login_hint", "x"} {
				k.below500("/authorize "+name, value, bad, k.raw("GET", strings.TrimPrefix(k.authorizeURL(a, url.Values{name: {value}}), testkit.Issuer), "", nil))
			}
			for _, name := range []string{"grant_type", "client_id", "client_secret", "code", "redirect_uri", "code_verifier", "resource", "scope", "x"} {
				form := changed(codeForm(a, "x"), url.Values{name: {value}})
				k.below500("/token "+name, value, true, k.raw("POST", "/token", form.Encode(), nil))
			}
			for _, name := range []string{"refresh_token", "client_id", "scope", "resource"} {
				form := changed(url.Values{"grant_type": {"refresh_token"}, "client_id": {a.id}, "refresh_token": {"x"}}, url.Values{name: {value}})
				k.below500("/token "+name, value, true, k.raw("POST", "/token", form.Encode(), nil))
			}
			for _, pair := range []string{value + ":" + value, url.QueryEscape(value) + ":" + url.QueryEscape(value)} {
				basic := http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(pair))}}
				k.below500("/token Basic", value, true, k.raw("POST", "/token", "grant_type=refresh_token&refresh_token=x", basic))
			}
			k.below500("/revoke token", value, bad, k.raw("POST", "/revoke", url.Values{"client_id": {a.id}, "token": {value}}.Encode(), nil))
			k.hostilePages(value, bad)
			k.hostileRegistration(value)
		}
		want(t, k.refresh(a, token, nil), 200, "")
		if n := strings.Count(testkit.Dump(k.ctx, t, k.DB), "\nclients "); n < tables {
			t.Errorf("%d clients, want at least %d", n, tables)
		}
	})
}

// below500 checks that an answer is no failure of ours, and a refusal where it
// must be one.
func (k *kit) below500(where, value string, refused bool, got answer) {
	k.t.Helper()
	if got.status >= 500 || refused && got.status < 400 {
		k.t.Errorf("ST-07: %s = %.20q: %d", where, value, got.status)
	}
	if strings.Contains(strings.ToUpper(got.raw), "SQLSTATE") || strings.Contains(got.raw, "syntax error") {
		k.t.Errorf("ST-07: %s = %.20q: the answer tells of the database", where, value)
	}
}

func (k *kit) hostilePages(value string, bad bool) {
	k.t.Helper()
	q := url.QueryEscape(value)
	for _, path := range []string{"/sign-in?request=" + q, "/consent?request=" + q, "/authorize/continue?request=" + q, "/setup?link=" + q,
		"/return/" + url.PathEscape(value), "/account/apps/" + url.PathEscape(value) + "/disconnect"} {
		k.below500(path, value, false, k.raw("GET", path, "", http.Header{"Cookie": {"__Host-sid=" + q}}))
	}
	p := k.Person()
	page, err := p.Open(k.ctx, k.URL("/sign-in"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, name := range []string{"username", "password", "request", "txn"} {
		fields := url.Values{"username": {"nobody@example.com"}, "password": {""}}
		fields.Set(name, value)
		next, err := p.Submit(k.ctx, page, page.Form("/sign-in"), fields)
		if err != nil {
			k.t.Fatal(err)
		}
		if next.Status >= 500 || bad && next.Status < 400 {
			k.t.Errorf("ST-07: /sign-in %s = %.20q: %d", name, value, next.Status)
		}
	}
}

func (k *kit) hostileRegistration(value string) {
	k.t.Helper()
	k.Clock.Advance(time.Hour) // the budget of registrations
	for _, name := range []string{"client_name", "scope", "software_id", "client_uri", "application_type", "token_endpoint_auth_method", "unknown"} {
		doc, err := json.Marshal(map[string]any{"redirect_uris": []string{loopbackRedirect}, name: value})
		if err != nil {
			k.t.Fatal(err)
		}
		// json.Marshal repairs UTF-8: put the bytes back
		raw := strings.ReplaceAll(string(doc), `\ufffd`, "\xff")
		got := k.raw("POST", "/register", raw, http.Header{"Content-Type": {"application/json"}})
		if got.status >= 500 {
			k.t.Errorf("ST-07: /register %s = %.20q: %d %s", name, value, got.status, got.raw)
		}
	}
	got := k.raw("POST", "/register", `{"redirect_uris":["`+loopbackRedirect+`"],"client_name":"a\u0000b"}`, http.Header{"Content-Type": {"application/json"}})
	if got.status >= 500 {
		k.t.Errorf("ST-07: NUL in client_name: %d", got.status)
	}
}
