package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// The rules of RFC 7592 one by one stand in package registration; here they are
// seen from outside, with grants.

// managedApp is a client that registered itself and may manage itself.
type managedApp struct {
	app
	uri, token string
}

func (k *kit) managedApp() managedApp {
	k.t.Helper()
	status, doc := k.registerRaw("application/json", map[string]any{"client_name": "Atlas", "redirect_uris": []string{appRedirect},
		"token_endpoint_auth_method": registration.AuthClientSecretPost})
	if status != http.StatusCreated || doc["registration_access_token"] == nil {
		k.t.Fatalf("register: %d %v", status, doc)
	}
	return managedApp{app: app{id: doc["client_id"].(string), secret: doc["client_secret"].(string), method: registration.AuthClientSecretPost,
		redirect: appRedirect}, uri: doc["registration_client_uri"].(string), token: doc["registration_access_token"].(string)}
}

// manage sends a request to the client's configuration endpoint.
func (k *kit) manage(method string, a managedApp, metadata any) (answer, map[string]any) {
	k.t.Helper()
	body, err := json.Marshal(metadata)
	if err != nil {
		k.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(k.ctx, method, a.uri, strings.NewReader(string(body)))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+a.token)
	got, err := k.send(req)
	if err != nil {
		k.t.Fatal(err)
	}
	var doc map[string]any
	if got.raw != "" {
		if err := json.Unmarshal([]byte(got.raw), &doc); err != nil {
			k.t.Fatal(err)
		}
	}
	return got, doc
}

func TestDR16_CodesKeepTheirRedirectURI(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.managedApp()
		kept := k.connect(a.app, nil)
		code := k.code(a.app, nil)
		const moved = "https://app.example.net/moved"
		got, _ := k.manage("PUT", a, map[string]any{"client_id": a.id, "client_name": "Atlas", "redirect_uris": []string{moved},
			"token_endpoint_auth_method": registration.AuthClientSecretPost})
		if got.status != http.StatusOK {
			t.Fatalf("update: %d %s", got.status, got.raw)
		}
		k.sub("DR-16 the code is not for the new redirect URI", func(t *testing.T) {
			want(t, k.redeem(a.app, code, url.Values{"redirect_uri": {moved}}), 400, "invalid_grant")
			want(t, k.redeem(a.app, code, nil), 200, "")
		})
		k.sub("DR-16 the grant goes on", func(t *testing.T) {
			want(t, k.refresh(a.app, kept.body.RefreshToken, nil), 200, "")
		})
		k.sub("DR-16 the old redirect URI is gone", func(t *testing.T) {
			k.stopped(k.authorizeURL(a.app, nil))
		})
	})
}

func TestRFC7592_DeleteEndsGrants(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.managedApp()
		tokens, code := k.connect(a.app, nil), k.code(a.app, nil)
		if got, _ := k.manage("DELETE", a, nil); got.status != http.StatusNoContent {
			t.Fatalf("delete: %d %s", got.status, got.raw)
		}
		// RFC 7592 §2.3: no code, refresh token or registration of it works any more
		want(t, k.refresh(a.app, tokens.body.RefreshToken, nil), 401, "invalid_client")
		want(t, k.redeem(a.app, code, nil), 401, "invalid_client")
		if got, _ := k.manage("GET", a, nil); got.status != http.StatusUnauthorized {
			t.Errorf("read after delete: %d", got.status)
		}
		if live := k.live(); len(live) != 0 {
			t.Errorf("%d live grants", len(live))
		}
	})
}

// Two processes on one database: what one replaced the other no longer takes.
func TestRFC7592_TwoProcesses(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.managedApp()
		other := &kit{Server: k.Again(t), t: t, ctx: k.ctx}
		got, doc := other.manage("PUT", a, map[string]any{"client_id": a.id, "client_name": "Atlas 2", "redirect_uris": []string{appRedirect},
			"token_endpoint_auth_method": registration.AuthClientSecretPost})
		if got.status != http.StatusOK {
			t.Fatalf("update: %d %s", got.status, got.raw)
		}
		if got, _ := k.manage("GET", a, nil); got.status != http.StatusUnauthorized {
			t.Errorf("the old token at the first process: %d", got.status)
		}
		a.token = doc["registration_access_token"].(string)
		if got, doc := k.manage("GET", a, nil); got.status != http.StatusOK || doc["client_name"] != "Atlas 2" {
			t.Errorf("the new token at the first process: %d %v", got.status, doc)
		}
	})
}

