package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// documents is a client's web server: a document at every path that has one.
type documents struct {
	mu   sync.Mutex
	docs map[string]any
}

func (d *documents) set(path string, doc any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.docs[path] = doc
}

func (d *documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	doc, ok := d.docs[r.URL.Path]
	d.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_ = json.NewEncoder(w).Encode(doc)
}

// site is a kit with a client's host.
type site struct {
	*kit
	*documents
	host *testkit.HTTPSHost
}

func eachSite(t *testing.T, fn func(t *testing.T, s *site), opts ...testkit.ServerOption) {
	t.Helper()
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		s := &site{documents: &documents{docs: map[string]any{}}}
		s.host = testkit.NewHTTPSHost(t, s.documents)
		server := testkit.NewServerWithHosts(t, db, []*testkit.HTTPSHost{s.host}, opts...)
		s.kit = &kit{Server: server, t: t, ctx: t.Context(), person: server.Person()}
		fn(t, s)
	})
}

// publish puts a document at a path and returns its client.
func (s *site) publish(path string, more map[string]any, redirects ...string) app {
	id := s.host.URL + path
	doc := map[string]any{"client_id": id, "client_name": "Quill", "redirect_uris": redirects, "token_endpoint_auth_method": "none"}
	for name, v := range more {
		doc[name] = v
	}
	s.set(path, doc)
	return app{id: id, method: registration.AuthNone, redirect: redirects[0]}
}

// A33: the document is read at /authorize and nowhere else; all of a client's
// later life is its row.
func TestA33_ClientDocument(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		if doc := s.document(s.URL("/.well-known/oauth-authorization-server")); doc["client_id_metadata_document_supported"] != true {
			t.Errorf("A5 the metadata says %v", doc["client_id_metadata_document_supported"])
		}
		a := s.publish("/client.json", nil, loopbackRedirect)
		first := s.connect(a, nil)
		if got := claims(t, first.body.AccessToken)["client_id"]; got != a.id {
			t.Errorf("client_id of the token %v", got)
		}
		if n := s.host.Requests(); n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
		s.Clock.Advance(26 * time.Hour)
		second := s.refresh(a, first.body.RefreshToken, nil)
		want(t, second, http.StatusOK, "")
		if n := s.host.Requests(); n != 1 {
			t.Errorf("A33 refresh fetched: %d", n)
		}
		s.sub("A37 another installation is another grant", func(t *testing.T) {
			other := a
			other.redirect = "http://127.0.0.1:5123/cb"
			s.connect(other, nil)
			want(t, s.refresh(a, second.body.RefreshToken, nil), http.StatusOK, "")
		})
		s.sub("RU-01 RU-09 only the redirects of the document", func(t *testing.T) {
			for _, redirect := range []string{"http://localhost/cb", loopbackRedirect + "/x", appRedirect} {
				s.stopped(s.authorizeURL(a, url.Values{"redirect_uri": {redirect}}))
			}
		})
		s.sub("CI-18 CI-22 whoever can listen on this computer is asked about each time", func(t *testing.T) {
			s.toConsent(s.person, s.authorizeURL(a, nil))
		})
		s.sub("CA-13 a document has no secret", func(t *testing.T) {
			want(t, s.redeem(app{id: a.id, secret: "secret", method: registration.AuthClientSecretPost, redirect: a.redirect}, s.code(a, nil), nil), http.StatusUnauthorized, "invalid_client")
		})
		s.sub("A17 the probe of x/oauth2: Basic with the URL and no password", func(t *testing.T) {
			probe := app{id: url.QueryEscape(a.id), method: registration.AuthClientSecretBasic, redirect: a.redirect}
			want(t, s.redeem(probe, s.code(a, nil), nil), http.StatusOK, "")
		})
		s.sub("CA-14 nobody's URL at /token is not fetched", func(t *testing.T) {
			never, before := s.publish("/never.json", nil, loopbackRedirect), s.host.Requests()
			want(t, s.redeem(never, "ost_ac_x", nil), http.StatusUnauthorized, "invalid_client")
			if n := s.host.Requests(); n != before {
				t.Errorf("%d fetches", n-before)
			}
		})
	})
}

