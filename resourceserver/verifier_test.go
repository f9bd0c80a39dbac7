package resourceserver_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// What is remembered must not outlive what it rests on.
func TestTokenCache(t *testing.T) {
	t.Parallel()
	t.Run("JW-16 not beyond exp", func(t *testing.T) {
		f := newFixture(t)
		token := f.token(t, "notes:read") // 10 minutes
		f.get(token)
		f.advance(10*time.Minute - time.Second)
		if w := f.get(token); w.Code != http.StatusOK {
			t.Errorf("before exp: status = %d", w.Code)
		}
		f.advance(time.Second)
		if w := f.get(token); w.Code != http.StatusUnauthorized {
			t.Errorf("at exp: status = %d, want 401", w.Code)
		}
	})
	t.Run("JW-16 as long as the skew allows", func(t *testing.T) {
		f := newFixture(t, func(o *resourceserver.Options) { o.ClockSkew = 30 * time.Second })
		token := f.token(t, "notes:read")
		for _, tt := range []struct {
			after time.Duration
			want  int
		}{{0, 200}, {10*time.Minute + 29*time.Second, 200}, {time.Second, 401}} {
			f.advance(tt.after)
			if w := f.get(token); w.Code != tt.want {
				t.Errorf("%s later: status = %d, want %d", tt.after, w.Code, tt.want)
			}
		}
	})
	t.Run("JW-08 another signature on the same claims", func(t *testing.T) {
		f := newFixture(t)
		token := f.token(t, "notes:read")
		f.get(token)
		f.served = nil
		cut := strings.LastIndex(token, ".") + 1
		expect401(t, f, f.get(token[:cut]+encode(make([]byte, 64))), "invalid_token")
	})
	t.Run("a refusal is not remembered", func(t *testing.T) {
		f := newFixture(t)
		c := f.issuer.claims(testResource, f.now, "notes:read")
		c["nbf"] = f.now.Add(time.Minute).Unix()
		token := f.issuer.sign(t, header("ES256", "ec-1"), c)
		expect401(t, f, f.get(token), "invalid_token")
		f.advance(time.Minute)
		if w := f.get(token); w.Code != http.StatusOK {
			t.Errorf("status = %d once it is valid: %s", w.Code, w.Body)
		}
	})
	t.Run("M8 not beyond the limit of the keys", func(t *testing.T) {
		f := newFixture(t, func(o *resourceserver.Options) { o.KeyLimit = 8 * time.Minute })
		token := f.token(t, "notes:read")
		f.get(token)
		f.issuer.set(func(i *issuer) { i.status = 500 })
		f.advance(7 * time.Minute)
		if w := f.get(token); w.Code != http.StatusOK {
			t.Errorf("during the outage: status = %d", w.Code)
		}
		f.advance(time.Minute)
		if w := f.get(token); w.Code != http.StatusServiceUnavailable {
			t.Errorf("after the limit: status = %d, want 503", w.Code)
		}
	})
}

// MM-04: a key that is removed stops its tokens, remembered or not, by KeyRefresh
// after the last fetch and one more fetch; one that stays goes on.
func TestMM04_RemovedKeyStopsRememberedTokens(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"remembered": 100, "not remembered": -1} {
		t.Run("MM-04 "+name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(o *resourceserver.Options) { o.TokenCache = size })
			f.issuer.addECKey(t, "ec-2")
			removed := f.token(t, "notes:read")
			stays := f.issuer.sign(t, header("ES256", "ec-2"), f.issuer.claims(testResource, f.clock(), "notes:read"))
			for _, token := range []string{removed, stays} {
				if w := f.get(token); w.Code != http.StatusOK {
					t.Fatalf("status = %d: %s", w.Code, w.Body)
				}
			}
			f.issuer.set(func(i *issuer) { i.keys = i.keys[1:] })
			f.advance(5*time.Minute - time.Second)
			if w := f.get(removed); w.Code != http.StatusOK || f.issuer.fetched() != 1 {
				t.Errorf("before KeyRefresh: status = %d, %d fetches", w.Code, f.issuer.fetched())
			}
			f.advance(time.Second)
			f.get(stays) // begins the fetch, and waits for nothing
			eventually(t, func() bool { return f.get(removed).Code == http.StatusUnauthorized },
				"the token of a removed key is still accepted")
			if w := f.get(stays); w.Code != http.StatusOK || f.issuer.fetched() != 2 {
				t.Errorf("the other key's token: status = %d, %d fetches; want 200 and 2", w.Code, f.issuer.fetched())
			}
		})
	}
	t.Run("MM-04 another key under the same kid", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		token := f.token(t, "notes:read")
		f.get(token)
		impostor := newIssuer(t)
		f.issuer.set(func(i *issuer) { i.keys = impostor.keys })
		f.advance(5 * time.Minute)
		eventually(t, func() bool { return f.get(token).Code == http.StatusUnauthorized },
			"the token of a replaced key is still accepted")
	})
}

// JW-26: many people at once, each with the token of their own.
func TestJW26_IdentitiesNeverCross(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) { o.TokenCache = 20 }) // fewer than people
	type caller struct{}
	f.handler = f.server.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		token, _ := resourceserver.TokenFromContext(r.Context())
		if want := r.Context().Value(caller{}); token.Subject != want {
			t.Errorf("the request of %v has the token of %s", want, token.Subject)
		}
	}))
	var wg sync.WaitGroup
	for i := range 50 {
		c := f.issuer.claims(testResource, f.now, "notes:read")
		c["sub"] = "u_" + strconv.Itoa(i)
		token := f.issuer.sign(t, header("ES256", "ec-1"), c)
		wg.Go(func() {
			for range 20 {
				r, w := request(token)
				f.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), caller{}, c["sub"])))
			}
		})
	}
	wg.Wait()
}

// A remembered token costs at most two allocations on top of an empty handler. It
// does not run beside other tests, which allocate too.
func TestRememberedTokenAllocations(t *testing.T) {
	f := newFixture(t)
	h := f.server.Protect(nothing)
	r, w := request(f.token(t, "notes:read"))
	authorization := r.Header["Authorization"]
	if n := testing.AllocsPerRun(200, func() {
		clear(w.header)
		r.Header["Authorization"] = authorization // Protect takes it off
		h.ServeHTTP(w, r)
	}); n > 2 {
		t.Errorf("%v allocations, want at most 2", n)
	}
	if _, refused := w.header["Www-Authenticate"]; refused {
		t.Error("the request was refused")
	}
}
