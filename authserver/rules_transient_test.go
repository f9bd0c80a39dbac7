package authserver_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/sqlstore"
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