// A33, D8: ChatGPT's document prefers its key and offers none too. Either works,
// and the one that redeemed the code binds the grant.
func TestA33_PrefersItsKeyAndOffersNone(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		key := testkit.NewClientKey(t, "RS256", "k1")
		var jwks any
		if err := json.Unmarshal(testkit.JWKS(t, key), &jwks); err != nil {
			t.Fatal(err)
		}
		s.set("/jwks.json", jwks)
		public := s.publish("/client.json", map[string]any{"token_endpoint_auth_method": "private_key_jwt",
			"token_endpoint_auth_methods_supported": []string{"none", "private_key_jwt"}, "token_endpoint_auth_signing_alg": "RS256",
			"jwks_uri": s.host.URL + "/jwks.json"}, appRedirect)
		keyed := keyApp{app{id: public.id, method: registration.AuthPrivateKeyJWT, redirect: appRedirect}, s.kit, key}

		strong := s.redeem(keyed.app, s.code(public, nil), keyed.prove())
		want(t, strong, http.StatusOK, "")
		if got := s.refresh(public, strong.body.RefreshToken, nil); got.status == http.StatusOK {
			t.Error("D8 a grant of the key is refreshed without it")
		}
		want(t, s.refresh(keyed.app, strong.body.RefreshToken, keyed.prove()), http.StatusOK, "")

		weak := s.connect(public, nil)
		want(t, s.refresh(public, weak.body.RefreshToken, nil), http.StatusOK, "")
	})
}

// Each stop says what to do, sends nobody anywhere, and has its own words only
// where they tell nothing about our network (CI-15).
func TestCI_Stops(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		stop := func(id string, status int, heading string) {
			t.Helper()
			page := s.open(s.person, s.authorizeURL(app{id: id, redirect: loopbackRedirect}, nil))
			if page.Status != status || page.Heading != heading || page.Leaves != nil || len(page.Forms) > 1 {
				t.Errorf("%s: %d %q, want %d %q", id, page.Status, page.Heading, status, heading)
			}
		}
		const unread, odd = "We can’t identify this app", "This app’s details don’t add up"
		s.set("/other.json", map[string]any{"client_id": "https://claude.ai/x", "redirect_uris": []string{loopbackRedirect}})
		s.sub("CI-01 no client URL", func(*testing.T) { stop(s.host.URL+"/a/../b", http.StatusBadRequest, unread) })
		s.sub("CI-07 404", func(*testing.T) { stop(s.host.URL+"/gone.json", http.StatusServiceUnavailable, unread) })
		s.sub("CI-11 an address instead of a name", func(*testing.T) { stop("https://127.0.0.1/client.json", http.StatusServiceUnavailable, unread) })
		s.sub("CI-13 our own host", func(*testing.T) { stop(testkit.Issuer+"/client.json", http.StatusServiceUnavailable, unread) })
		s.sub("another client's document", func(*testing.T) { stop(s.host.URL+"/other.json", http.StatusBadRequest, odd) })
		s.sub("CI-19 a host that is not accepted", func(*testing.T) {
			stop("https://claude.ai.evil.example/x", http.StatusForbidden, "id.example.com does not allow this app")
		})
		a := s.publish("/client.json", nil, loopbackRedirect)
		s.connect(a, nil)
		c, err := s.DB.GetClient(s.ctx, a.id)
		if err != nil {
			t.Fatal(err)
		}
		c.BlockedAt = s.Clock.Now()
		if err := s.DB.UpdateClient(s.ctx, c); err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(48 * time.Hour)
		before := s.host.Requests()
		stop(a.id, http.StatusBadRequest, "id.example.com does not allow this app")
		if n := s.host.Requests(); n != before {
			t.Errorf("a blocked client's document was read: %d", n-before)
		}
	}, func(c *config.Config) { c.CIMDPolicy = []string{"*.evil.example=deny"} })
}

// The operator may look at each app first.
func TestCIMDPolicyAsk(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		a := s.publish("/client.json", nil, loopbackRedirect)
		if page := s.open(s.person, s.authorizeURL(a, nil)); page.Status != http.StatusForbidden || page.Heading != "This app is waiting for approval" {
			t.Errorf("%d %q", page.Status, page.Heading)
		}
		c, err := s.DB.GetClient(s.ctx, a.id)
		if err != nil {
			t.Fatal(err)
		}
		c.VerifiedAt = s.Clock.Now()
		if err := s.DB.UpdateClient(s.ctx, c); err != nil {
			t.Fatal(err)
		}
		s.connect(a, nil)
	}, func(c *config.Config) { c.CIMDPolicy = []string{"*=ask"} })
}

func TestCIMDOff(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		if _, ok := s.document(s.URL("/.well-known/oauth-authorization-server"))["client_id_metadata_document_supported"]; ok {
			t.Error("the metadata promises documents")
		}
		s.stopped(s.authorizeURL(s.publish("/client.json", nil, loopbackRedirect), nil))
		if n := s.host.Requests(); n != 0 {
			t.Errorf("%d fetches", n)
		}
	}, func(c *config.Config) { c.CIMD = "off" })
}
