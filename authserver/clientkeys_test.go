package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// keyMachine adds a machine client that authenticates with its key.
func (k *kit) keyMachine(o registration.AddOptions, key *testkit.ClientKey) keyApp {
	k.t.Helper()
	o.Name, o.AuthMethod, o.GrantTypes = "Nightly job", registration.AuthPrivateKeyJWT, []string{registration.GrantClientCredentials}
	o.Resources, o.Scope = []string{testkit.Resource}, "files:read files:write"
	c, secret, err := k.App.Clients.Add(k.ctx, o)
	if err != nil || secret != "" {
		k.t.Fatalf("add machine: secret %t, %v", secret != "", err)
	}
	return keyApp{app{id: c.ID, method: registration.AuthPrivateKeyJWT}, k, key}
}

// The machine of RFC 7523 §2.2: client_credentials by a key of its row or of its
// jwks_uri, with each algorithm, and nothing but the key opens it.
func TestRFC7523_ClientCredentials(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, alg := range registration.AssertionAlgorithms() {
			s.sub("D23 private_key_jwt "+alg, func(t *testing.T) {
				key := testkit.NewClientKey(t, alg, "k1")
				s.set("/"+alg+".json", json.RawMessage(testkit.JWKS(t, key)))
				for from, a := range map[string]keyApp{
					"jwks":     s.keyMachine(registration.AddOptions{JWKS: testkit.JWKS(t, key)}, key),
					"jwks_uri": s.keyMachine(registration.AddOptions{JWKSURI: s.host.URL + "/" + alg + ".json"}, key),
				} {
					s.machineByKey(from, a)
				}
			})
		}
		if n := len(s.grants()); n != 0 {
			t.Errorf("D10 %d rows of grants, but nobody approved anything", n)
		}
	})
}

// machineByKey asks with a good assertion and with each that is none.
func (s *site) machineByKey(from string, a keyApp) {
	s.t.Helper()
	proof := a.assertion(nil, map[string]any{"aud": testkit.Issuer + "/token"})
	got := s.credentials(a.app, proof)
	want(s.t, got, http.StatusOK, "")
	if got.body.RefreshToken != "" || got.body.Scope != "files:read files:write" {
		s.t.Errorf("%s: %s", from, got.raw)
	}
	if c := claims(s.t, got.body.AccessToken); c["sub"] != a.id || c["client_id"] != a.id || c["aud"] != testkit.Resource || c["grant_id"] != nil {
		s.t.Errorf("%s: D7 claims %v", from, c)
	}
	if w := call(s.t, s.mcpServer(testkit.Resource, nil), got.body.AccessToken, ""); w.Code != http.StatusOK {
		s.t.Errorf("%s: the MCP server answers %d", from, w.Code)
	}
	thief := a
	thief.key = testkit.NewClientKey(s.t, a.key.Alg, a.key.KID)
	for name, form := range map[string]url.Values{"CA-09 again": proof, "CA-08 another key": thief.prove(), "CA-01 nothing": {"client_id": {a.id}},
		"CA-08 a secret": values("client_id", a.id, "client_secret", "x"), "another audience": a.assertion(nil, map[string]any{"aud": testkit.Issuer + "/revoke"})} {
		if got := s.credentials(a.app, form); got.status != http.StatusUnauthorized || got.body.Error != "invalid_client" {
			s.t.Errorf("%s: %s: %d %s, want 401 invalid_client", from, name, got.status, got.raw)
		}
	}
	// RFC 7009 §2.2.1: its token has no row that could end
	revoked := s.post("/revoke", a.app, a.proven(url.Values{"token": {got.body.AccessToken}}))
	want(s.t, revoked, http.StatusBadRequest, "unsupported_token_type")
}

// A client of a metadata document with keys at its host: code, refresh and
// revocation, with each algorithm (the clients of other kinds stand in
// TestRFC7523_ClientAuthentication).
func TestRFC7523_ClientOfADocument(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, alg := range registration.AssertionAlgorithms() {
			s.sub("A33 private_key_jwt "+alg, func(t *testing.T) {
				key := testkit.NewClientKey(t, alg, "k1")
				name := "/" + strings.ToLower(alg)
				s.set(name+"-jwks.json", json.RawMessage(testkit.JWKS(t, key)))
				public := s.publish(name+".json", map[string]any{"token_endpoint_auth_method": registration.AuthPrivateKeyJWT,
					"jwks_uri": s.host.URL + name + "-jwks.json"}, appRedirect)
				a := keyApp{app{id: public.id, method: registration.AuthPrivateKeyJWT, redirect: appRedirect}, s.kit, key}
				code := s.code(a.app, nil)
				s.denied(http.StatusUnauthorized, "invalid_client", func() answer { return s.redeem(public, code, nil) })
				before := s.host.Requests()
				first := s.redeem(a.app, code, a.prove())
				want(t, first, http.StatusOK, "")
				second := s.refresh(a.app, first.body.RefreshToken, a.prove())
				want(t, second, http.StatusOK, "")
				want(t, s.post("/revoke", a.app, a.proven(url.Values{"token": {second.body.RefreshToken}})), http.StatusOK, "")
				want(t, s.refresh(a.app, second.body.RefreshToken, a.prove()), http.StatusBadRequest, "invalid_grant")
				if n := s.host.Requests() - before; n != 1 {
					t.Errorf("%d fetches for five requests, want the keys once", n)
				}
			})
		}
	})
}
