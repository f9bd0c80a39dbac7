package authserver_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// grantTypes are all that a client may ask for, with the error that each gets at
// /token from a client that registered itself; "" for those that work (D23).
var grantTypes = map[string]string{
	"authorization_code": "",
	"refresh_token":      "",
	"client_credentials": "unauthorized_client",
	"password":           "unsupported_grant_type",
	"implicit":           "unsupported_grant_type",
	"urn:ietf:params:oauth:grant-type:device_code":    "unsupported_grant_type",
	"urn:ietf:params:oauth:grant-type:jwt-bearer":     "unsupported_grant_type",
	"urn:ietf:params:oauth:grant-type:token-exchange": "unsupported_grant_type",
	"urn:ietf:params:oauth:grant-type:saml2-bearer":   "unsupported_grant_type",
	"urn:example:unknown":                             "unsupported_grant_type",
}

// D23: of the grant types that a client names itself, only authorization_code
// and refresh_token are registered, echoed and usable, however it becomes known.
func TestD23_GrantTypesOfSelfRegisteredClients(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for name := range grantTypes {
			s.sub("D23 DCR, alone: "+name, func(*testing.T) { s.registersAlone(name) })
			s.sub("D23 DCR, beside authorization_code: "+name, func(*testing.T) { s.registersBeside(name) })
			s.sub("D23 CIMD, alone: "+name, func(*testing.T) { s.publishesAlone(name) })
			s.sub("D23 CIMD, beside authorization_code: "+name, func(*testing.T) { s.publishesBeside(name) })
		}
	})
}

// registersAlone: without authorization_code there is nothing that a client may
// have, and it is told so.
func (s *site) registersAlone(name string) {
	s.t.Helper()
	if name == registration.GrantAuthorizationCode {
		return // registersBeside
	}
	s.unchanged(func() {
		status, doc := s.registerRaw("application/json", grantMetadata(name))
		description, _ := doc["error_description"].(string)
		if status != http.StatusBadRequest || doc["error"] != "invalid_client_metadata" || !strings.Contains(description, "grant_types") {
			s.t.Errorf("%d %v, want invalid_client_metadata about grant_types", status, doc)
		}
	})
}

func grantMetadata(types ...string) map[string]any {
	return map[string]any{"client_name": "Quill", "redirect_uris": []string{loopbackRedirect}, "token_endpoint_auth_method": "none", "grant_types": types}
}

func (s *site) registersBeside(name string) {
	s.t.Helper()
	status, doc := s.registerRaw("application/json", grantMetadata(name, registration.GrantAuthorizationCode))
	if status != http.StatusCreated {
		s.t.Fatalf("%d %v", status, doc)
	}
	a := app{id: doc["client_id"].(string), method: registration.AuthNone, redirect: loopbackRedirect}
	var echoed []string
	for _, g := range doc["grant_types"].([]any) {
		echoed = append(echoed, g.(string))
	}
	wanted := []string{registration.GrantAuthorizationCode}
	if name == registration.GrantRefreshToken {
		wanted = []string{registration.GrantRefreshToken, registration.GrantAuthorizationCode}
	}
	if row := s.grantTypesOf(a); !slices.Equal(echoed, wanted) || !slices.Equal(row, wanted) {
		s.t.Errorf("echoed %q, the row has %q, want %q", echoed, row, wanted)
	}
	s.uses(a, name)
}

// publishesAlone: a document without authorization_code is no client's.
func (s *site) publishesAlone(name string) {
	s.t.Helper()
	if name == registration.GrantAuthorizationCode {
		return
	}
	a := s.publishGrants("alone", name)
	page := s.open(s.person, s.authorizeURL(a, nil))
	wantPage(s.t, page, http.StatusBadRequest)
	if !strings.Contains(page.Body, "grant_types must contain authorization_code") {
		s.t.Errorf("the app's developer is not told why: %s", page.Body)
	}
	if _, err := s.DB.GetClient(s.ctx, a.id); err == nil {
		s.t.Error("the client has a row")
	}
	status, code := http.StatusUnauthorized, "invalid_client"
	if grantTypes[name] == "unsupported_grant_type" { // which needs no client to be known
		status, code = http.StatusBadRequest, grantTypes[name]
	}
	s.denied(status, code, func() answer { return s.post("/token", a, grantRequest(name)) })
}

// publishesBeside: refresh_token is always there, for documents leave it out (A29).
func (s *site) publishesBeside(name string) {
	s.t.Helper()
	a := s.publishGrants("beside", registration.GrantAuthorizationCode, name)
	s.code(a, nil)
	if row := s.grantTypesOf(a); !slices.Equal(row, bothGrants) {
		s.t.Errorf("the row has %q, want %q", row, bothGrants)
	}
	s.uses(a, name)
}

func (s *site) publishGrants(folder string, types ...string) app {
	last := types[len(types)-1]
	return s.publish("/"+folder+"/"+last[strings.LastIndexByte(last, ':')+1:]+".json", grantMetadata(types...), loopbackRedirect)
}

func (s *site) grantTypesOf(a app) []string {
	s.t.Helper()
	c, err := s.DB.GetClient(s.ctx, a.id)
	if err != nil {
		s.t.Fatal(err)
	}
	return c.Metadata.GrantTypes
}

// uses asks /token for the grant type by name, and for the two that clients have.
func (s *site) uses(a app, name string) {
	s.t.Helper()
	first := s.connect(a, nil)
	mayRefresh := slices.Contains(s.grantTypesOf(a), registration.GrantRefreshToken)
	if (first.body.RefreshToken != "") != mayRefresh {
		s.t.Errorf("a refresh token: %v, want %v", first.body.RefreshToken != "", mayRefresh)
	}
	if mayRefresh {
		want(s.t, s.refresh(a, first.body.RefreshToken, nil), http.StatusOK, "")
	}
	if code := grantTypes[name]; code != "" {
		s.denied(http.StatusBadRequest, code, func() answer { return s.post("/token", a, grantRequest(name)) })
	}
}

// grantRequest has what each of the grant types asks for, so that nothing else
// can be the reason for a refusal.
func grantRequest(name string) url.Values {
	return values("grant_type", name, "resource", testkit.Resource, "scope", "files:read", "username", testkit.Email, "password", testkit.Password,
		"device_code", "x", "assertion", "x", "subject_token", "x", "subject_token_type", "urn:ietf:params:oauth:token-type:access_token",
		"code", "ost_ac_x", "refresh_token", "ost_rt_x")
}

// A DCR client that lists authorization_code alone holds no refresh token, and a
// genuine string of the next generation does not help it (TK-06).
func TestD23_RefreshOfAClientWithoutIt(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		status, doc := s.registerRaw("application/json", grantMetadata(registration.GrantAuthorizationCode))
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, doc)
		}
		a := app{id: doc["client_id"].(string), method: registration.AuthNone, redirect: loopbackRedirect}
		s.connect(a, nil)
		token := s.minted(s.theGrant(), 1)
		s.denied(http.StatusBadRequest, "unauthorized_client", func() answer { return s.refresh(a, token, nil) })
	})
}
