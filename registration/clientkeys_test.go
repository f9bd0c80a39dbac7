package registration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/test/testkit"
)

// keyHost is a Fetcher that answers what a test says.
type keyHost struct {
	mu      sync.Mutex
	body    []byte
	status  int
	err     error
	fetches int
	gate    chan struct{} // when set, an answer waits for it,
	asked   chan struct{} // and says here that it does
}

func (h *keyHost) Get(ctx context.Context, _ string, _ netguard.GetOptions) (*netguard.Response, error) {
	h.mu.Lock()
	h.fetches++
	gate := h.gate
	h.mu.Unlock()
	if gate != nil {
		h.asked <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return &netguard.Response{Status: h.status, Body: h.body}, h.err
}

func (h *keyHost) set(body []byte, status int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body, h.status, h.err = body, status, err
}

func (h *keyHost) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fetches
}

// uriKit checks assertions of a client whose keys are at a jwks_uri.
type uriKit struct {
	*registration.Assertions
	host   *keyHost
	clock  *testkit.Clock
	client *registration.Client
	logs   *testkit.Buffer
	limit  time.Duration
}

func newURIKit(jwks []byte) *uriKit {
	k := &uriKit{host: &keyHost{body: jwks, status: 200}, clock: testkit.NewClock(), logs: &testkit.Buffer{}}
	k.client = &registration.Client{ID: "quill", Metadata: registration.ClientMetadata{
		TokenEndpointAuthMethod: registration.AuthPrivateKeyJWT, JWKSURI: "https://app.example/jwks.json"}}
	k.Assertions = &registration.Assertions{Issuer: assertionIssuer, TokenEndpoint: tokenEndpoint, Used: &usedOnce{},
		Keys: registration.NewClientKeys(registration.ClientKeysOptions{Fetcher: k.host, Now: k.clock.Now,
			Log: slog.New(slog.NewJSONHandler(k.logs, nil)),
			LimitStrangers: func(_ context.Context, host string) (time.Duration, error) {
				if host != "app.example" {
					return 0, fmt.Errorf("limit of host %q", host)
				}
				return k.limit, nil
			}})}
	return k
}

func (k *uriKit) present(t *testing.T, key *testkit.ClientKey) error {
	t.Helper()
	now := k.clock.Now()
	return present(t.Context(), k.Assertions, k.client, key.Sign(t, nil, testkit.AssertionClaims("quill", assertionIssuer, now)), now)
}

func (k *uriKit) want(t *testing.T, key *testkit.ClientKey, ok bool, fetches int) {
	t.Helper()
	err := k.present(t, key)
	if ok && err != nil || !ok && !errors.Is(err, registration.ErrAssertion) {
		t.Errorf("key %s: %v, want ok %t", key.KID, err, ok)
	}
	if got := k.host.count(); got != fetches {
		t.Errorf("key %s: %d fetches so far, want %d", key.KID, got, fetches)
	}
}

// wantAway checks that the client is told to come again, and not that it is
// unknown: it would register anew (A19).
func (k *uriKit) wantAway(t *testing.T, key *testkit.ClientKey, fetches int) {
	t.Helper()
	err := k.present(t, key)
	var oe *oauth.Error
	if !errors.As(err, &oe) || oe.HTTPStatus() != http.StatusServiceUnavailable || oe.RetryAfter <= 0 || errors.Is(err, registration.ErrAssertion) {
		t.Errorf("key %s: %v, want 503 with Retry-After", key.KID, err)
	}
	if got := k.host.count(); got != fetches {
		t.Errorf("key %s: %d fetches so far, want %d", key.KID, got, fetches)
	}
}

func TestJWKSURICache(t *testing.T) {
	t.Parallel()
	first, second := testkit.NewClientKey(t, "ES256", "first"), testkit.NewClientKey(t, "ES256", "second")
	k := newURIKit(testkit.JWKS(t, first))
	k.want(t, first, true, 1)
	k.want(t, first, true, 1) // cached

	// an unknown kid asks again, once an interval, whatever arrives
	k.want(t, second, false, 1)
	k.clock.Advance(30 * time.Second)
	k.want(t, second, false, 2)
	k.want(t, second, false, 2)
	k.host.set(testkit.JWKS(t, second), 200, nil)
	k.clock.Advance(30 * time.Second)
	k.want(t, second, true, 3)
	k.want(t, first, false, 3) // taken out of the set, it no longer works

	// a key taken out stops within five minutes
	k.host.set(testkit.JWKS(t, first), 200, nil)
	k.clock.Advance(5*time.Minute - time.Second)
	k.want(t, second, true, 3)
	k.clock.Advance(time.Second)
	k.want(t, second, false, 4)
}

