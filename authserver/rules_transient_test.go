package authserver_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestA19: invalid_client makes clients throw their registration away, so what
// passes by itself is never told so. The keys of this client are away for a
// while, and neither its code nor its assertion is spent by it (A18, A21).
func TestA19_KeysThatAreAway(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		key := testkit.NewClientKey(t, "ES256", "k1")
		jwks := testkit.JWKS(t, key)
		var status atomic.Int64
		host := testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(int(status.Load()))
			_, _ = w.Write(jwks)
		}))
		server := testkit.NewServerWithHosts(t, db, []*testkit.HTTPSHost{host})
		k := &kit{Server: server, t: t, ctx: t.Context(), person: server.Person()}
		for _, away := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInternalServerError} {
			k.sub("A19 "+http.StatusText(away), func(t *testing.T) {
				status.Store(int64(away))
				a := keyApp{k.registerKeys(`"jwks_uri":"` + host.URL + "/" + http.StatusText(away)[:3] + `"`), k, key}
				code, proof := k.code(a.app, nil), a.prove()
				got := k.denied(http.StatusServiceUnavailable, "temporarily_unavailable", func() answer { return k.redeem(a.app, code, proof) })
				if got.header.Get("Retry-After") == "" {
					t.Error("503 without Retry-After")
				}
				status.Store(http.StatusOK)
				k.Clock.Advance(30 * time.Second)
				want(t, k.redeem(a.app, code, proof), http.StatusOK, "")
			})
		}
	})
}

// TestA36: a host that does not answer holds nobody up: when the request's time is
// over the client is told to come again, and its code is still good.
func TestA36_KeysThatDoNotCome(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		key := testkit.NewClientKey(t, "ES256", "k1")
		jwks, answer := testkit.JWKS(t, key), make(chan struct{})
		host := testkit.NewHTTPSHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-answer:
				_, _ = w.Write(jwks)
			case <-r.Context().Done():
			}
		}))
		server := testkit.NewServerWithHosts(t, db, []*testkit.HTTPSHost{host})
		k := &kit{Server: server, t: t, ctx: t.Context(), person: server.Person()}
		a := keyApp{k.registerKeys(`"jwks_uri":"` + host.URL + `/keys"`), k, key}
		code, proof := k.code(a.app, nil), a.prove()
		hurried := *k
		var cancel context.CancelFunc
		hurried.ctx, cancel = context.WithTimeout(k.ctx, 200*time.Millisecond) // for the 8 s of package endpoint
		defer cancel()
		k.changesOnly(func() {
			got := hurried.redeem(a.app, code, proof)
			want(t, got, http.StatusServiceUnavailable, "temporarily_unavailable")
			if got.header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
		})
		close(answer)
		want(t, k.redeem(a.app, code, proof), http.StatusOK, "")
	})
}

// TestA21: a request that the database has no time for is told to come again at
// every endpoint: never that something is wrong with it, and never a bare 500.
func TestA21_NoTimeLeft(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a, basic := k.register(appRedirect), k.operatorApp(registration.AuthClientSecretBasic, appRedirect)
		machine := k.machine(registration.AuthClientSecretPost, "files:read", testkit.Resource)
		tokens, code := k.connect(a, nil), k.code(a, nil)
		basicCode := k.code(basic, nil)
		late := *k
		var cancel context.CancelFunc
		late.ctx, cancel = context.WithDeadline(k.ctx, time.Now().Add(-time.Second))
		defer cancel()
		for name, ask := range map[string]func() answer{
			"code":               func() answer { return late.redeem(a, code, nil) },
			"code, with Basic":   func() answer { return late.redeem(basic, basicCode, nil) },
			"refresh":            func() answer { return late.refresh(a, tokens.body.RefreshToken, nil) },
			"unknown client":     func() answer { return late.refresh(app{id: "nobody", method: registration.AuthNone}, "x", nil) },
			"client_credentials": func() answer { return late.credentials(machine, nil) },
			"revocation":         func() answer { return late.post("/revoke", a, values("token", tokens.body.RefreshToken)) },
			"registration": func() answer {
				return late.raw("POST", "/register", `{"redirect_uris":["`+appRedirect+`"]}`, http.Header{"Content-Type": {"application/json"}})
			},
		} {
			k.sub("A21 "+name, func(t *testing.T) {
				late.t = t
				k.changesOnly(func() { wantUnavailable(t, ask()) })
			})
		}
		k.sub("A21 a person", func(t *testing.T) {
			page, err := k.person.Open(late.ctx, k.authorizeURL(a, nil))
			if err != nil || page.Status != http.StatusServiceUnavailable || page.Header.Get("Retry-After") == "" || page.Leaves != nil {
				t.Errorf("%+v, %v; want a page with 503", page, err)
			}
		})
		want(t, k.redeem(a, code, nil), http.StatusOK, "")
		want(t, k.redeem(basic, basicCode, nil), http.StatusOK, "")
		want(t, k.refresh(a, tokens.body.RefreshToken, nil), http.StatusOK, "")
	})
}
