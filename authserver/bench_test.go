package authserver_test

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/authserver"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// bench is a server with one client and grants that no page made.
type bench struct {
	*testkit.Server
	client, subject string
}

// eachBench runs fn on each database, without a network in between.
func eachBench(b *testing.B, fn func(b *testing.B, s *bench)) {
	b.Helper()
	for _, database := range []struct {
		name string
		open func(testing.TB, ...testkit.DatabaseOption) *sqlstore.Store
	}{{"sqlite", testkit.OpenSQLite}, {"postgres", testkit.OpenPostgres}} {
		b.Run(database.name, func(b *testing.B) {
			// as in production: the default durability, the default pool
			s := testkit.NewServer(b, database.open(b, func(o *sqlstore.Options) { o.Synchronous, o.MaxConns = "FULL", 16 }))
			c, _, err := s.App.Clients.Add(b.Context(), registration.AddOptions{Name: "Bench", RedirectURIs: []string{appRedirect}})
			if err != nil {
				b.Fatal(err)
			}
			user, err := s.App.Accounts.Get(b.Context(), testkit.Email)
			if err != nil {
				b.Fatal(err)
			}
			fn(b, &bench{Server: s, client: c.ID, subject: user.ID})
		})
	}
}

// code makes a grant and returns its code.
func (s *bench) code(b *testing.B) string {
	b.Helper()
	raw := make([]byte, 48)
	if _, err := rand.Read(raw); err != nil {
		b.Fatal(err)
	}
	now := s.Clock.Now()
	g := grant.Grant{ID: hex.EncodeToString(raw[:16]), Salt: raw[16:], ClientID: s.client, Subject: s.subject, Resource: testkit.Resource,
		Scopes: []string{"files:read"}, OfflineAccess: true, RedirectURI: appRedirect, CodeChallenge: challenge(verifier),
		AuthTime: now, CodeExpiresAt: now.Add(time.Minute), ExpiresAt: now.Add(time.Hour), CreatedAt: now}
	if err := s.DB.CreateGrant(b.Context(), g); err != nil {
		b.Fatal(err)
	}
	return s.mint(b, g, 0)
}

func (s *bench) mint(b *testing.B, g grant.Grant, generation int) string {
	b.Helper()
	token, err := authserver.MintToken(s.App.Secrets, testkit.Issuer, g.ID, generation, g.Salt)
	if err != nil {
		b.Fatal(err)
	}
	return token.Reveal()
}

// token posts to /token and fails unless tokens come back.
func (s *bench) token(b *testing.B, form url.Values) {
	r := httptest.NewRequest(http.MethodPost, testkit.Issuer+"/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", formType)
	w := httptest.NewRecorder()
	s.App.Public().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.Fatalf("/token: %d %s", w.Code, w.Body)
	}
}

// BenchmarkCode redeems codes: one SELECT, one UPDATE, one signature.
func BenchmarkCode(b *testing.B) {
	eachBench(b, func(b *testing.B, s *bench) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			code := s.code(b)
			b.StartTimer()
			s.token(b, url.Values{"grant_type": {"authorization_code"}, "client_id": {s.client}, "code": {code},
				"redirect_uri": {appRedirect}, "code_verifier": {verifier}})
		}
	})
}

// BenchmarkRefresh rotates one grant over and over.
func BenchmarkRefresh(b *testing.B) {
	eachBench(b, func(b *testing.B, s *bench) {
		s.token(b, url.Values{"grant_type": {"authorization_code"}, "client_id": {s.client}, "code": {s.code(b)}, "code_verifier": {verifier}})
		grants, err := s.DB.ListGrants(b.Context(), grant.Filter{})
		if err != nil || len(grants) != 1 {
			b.Fatalf("%d grants, %v", len(grants), err)
		}
		generation := 1
		b.ReportAllocs()
		for b.Loop() {
			s.token(b, url.Values{"grant_type": {"refresh_token"}, "client_id": {s.client},
				"refresh_token": {s.mint(b, grants[0], generation)}})
			generation++
		}
	})
}
