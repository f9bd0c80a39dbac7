package authserver_test

import (
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// TestSL06: while hundreds sign in at once, those beyond the queue are told to
// come back, and tokens and keys are served all the while; package login has the
// numbers of the queue.
func TestSL06_SignInsLeaveRoomForTokens(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		k := newKit(t, db, func(c *config.Config) { c.PasswordHashingAtOnce = 1 })
		a := k.register(appRedirect)
		token := k.connect(a, nil).body.RefreshToken
		people := 500
		if testkit.Race {
			people = 100
		}
		pages, crowd := make([]*testkit.Page, people), make([]*testkit.Person, people)
		for i := range people {
			crowd[i] = k.Person()
			pages[i] = k.open(crowd[i], k.URL("/sign-in"))
		}
		statuses := make([]int, people)
		var rush sync.WaitGroup
		for i := range people {
			rush.Go(func() {
				page, err := crowd[i].Submit(k.ctx, pages[i], pages[i].Form("/sign-in"),
					url.Values{"username": {testkit.Email}, "password": {testkit.Password}})
				if err != nil {
					t.Error(err)
					return
				}
				if statuses[i] = page.Status; page.Status == http.StatusServiceUnavailable && page.Header.Get("Retry-After") == "" {
					t.Error("503 without Retry-After")
				}
			})
		}
		during := make(chan struct{})
		go func() { rush.Wait(); close(during) }()
		served := 0
		for done := false; !done; {
			select {
			case <-during:
				done = true
			default:
			}
			got := k.refresh(a, token, nil)
			want(t, got, 200, "")
			token = got.body.RefreshToken
			if got := k.fetch("/jwks.json", nil); got.status != http.StatusOK {
				t.Fatalf("SL-06 jwks: %d", got.status)
			}
			served++
		}
		counts := map[int]int{}
		for _, s := range statuses {
			counts[s]++
		}
		t.Logf("while %d signed in (%v), %d refreshes and as many key sets were served", people, counts, served)
		if counts[http.StatusOK] == 0 || counts[http.StatusServiceUnavailable] == 0 || counts[http.StatusOK]+counts[http.StatusServiceUnavailable] != people {
			t.Errorf("SL-06 statuses %v, want 200 and 503 only", counts)
		}
	})
}
