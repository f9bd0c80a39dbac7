package registration_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// A client that somebody approved has a budget of its own, by its client_id; only
// strangers share that of a host.
func TestCA11_BudgetsOfFetches(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k")
	var asked []string
	waits := map[string]time.Duration{}
	limit := func(kind string) func(context.Context, string) (time.Duration, error) {
		return func(_ context.Context, key string) (time.Duration, error) {
			asked = append(asked, kind+" "+key)
			return waits[kind], nil
		}
	}
	k := newURIKit(testkit.JWKS(t, key))
	k.Keys = registration.NewClientKeys(registration.ClientKeysOptions{Fetcher: k.host, Now: k.clock.Now,
		LimitStrangers: limit("host"), LimitApproved: limit("client")})
	waits["host"] = time.Minute
	k.client.Metadata.JWKSURI = "https://APP.example:443/jwks.json" // another spelling is no other budget
	k.wantAway(t, key, 0)
	k.client.LastUsedAt = k.clock.Now()
	waits["client"] = time.Minute
	k.wantAway(t, key, 0)
	waits["client"] = 0
	k.want(t, key, true, 1)
	if got, want := fmt.Sprint(asked), "[host app.example client quill client quill]"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// A stranger who names the keys of an approved client at the same time fails
// alone: neither the refusal of its budget nor its fetch is the other one's answer.
func TestCA11_StrangerAtTheSameTime(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k")
	synctest.Test(t, func(t *testing.T) {
		k := newURIKit(testkit.JWKS(t, key))
		gate := make(chan struct{})
		k.Keys = registration.NewClientKeys(registration.ClientKeysOptions{Fetcher: k.host, Now: k.clock.Now,
			LimitStrangers: func(context.Context, string) (time.Duration, error) {
				<-gate
				return time.Minute, nil
			}})
		approved := *k
		client := *k.client
		client.LastUsedAt = k.clock.Now()
		approved.client = &client
		stranger := make(chan struct{})
		go func() {
			defer close(stranger)
			_ = k.present(t, key)
		}()
		synctest.Wait() // it waits for its budget
		approved.want(t, key, true, 1)
		close(gate)
		<-stranger
		k.host.set(nil, 0, netguard.ErrRefused)
		approved.want(t, key, true, 1)
	})
}

// Strangers cannot push the keys of others out of the cache.
func TestCA11_StrangersPushOutStrangers(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "EdDSA", "k")
	k := newURIKit(testkit.JWKS(t, key))
	mine, approvedAt := k.client.Metadata.JWKSURI, k.clock.Now()
	k.client.LastUsedAt = approvedAt
	k.want(t, key, true, 1)
	k.client.LastUsedAt = time.Time{}
	k.clock.Advance(time.Second)
	for i := range 1500 {
		k.client.Metadata.JWKSURI = fmt.Sprintf("%s?%d", mine, i)
		if err := k.present(t, key); err != nil {
			t.Fatal(err)
		}
	}
	k.client.Metadata.JWKSURI, k.client.LastUsedAt = mine, approvedAt
	k.want(t, key, true, 1501)
}

// What the network does to a host passes; a name that nobody has is as good as an
// address that is refused (CI-15).
func TestA19_NetworkOfAKeyHost(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k")
	lost := fmt.Errorf("get: %w: connection reset by peer", netguard.ErrUnreachable)
	k := newURIKit(nil)
	k.host.set(nil, 0, lost)
	k.wantAway(t, key, 1)
	k.wantAway(t, key, 1) // remembered for a while
	k.host.set(testkit.JWKS(t, key), 200, nil)
	k.clock.Advance(30 * time.Second)
	k.want(t, key, true, 2)

	k = newURIKit(nil)
	k.host.set(nil, 0, &net.DNSError{Err: "no such host", Name: "app.example", IsNotFound: true})
	k.want(t, key, false, 1)
}
