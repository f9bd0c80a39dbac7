package authserver_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestLG01_ST01_NoSecretIsKept runs everything that makes or takes a secret and
// then looks for each of them in the database and in the log at debug level.
func TestLG01_ST01_NoSecretIsKept(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		k.Recorder = &testkit.Recorder{}
		k.person = k.Person()
		k.Recorder.Add("password", testkit.Password)
		k.Recorder.Add("state secret", k.Config.Secret.Reveal())

		k.runSetup()
		k.runSignIn()
		k.runClients()
		k.runWrongPlaces()
		k.runOperator()

		for _, kind := range []string{"Authorization", "access_token", "client_secret", "code", "code_verifier", "cookie __Host-device",
			"cookie __Host-sid", "link", "password", "refresh_token", "return", "state secret", "token", "txn"} {
			if !slices.Contains(k.Recorder.Kinds(), kind) {
				t.Errorf("the run produced no %s", kind)
			}
		}
		if leaks := k.Recorder.Leaks(testkit.Dump(k.ctx, t, k.DB)); len(leaks) != 0 {
			t.Errorf("ST-01: the database holds %q", leaks)
		}
		for line := range strings.Lines(k.Logs.String()) {
			if leaks := k.Recorder.Leaks(line); len(leaks) != 0 {
				t.Errorf("LG-01: the log holds %q: %s", leaks, line)
			}
		}
		t.Run("LG-01 a planted secret is found", func(t *testing.T) { k.t = t; k.plant() })
	})
}

// plant shows that the search finds what is there.
func (k *kit) plant() {
	k.t.Helper()
	k.Recorder.Add("planted", "planted-secret-0123456789")
	if err := k.DB.Append(k.ctx, audit.New(k.ctx, k.Clock.Now(), audit.Event{Name: "test.planted", Actor: "system",
		Detail: map[string]string{"note": "planted-secret-0123456789"}})); err != nil {
		k.t.Fatal(err)
	}
	if leaks := k.Recorder.Leaks(testkit.Dump(k.ctx, k.t, k.DB)); !slices.Equal(leaks, []string{"planted"}) {
		k.t.Errorf("planted in the database, found %q", leaks)
	}
	for _, form := range []string{"planted-secret-0123456789", "cGxhbnRlZC1zZWNyZXQtMDEyMzQ1Njc4OQ", "706c616e7465642d7365637265742d30313233343536373839"} {
		if leaks := k.Recorder.Leaks("a line with " + form + " in it"); !slices.Equal(leaks, []string{"planted"}) {
			k.t.Errorf("planted in the log as %s, found %q", form, leaks)
		}
	}
	token := k.connect(k.register(loopbackRedirect), nil).body.AccessToken
	if leaks := k.Recorder.Leaks(`{"msg":"x","token":"` + token + `"}`); !slices.Contains(leaks, "access_token") {
		k.t.Errorf("an access token in the log, found %q", leaks)
	}
}