func TestJWKSURIStale(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k")
	k := newURIKit(testkit.JWKS(t, key))
	k.want(t, key, true, 1)
	k.host.set(nil, 503, nil)
	k.clock.Advance(5 * time.Minute)
	k.want(t, key, true, 2) // its host is down: the last keys stay
	k.want(t, key, true, 2)
	if !strings.Contains(k.logs.String(), "client.keys_stale") {
		t.Error("nothing in the log")
	}
	k.clock.Advance(54 * time.Minute)
	k.want(t, key, true, 3)
	k.clock.Advance(time.Minute) // an hour
	k.host.set(nil, 0, netguard.ErrRefused)
	k.wantAway(t, key, 4)
	k.host.set(testkit.JWKS(t, key), 200, nil)
	k.wantAway(t, key, 4) // asked a moment ago
	k.clock.Advance(30 * time.Second)
	k.want(t, key, true, 5)
}

func TestCA11_JWKSURIAnswers(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k")
	good := testkit.JWKS(t, key)
	for name, answer := range map[string]struct {
		body   []byte
		status int
		err    error
	}{
		"redirect":        {nil, http.StatusFound, nil},
		"not found":       {good, http.StatusNotFound, nil},
		"not modified":    {nil, http.StatusNotModified, nil},
		"refused address": {nil, 0, netguard.ErrRefused},
		"too large":       {nil, 200, netguard.ErrTooLarge},
		"a page":          {[]byte("<html>"), 200, nil},
		"private keys":    {[]byte(`{"keys":[` + string(key.PrivateJWK(t)) + `]}`), 200, nil},
		"empty":           {nil, 200, nil},
	} {
		t.Run("CA-11 "+name, func(t *testing.T) {
			k := newURIKit(nil)
			k.host.set(answer.body, answer.status, answer.err)
			k.want(t, key, false, 1)
			k.want(t, key, false, 1) // a failure is remembered for a while
			k.host.set(good, 200, nil)
			k.clock.Advance(30 * time.Second)
			k.want(t, key, true, 2)
		})
	}
	for _, status := range []int{429, 500, 503} {
		t.Run(fmt.Sprintf("A19 status %d passes", status), func(t *testing.T) {
			k := newURIKit(nil)
			k.host.set(good, status, nil)
			k.wantAway(t, key, 1)
			k.wantAway(t, key, 1)
		})
	}
	t.Run("CA-11 A19 budget of the host", func(t *testing.T) {
		k := newURIKit(good)
		k.limit = time.Minute
		k.wantAway(t, key, 0)
		k.clock.Advance(30 * time.Second)
		k.client.VerifiedAt = k.clock.Now() // the operator's clients are not in it
		k.want(t, key, true, 1)
	})
	t.Run("CA-11 nothing to fetch with", func(t *testing.T) {
		k := newURIKit(good)
		k.Keys = registration.NewClientKeys(registration.ClientKeysOptions{})
		k.want(t, key, false, 0)
	})
}

// Many requests make one fetch, which goes on when the first of them hangs up.
func TestJWKSURIOneFetch(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "k")
	k := newURIKit(testkit.JWKS(t, key))
	k.host.gate, k.host.asked = make(chan struct{}), make(chan struct{}, 1)
	now := k.clock.Now()
	sign := func() string { return key.Sign(t, nil, testkit.AssertionClaims("quill", assertionIssuer, now)) }

	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- present(ctx, k.Assertions, k.client, sign(), now) }()
	<-k.host.asked
	hangUp()
	if err := <-gone; oauth.Code(err) != "temporarily_unavailable" || errors.Is(err, registration.ErrAssertion) {
		t.Errorf("A19 the one that hung up: %v", err)
	}
	const waiters = 100
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if err := present(t.Context(), k.Assertions, k.client, sign(), now); err != nil {
				t.Error(err)
			}
		})
	}
	close(k.host.gate)
	all.Wait()
	if n := k.host.count(); n != 1 {
		t.Errorf("%d fetches for %d requests, want 1", n, waiters)
	}
}

// Clients that name many URLs cannot fill the memory.
func TestJWKSURICacheIsBounded(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "EdDSA", "k")
	k := newURIKit(testkit.JWKS(t, key))
	k.want(t, key, true, 1)
	mine := k.client.Metadata.JWKSURI
	k.clock.Advance(time.Second)
	for i := range 1000 {
		k.client.Metadata.JWKSURI = fmt.Sprintf("%s?%d", mine, i)
		if err := k.present(t, key); err != nil {
			t.Fatal(err)
		}
	}
	k.client.Metadata.JWKSURI = mine
	k.want(t, key, true, 1002) // it was the oldest, and made room
	if strings.Contains(k.logs.String(), "keys_stale") {
		t.Error("something was stale")
	}
}

// A budget that is spent on strangers is no attempt: they cannot keep the keys of
// the operator's client from being fetched by naming its jwks_uri.
func TestCA11_BudgetOfStrangersIsNotTheOperatorsClients(t *testing.T) {
	t.Parallel()
	key := testkit.NewClientKey(t, "ES256", "first")
	k := newURIKit(testkit.JWKS(t, key))
	k.limit = time.Minute
	k.wantAway(t, key, 0)
	k.client.Kind = registration.KindOperator
	k.want(t, key, true, 1)
}
