package authserver_test

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

const racers = 50

// race sends the same form from many goroutines, in turn to two instances.
func race(t *testing.T, k *kit, a app, form url.Values) []answer {
	t.Helper()
	instances := []*kit{k, {Server: k.Again(t), t: t, ctx: k.ctx}}
	answers := make([]answer, racers)
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range racers {
		done.Go(func() {
			start.Wait()
			got, err := instances[i%2].tryPost("/token", a, form)
			if err != nil {
				t.Error(err)
			}
			answers[i] = got
		})
	}
	start.Done()
	done.Wait()
	return answers
}

// count returns how many answers have a status and an error code.
func count(answers []answer, status int, code string) (n int) {
	for _, a := range answers {
		if a.status == status && a.body.Error == code {
			n++
		}
	}
	return n
}

func TestCO02_ParallelRedemptions(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		code := k.code(a, nil)
		answers := race(t, k, a, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}})
		if ok, lost := count(answers, 200, ""), count(answers, 400, "invalid_grant"); ok != 1 || lost != racers-1 {
			t.Errorf("%d redeemed and %d invalid_grant, want 1 and %d", ok, lost, racers-1)
		}
		// the losers were valid second requests, which end the grant (CO-01)
		if list := k.grants(); len(list) != 1 || list[0].EndReason != grant.ReasonCodeReuse {
			t.Errorf("grants after the race: %+v", list)
		}
		if events := named(t, k, "grant.reuse_detected"); len(events) != 1 {
			t.Errorf("%d reuse events, want 1", len(events))
		}
	})
}

func TestRT02_ParallelRefreshesInsideTheWindow(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		a := k.register(loopbackRedirect)
		first := k.connect(a, nil).body.RefreshToken
		answers := race(t, k, a, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first}})
		if ok := count(answers, 200, ""); ok != racers {
			t.Errorf("%d refreshed, want all %d", ok, racers)
		}
		successors := map[string]bool{}
		for _, got := range answers {
			successors[got.body.RefreshToken] = true
		}
		if len(successors) != 1 {
			t.Errorf("%d successors, want 1", len(successors))
		}
		if list := k.live(); len(list) != 1 || list[0].Generation != 2 {
			t.Errorf("live grants: %+v, want one at generation 2", list)
		}
		// after the window one replay ends the grant
		k.Clock.Advance(61 * time.Second)
		want(t, k.refresh(a, first, nil), 400, "invalid_grant")
		if list := k.live(); len(list) != 0 {
			t.Errorf("a replay after the window left %d live grants", len(list))
		}
		for successor := range successors {
			want(t, k.refresh(a, successor, nil), 400, "invalid_grant")
		}
	})
}

func TestRT04_ParallelRefreshesWithoutWindow(t *testing.T) {
	t.Parallel()
	testkit.EachDatabase(t, func(t *testing.T, db *sqlstore.Store) {
		k := newKit(t, db, func(c *config.Config) { c.RefreshRetryWindow = 0 })
		a := k.register(loopbackRedirect)
		first := k.connect(a, nil).body.RefreshToken
		answers := race(t, k, a, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first}})
		if ok, lost := count(answers, 200, ""), count(answers, 400, "invalid_grant"); ok != 1 || lost != racers-1 {
			t.Errorf("%d refreshed and %d invalid_grant, want 1 and %d", ok, lost, racers-1)
		}
		if list := k.live(); len(list) > 1 {
			t.Errorf("%d live grants, want at most one", len(list))
		}
	})
}

func named(t *testing.T, k *kit, name string) (list []audit.Event) {
	t.Helper()
	events, err := k.DB.ListEvents(k.ctx, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Name == name {
			list = append(list, e)
		}
	}
	return list
}