// runSetup makes the first operator with a set-up link.
func (k *kit) runSetup() {
	k.t.Helper()
	_, link, err := k.App.Setup.New(k.ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	p := k.Person()
	page, err := p.Open(k.ctx, link)
	if err != nil {
		k.t.Fatal(err)
	}
	page, err = p.Submit(k.ctx, page, page.Form("/setup"), nil)
	if err != nil {
		k.t.Fatal(err)
	}
	account := url.Values{"username": {"oda@example.com"}, "name": {"Oda"}, "password": {"short"}}
	if page, err = p.Submit(k.ctx, page, page.Form("/setup"), account); err != nil || page.Status != http.StatusUnprocessableEntity {
		k.t.Fatalf("set-up with a short password: %v %v", page, err)
	}
	account.Set("password", "oda has a long password")
	if page, err = p.Submit(k.ctx, page, page.Form("/setup"), account); err != nil || page.Status != http.StatusOK {
		k.t.Fatalf("set-up: %v %v", page, err)
	}
	server := url.Values{"url": {"https://mcp.example.com/setup"}, "name": {"Set up"}}
	if page, err = p.Submit(k.ctx, page, page.Form("/setup"), server); err != nil || page.Status != http.StatusOK {
		k.t.Fatalf("add the server: %v %v", page, err)
	}
	if page, err = k.Person().Open(k.ctx, link); err != nil || page.Status == http.StatusOK {
		k.t.Fatalf("the link works twice: %v %v", page, err)
	}
}

// runSignIn signs in with wrong passwords, an unknown name and the right one,
// and out again.
func (k *kit) runSignIn() {
	k.t.Helper()
	page, err := k.person.Open(k.ctx, k.URL("/sign-in"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, try := range [][2]string{{testkit.Email, "the wrong password of Mina"}, {"nobody@example.com", "a password of nobody"},
		{"password typed as a name", testkit.Password}, {testkit.Email, testkit.Password}} {
		next, err := k.person.Submit(k.ctx, page, page.Form("/sign-in"), url.Values{"username": {try[0]}, "password": {try[1]}})
		if err != nil {
			k.t.Fatal(err)
		}
		if page = next; page.Form("/sign-in") == nil {
			break
		}
	}
	if page.Form("/sign-out") == nil {
		k.t.Fatalf("not signed in: %d %q", page.Status, page.Heading)
	}
	if _, err := k.person.Submit(k.ctx, page, page.Form("/sign-out"), url.Values{"txn": {"a-token-of-another-page-00000"}}); err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.person.Submit(k.ctx, page, page.Form("/sign-out"), nil); err != nil {
		k.t.Fatal(err)
	}
}

// runClients walks each kind of client from registration to its end.
func (k *kit) runClients() {
	k.t.Helper()
	dynamic := func(method string) app {
		status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": []string{appRedirect}, "token_endpoint_auth_method": method})
		if status != http.StatusCreated {
			k.t.Fatalf("register: %d %v", status, doc)
		}
		secret, _ := doc["client_secret"].(string)
		return app{id: doc["client_id"].(string), secret: secret, method: method, redirect: appRedirect}
	}
	for _, a := range []app{dynamic(registration.AuthNone), dynamic(registration.AuthClientSecretBasic), dynamic(registration.AuthClientSecretPost),
		k.operatorApp(registration.AuthClientSecretBasic, appRedirect), k.register(loopbackRedirect)} {
		k.Recorder.Add("client_secret", a.secret)
		code := k.code(a, nil)
		first := k.redeem(a, code, nil)
		want(k.t, first, 200, "")
		second := k.refresh(a, first.body.RefreshToken, nil)
		want(k.t, k.refresh(a, first.body.RefreshToken, nil), 200, "")
		want(k.t, k.post("/revoke", a, url.Values{"token": {second.body.RefreshToken}}), 200, "")
		want(k.t, k.redeem(a, code, nil), 400, "invalid_grant")

		reused := k.connect(a, url.Values{"prompt": {"consent"}})
		k.refresh(a, reused.body.RefreshToken, nil)
		k.Clock.Advance(2 * time.Minute)
		want(k.t, k.refresh(a, reused.body.RefreshToken, nil), 400, "invalid_grant")

		late := k.code(a, url.Values{"prompt": {"consent"}})
		want(k.t, k.redeem(a, late, url.Values{"code_verifier": {strings.Repeat("w", 50)}}), 400, "invalid_grant")
		want(k.t, k.redeem(a, late, nil), 200, "")
		want(k.t, k.redeem(a, late, nil), 400, "invalid_grant")

		want(k.t, k.post("/revoke", a, url.Values{"token": {k.connect(a, url.Values{"prompt": {"consent"}}).body.AccessToken}}), 200, "")
		k.connect(a, url.Values{"prompt": {"consent"}})
		k.disconnectOne()
	}
}

// runWrongPlaces sends live credentials where they do not belong.
func (k *kit) runWrongPlaces() {
	k.t.Helper()
	a := k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
	first := k.connect(a, nil)
	code := k.code(a, url.Values{"prompt": {"consent"}})
	for _, secret := range []string{code, first.body.RefreshToken, first.body.AccessToken, a.secret, verifier} {
		k.Recorder.Add("secret in the wrong place", secret)
		q := url.QueryEscape(secret)
		for _, path := range []string{"/token?code=" + q, "/token?refresh_token=" + q, "/authorize?client_id=" + q, "/authorize?access_token=" + q,
			"/authorize?client_id=" + a.id + "&redirect_uri=" + q, "/authorize?response_type=" + q + "&client_id=" + a.id,
			"/return/" + q, "/" + q, "/token/" + q, "/setup?link=" + q, "/sign-in?request=" + q, "/consent?request=" + q,
			"/authorize/continue?request=" + q, "/.well-known/oauth-authorization-server?token=" + q, "/jwks.json?" + q,
			"/account/apps/" + q + "/disconnect"} {
			if _, err := k.person.Open(k.ctx, k.URL(path)); err != nil {
				k.t.Fatal(err)
			}
			k.raw("POST", path, "", nil)
		}
		for _, name := range []string{"client_id", "grant_type", "scope", "resource", "redirect_uri", "code", "refresh_token", "token", "unknown"} {
			form := changed(codeForm(a, "x"), url.Values{name: {secret}})
			k.raw("POST", "/token", form.Encode(), nil)
			k.raw("POST", "/revoke", form.Encode(), nil)
			k.raw("POST", "/token", secret, http.Header{"Content-Type": {"text/plain"}})
			k.raw("POST", "/register", `{"client_name":`+secret+`}`, http.Header{"Content-Type": {"application/json"}})
		}
		for _, header := range []string{"Bearer " + secret, "Basic " + secret, secret} {
			k.raw("POST", "/token", "grant_type=refresh_token", http.Header{"Authorization": {header}})
			k.raw("GET", "/account", "", http.Header{"Authorization": {header}, "Cookie": {"__Host-sid=" + secret}, "Referer": {"https://x.example/?" + q}})
		}
	}
}

// runOperator does what the commands do.
func (k *kit) runOperator() {
	k.t.Helper()
	must := func(err error) {
		k.t.Helper()
		if err != nil {
			k.t.Fatal(err)
		}
	}
	_, err := k.App.Accounts.Add(k.ctx, login.NewUser{Email: "ada@example.com", Name: "Ada", Password: "ada chose a password"})
	must(err)
	_, err = k.App.Accounts.SetPassword(k.ctx, "ada@example.com", "ada chose another password")
	must(err)
	for _, password := range []string{"ada chose a password", "ada chose another password"} {
		k.Recorder.Add("password", password)
	}
	_, err = k.App.Accounts.SetPassword(k.ctx, "ada@example.com", oauth.Secret("short"))
	if err == nil {
		k.t.Error("a short password was accepted")
	}
	_, err = k.App.Keys.Rotate(k.ctx, true)
	must(err)
	for _, a := range k.confidential() {
		k.Recorder.Add("client_secret", a.secret)
		k.connect(a, nil)
		for _, g := range k.live() {
			_, err = (&grant.Admin{Store: k.DB, Now: k.Clock.Now}).End(k.ctx, g.ID)
			must(err)
		}
		_, err = k.App.Clients.Remove(k.ctx, a.id)
		must(err)
	}
}
