package resourceserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// busy is a fixture whose issuer never answers about tokens that begin with junk.
type busy struct {
	*introspected
	strangers sync.WaitGroup
	hangUp    context.CancelFunc
	held      atomic.Int32 // at the issuer now
	most      atomic.Int32 // at the issuer at a time
}

// newBusy begins when good tokens were asked about.
func newBusy(t *testing.T, change ...func(*resourceserver.Options)) *busy {
	t.Helper()
	b := &busy{}
	release := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.PostFormValue("token"), "junk") {
			b.serve(w, r)
			return
		}
		now := b.held.Add(1)
		defer b.held.Add(-1)
		for most := b.most.Load(); now > most && !b.most.CompareAndSwap(most, now); most = b.most.Load() {
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(endpoint.Close)
	b.introspected = newIntrospected(t, append(change, func(o *resourceserver.Options) { o.Issuers[0].Introspection.Endpoint = endpoint.URL })...)
	t.Cleanup(func() {
		close(release)
		b.hangUp()
		b.strangers.Wait()
	})
	b.hangUp = func() {}
	return b
}

// flood has n strangers ask, and waits until they have what they get of the issuer.
func (b *busy) flood(t *testing.T, n int32) {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	b.hangUp = hangUp
	for i := range n {
		b.strangers.Add(1)
		go func() {
			defer b.strangers.Done()
			b.call(httptest.NewRequest(http.MethodGet, testResource, nil).WithContext(ctx), fmt.Sprintf("junk-%d", i))
		}()
	}
	eventually(t, func() bool { return b.held.Load() >= min(n, 24) }, "the strangers are not asked about")
}

// Who has the issuer asked about nonsense keeps nobody else out, were it slow.
func TestIR10_StrangersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	t.Run("IR-10 strangers who hang up hold nothing", func(t *testing.T) {
		t.Parallel()
		b := newBusy(t)
		b.flood(t, 64)
		b.hangUp()
		b.strangers.Wait()
		if w := b.get("good"); w.Code != http.StatusOK {
			t.Errorf("a token seen for the first time: status = %d, want 200: %s", w.Code, w.Body)
		}
		eventually(t, func() bool { return b.held.Load() == 0 }, "the issuer is still asked")
	})
	t.Run("IR-10 strangers who stay leave room for tokens that were active", func(t *testing.T) {
		t.Parallel()
		b := newBusy(t)
		b.get("good")
		b.advance(31 * time.Second) // the answer is too old
		b.flood(t, 64)
		if w := b.get("good"); w.Code != http.StatusOK || b.asked() != 2 {
			t.Errorf("status = %d, asked %d times; want 200 and 2: %s", w.Code, b.asked(), w.Body)
		}
		if most := b.most.Load(); most > 24 {
			t.Errorf("the issuer was asked about %d strangers' tokens at a time", most)
		}
	})
	t.Run("IR-10 strangers who stay leave room for tokens with a good signature", func(t *testing.T) {
		t.Parallel()
		b := newBusy(t, func(o *resourceserver.Options) { o.Issuers[0].Introspection.AlsoJWT = true })
		b.flood(t, 64)
		if w := b.get(b.token(t, "notes:read")); w.Code != http.StatusOK {
			t.Errorf("status = %d, want 200: %s", w.Code, w.Body)
		}
	})
	t.Run("one who hangs up takes no answer from those who wait", func(t *testing.T) {
		t.Parallel()
		n := newIntrospected(t)
		hold := make(chan struct{})
		n.set(func() { n.hold = hold })
		ctx, hangUp := context.WithCancel(t.Context())
		first, second := make(chan int), make(chan int)
		go func() {
			first <- n.call(httptest.NewRequest(http.MethodGet, testResource, nil).WithContext(ctx), "good").Code
		}()
		eventually(t, func() bool { return n.asking.Load() == 1 }, "nobody asks")
		go func() { second <- n.get("good").Code }()
		hangUp()
		if code := <-first; code != http.StatusServiceUnavailable {
			t.Errorf("who hung up: status = %d", code)
		}
		close(hold)
		if code := <-second; code != http.StatusOK {
			t.Errorf("who waits: status = %d, want 200", code)
		}
	})
}

// With AlsoJWT the issuer is asked about what passed all checks of a JWT, and about
// nothing else: an answer says nothing of typ and alg.
func TestIntrospectionOfBadJWTs(t *testing.T) {
	t.Parallel()
	n := newIntrospected(t, func(o *resourceserver.Options) { o.Issuers[0].Introspection.AlsoJWT = true })
	claims := n.issuer.claims(testResource, n.now, "notes:read")
	forged := strings.Split(n.token(t, ""), ".")
	expired := n.issuer.claims(testResource, n.now.Add(-time.Hour), "")
	for name, raw := range map[string]string{
		"JW-13 an ID token":            n.issuer.sign(t, map[string]any{"typ": "JWT", "alg": "ES256", "kid": "ec-1"}, claims),
		"JW-13 a logout token":         n.issuer.sign(t, map[string]any{"typ": "logout+jwt", "alg": "ES256", "kid": "ec-1"}, claims),
		"JW-13 no typ":                 n.issuer.sign(t, map[string]any{"alg": "ES256", "kid": "ec-1"}, claims),
		"JW-05 alg none":               n.issuer.sign(t, header("none", "ec-1"), claims),
		"JW-05 alg HS256":              n.issuer.sign(t, header("HS256", "ec-1"), claims),
		"JW-07 a key of nobody's":      n.issuer.sign(t, header("ES256", "nobody"), claims),
		"no signature":                 forged[0] + "." + forged[1] + ".AA",
		"other claims":                 forged[0] + "." + encode([]byte(mustJSON(t, claims))) + "." + forged[2],
		"JW-16 expired":                n.issuer.sign(t, header("ES256", "ec-1"), expired),
		"JW-15 for another's resource": n.issuer.sign(t, header("ES256", "ec-1"), n.issuer.claims("https://other.example/mcp", n.now, "")),
	} {
		t.Run(name, func(t *testing.T) {
			if w := n.get(raw); w.Code != http.StatusUnauthorized || n.asked() != 0 {
				t.Errorf("status = %d, the issuer was asked %d times; want 401 and never", w.Code, n.asked())
			}
		})
	}
	if w := n.get(n.token(t, "notes:read")); w.Code != http.StatusOK || n.asked() != 1 {
		t.Errorf("a good one: status = %d, asked %d times", w.Code, n.asked())
	}
}

func TestIntrospectionTokenPrefix(t *testing.T) {
	t.Parallel()
	n := newIntrospected(t, func(o *resourceserver.Options) {
		o.Issuers[0].Introspection.TokenPrefix, o.Issuers[0].Introspection.AlsoJWT = "acme_at_", true
	})
	for _, raw := range []string{"guess", "ACME_AT_x", "acme_at", "x.acme_at_"} {
		expect401(t, n.fixture, n.get(raw), "invalid_token")
	}
	if n.asked() != 0 {
		t.Errorf("the issuer was asked %d times", n.asked())
	}
	for i, raw := range []string{"acme_at_x", n.token(t, "notes:read")} {
		if w := n.get(raw); w.Code != http.StatusOK || n.asked() != i+1 {
			t.Errorf("%s: status = %d, asked %d times", raw, w.Code, n.asked())
		}
	}
}