func TestA7_CORSOfTheConfigurationEndpoint(t *testing.T) {
	t.Parallel()
	k := newKit(t, testkit.OpenSQLite(t))
	a := k.managedApp()
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		req := httptest.NewRequest("OPTIONS", a.uri, nil).WithContext(k.ctx)
		req.RequestURI = ""
		req.Header.Set("Origin", "https://spa.example")
		req.Header.Set("Access-Control-Request-Method", method)
		req.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		got, err := k.send(req)
		if err != nil {
			t.Fatal(err)
		}
		if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Methods") != method || got.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("preflight of %s: %d %v", method, got.status, got.header)
		}
	}
	a.token = "wrong"
	if got, _ := k.manage("GET", a, nil); got.status != http.StatusUnauthorized || got.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("an error: %d %v", got.status, got.header)
	}
	if got := k.raw("POST", strings.TrimPrefix(a.uri, k.Config.Issuer), "", nil); got.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d, want 405", got.status)
	}
}

// DR-01: the metadata names the endpoint while somebody can register there.
func TestDR01_MetadataByPolicy(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct {
		endpoint any
		status   int
	}{
		"open":   {testkit.Issuer + "/register", http.StatusCreated},
		"token":  {testkit.Issuer + "/register", http.StatusUnauthorized},
		"closed": {nil, http.StatusUnauthorized},
	} {
		s := testkit.NewServer(t, testkit.OpenSQLite(t), func(c *config.Config) { c.Registration = mode })
		k := &kit{Server: s, t: t, ctx: t.Context()}
		if got := k.metadata()["registration_endpoint"]; got != want.endpoint {
			t.Errorf("%s: registration_endpoint = %v, want %v", mode, got, want.endpoint)
		}
		status, doc := k.registerRaw("application/json", map[string]any{"redirect_uris": []string{appRedirect}, "token_endpoint_auth_method": "none"})
		if status != want.status {
			t.Errorf("%s: %d %v, want %d", mode, status, doc, want.status)
		}
	}
}

// DR-14, A20: a client is kept while somebody is connected, through a restart,
// and removed 90 days after.
func TestDR14_A20_ClientsOfLiveGrantsStay(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		used, unused := k.register(loopbackRedirect), k.register(appRedirect)
		token := k.connect(used, nil).body.RefreshToken
		collect := func() {
			t.Helper()
			if _, err := k.DB.CollectInTurn(k.ctx, k.Clock.Now()); err != nil {
				t.Fatal(err)
			}
			if _, err := k.App.Idle.Collect(k.ctx); err != nil {
				t.Fatal(err)
			}
		}
		there := func(a app) bool {
			_, err := k.DB.GetClient(k.ctx, a.id)
			return err == nil
		}
		for range 4 { // 80 days, within the 90 of an unverified loopback client
			k.Clock.Advance(20 * 24 * time.Hour)
			collect()
			got := k.refresh(used, token, nil)
			want(t, got, 200, "")
			token = got.body.RefreshToken
		}
		k.Clock.Advance(10 * 24 * time.Hour)
		k.Server = k.Again(t)
		collect()
		if !there(used) || there(unused) {
			t.Fatalf("after 90 days: the one used is there: %t, the one not used: %t", there(used), there(unused))
		}
		k.Clock.Advance(79 * 24 * time.Hour)
		if collect(); !there(used) {
			t.Error("removed less than 90 days after the last refresh")
		}
		k.Clock.Advance(2 * 24 * time.Hour)
		if collect(); there(used) {
			t.Error("still there 91 days after the last refresh")
		}
	})
}
