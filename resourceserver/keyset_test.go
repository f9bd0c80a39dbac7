package resourceserver_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

func TestJW11_UnknownKids(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := f.token(t, "notes:read")
	if w := f.get(good); w.Code != http.StatusOK {
		t.Fatalf("status = %d: %s", w.Code, w.Body)
	}
	f.advance(time.Minute)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				bad := f.issuer.sign(t, header("ES256", strconv.Itoa(i)+"-"+strconv.Itoa(j)),
					f.issuer.claims(testResource, f.clock(), "notes:read"))
				if w := f.get(bad); w.Code != http.StatusUnauthorized {
					t.Errorf("status = %d, want 401", w.Code)
				}
			}
		})
	}
	wg.Wait()
	if n := f.issuer.fetched(); n != 2 {
		t.Errorf("keys were fetched %d times, want 2: at first and once in the interval", n)
	}
	if w := f.get(good); w.Code != http.StatusOK {
		t.Errorf("a valid token afterwards: status = %d", w.Code)
	}
}

// What the endpoint of the keys sees while 10,000 tokens of unknown keys arrive,
// and what happens to valid tokens meanwhile: whatever state the endpoint is in, at
// most one request in each interval (30 seconds), and no valid token refused.
func TestJW11_TenThousandUnknownKids(t *testing.T) {
	t.Parallel()
	const tokens, rounds = 10_000, 10
	for _, tt := range []struct {
		name    string
		make    func(*issuer)
		unknown int // the answer to an unknown kid
	}{
		{"poisoned alone", func(*issuer) {}, http.StatusUnauthorized},
		{"poisoned and down", func(i *issuer) { i.status = 500 }, http.StatusServiceUnavailable},
		{"poisoned and rotating", func(i *issuer) { i.rotating = true }, http.StatusUnauthorized},
	} {
		t.Run("JW-11 M8 "+tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.issuer.addECKey(t, "ec-2")
			good := []string{f.token(t, "notes:read"),
				f.issuer.sign(t, header("ES256", "ec-2"), f.issuer.claims(testResource, f.clock(), "notes:read"))}
			f.get(good[0])
			f.issuer.set(tt.make)
			served := 0
			for round := range rounds {
				f.advance(30 * time.Second)
				before := f.issuer.fetched()
				for i := range tokens / rounds {
					bad := f.issuer.unknownKey(t, "unknown-"+strconv.Itoa(round*tokens+i), f.clock())
					if w := f.get(bad); w.Code != tt.unknown {
						t.Fatalf("an unknown kid: status = %d, want %d: %s", w.Code, tt.unknown, w.Body)
					}
					if i%100 == 0 {
						if w := f.get(good[i/100%2]); w.Code != http.StatusOK {
							t.Fatalf("a valid token: status = %d: %s", w.Code, w.Body)
						}
						served++
					}
				}
				if n := f.issuer.fetched() - before; n > 1 {
					t.Fatalf("%d requests in one interval", n)
				}
			}
			t.Logf("%d tokens of unknown keys, %d valid ones served, %d requests in %d intervals",
				tokens, served, f.issuer.fetched()-1, rounds)
		})
	}
}

// JW-11: a slow endpoint is asked by one request at a time, however many tokens of
// unknown keys wait for it, and those of known keys do not wait.
func TestJW11_SlowEndpoint(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := f.token(t, "notes:read")
	f.get(good)
	f.advance(time.Minute)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	f.issuer.set(func(i *issuer) { i.hold = hold })
	unknown := make(chan int)
	for i := range 100 {
		go func() { unknown <- f.get(f.issuer.unknownKey(t, "unknown-"+strconv.Itoa(i), f.clock())).Code }()
	}
	eventually(t, func() bool { return f.issuer.fetched() == 2 }, "nobody asks for the keys")
	for range 100 {
		if w := f.get(good); w.Code != http.StatusOK {
			t.Fatalf("a valid token: status = %d", w.Code)
		}
	}
	release()
	for range 100 {
		if code := <-unknown; code != http.StatusUnauthorized {
			t.Errorf("an unknown kid: status = %d, want 401", code)
		}
	}
	if n := f.issuer.fetched(); n != 2 {
		t.Errorf("%d requests, want one at first and one for all unknown kids", n)
	}
}

func TestMM04_Rotation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.token(t, "notes:read")
	if w := f.get(old); w.Code != http.StatusOK {
		t.Fatalf("status = %d: %s", w.Code, w.Body)
	}
	f.issuer.addECKey(t, "ec-2")
	f.advance(time.Minute)
	fresh := f.issuer.sign(t, header("ES256", "ec-2"), f.issuer.claims(testResource, f.clock(), "notes:read"))
	if w := f.get(fresh); w.Code != http.StatusOK {
		t.Errorf("MM-04 token of a key published since: status = %d: %s", w.Code, w.Body)
	}
	if w := f.get(old); w.Code != http.StatusOK {
		t.Errorf("MM-04 token of the old key, still published: status = %d", w.Code)
	}
	f.issuer.set(func(i *issuer) { i.keys = i.keys[1:] })
	f.advance(6 * time.Minute)
	f.get(fresh) // stale: starts a fetch
	eventually(t, func() bool { return f.get(old).Code == http.StatusUnauthorized },
		"MM-04 token of a removed key is still accepted")
}

func TestM8_Outage(t *testing.T) {
	t.Parallel()
	broken := map[string]func(*issuer){
		"status 500":  func(i *issuer) { i.status = 500 },
		"not JSON":    func(i *issuer) { i.body = "<html>" },
		"redirect":    func(i *issuer) { i.redirect = "/jwks2" },
		"10 MiB":      func(i *issuer) { i.body = `{"keys":[],"x":"` + string(make([]byte, 10<<20)) + `"}` },
		"empty set":   func(i *issuer) { i.body = `{"keys":[]}` },
		"oct key":     func(i *issuer) { i.body = `{"keys":[{"kty":"oct","k":"AAAA","kid":"ec-1"}]}` },
		"private key": func(i *issuer) { i.body = `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","d":"AA"}]}` },
		"http":        func(i *issuer) { i.jwksURI = "http://login.example.com/jwks" },
		"userinfo":    func(i *issuer) { i.jwksURI = "https://a@login.example.com/jwks" },
		"nothing":     func(i *issuer) { i.jwksURI = "/jwks" },
		"issuer":      func(i *issuer) { i.claimed = "https://evil.example" },
		"upload":      func(i *issuer) { i.uploaded = true },
	}
	for name, breakIt := range broken {
		t.Run("M8 JW-22 from the start: "+name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.issuer.set(breakIt)
			w := f.get(f.token(t, "notes:read"))
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Header().Get("WWW-Authenticate") != "" {
				t.Errorf("status = %d, header %v, want 503 with Retry-After and no challenge", w.Code, w.Header())
			}
		})
		t.Run("M8 JW-22 later: "+name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(o *resourceserver.Options) { o.KeyLimit = time.Hour })
			f.get(f.token(t, "notes:read"))
			f.issuer.set(breakIt)
			for range 6 { // the last good keys are kept ...
				f.advance(9 * time.Minute)
				if w := f.get(f.token(t, "notes:read")); w.Code != http.StatusOK {
					t.Fatalf("status = %d during the outage: %s", w.Code, w.Body)
				}
			}
			f.advance(10 * time.Minute) // ... to a limit
			if w := f.get(f.token(t, "notes:read")); w.Code != http.StatusServiceUnavailable {
				t.Errorf("status = %d after the limit, want 503", w.Code)
			}
		})
	}
}

// Who is refused is told when the keys will be asked for again, not before.
func TestM8_RetryAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) { o.KeyRetry = 90 * time.Second })
	f.issuer.set(func(i *issuer) { i.status = 500 })
	token := f.token(t, "notes:read")
	for _, tt := range []struct {
		advance time.Duration
		want    string
	}{
		{0, "90"}, {20500 * time.Millisecond, "70"}, {69 * time.Second, "1"}, // 0.5 s are left
		{500 * time.Millisecond, "90"}, // fetched again
	} {
		f.advance(tt.advance)
		if w := f.get(token); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != tt.want {
			t.Errorf("%s later: %d, Retry-After %q, want %s", tt.advance, w.Code, w.Header().Get("Retry-After"), tt.want)
		}
	}
	f.issuer.set(func(i *issuer) { i.status = 0 })
	f.advance(90 * time.Second)
	if w := f.get(token); w.Code != http.StatusOK {
		t.Errorf("%d when the time was over and the issuer was back", w.Code)
	}
}

func TestM8_SlowIssuerDelaysNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get(f.token(t, "notes:read"))
	hold := make(chan struct{})
	defer close(hold)
	f.issuer.set(func(i *issuer) { i.hold = hold })
	f.advance(6 * time.Minute)
	done := make(chan int)
	go func() { done <- f.get(f.token(t, "notes:read")).Code }()
	select {
	case code := <-done:
		if code != http.StatusOK {
			t.Errorf("status = %d, want 200 from the cached keys", code)
		}
	case <-time.After(5 * time.Second):
		t.Error("a valid token waits for the issuer's keys though its key is cached")
	}
}

// A set that lists a key twice is odd, and not ambiguous; two keys under one kid are.
func TestKeyListedTwice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		second func(t *testing.T, i *issuer) map[string]any
		want   int
	}{
		{"the same", func(_ *testing.T, i *issuer) map[string]any { return i.keys[0] }, http.StatusOK},
		{"JW-07 another under its kid", func(t *testing.T, _ *issuer) map[string]any { return newIssuer(t).keys[0] }, http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			second := tt.second(t, f.issuer)
			f.issuer.set(func(i *issuer) { i.keys = append(i.keys, second) })
			for range 2 { // and when the set is fetched again
				if w := f.get(f.token(t, "notes:read")); w.Code != tt.want {
					t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
				}
				f.advance(6 * time.Minute)
			}
		})
	}
}

func TestDiscoveryFallsBackToOpenID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keys := f.issuer
	mux := http.NewServeMux()
	var base string
	mux.HandleFunc("GET /tenant/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"issuer":"` + base + `/tenant","jwks_uri":"` + keys.URL + `/jwks"}`))
	})
	oidc := httptest.NewServer(mux)
	defer oidc.Close()
	base = oidc.URL
	s, err := resourceserver.New(resourceserver.Options{Issuer: base + "/tenant", Resource: testResource, Now: f.clock})
	if err != nil {
		t.Fatal(err)
	}
	f.handler = s.Protect(http.NotFoundHandler())
	c := keys.claims(testResource, f.now, "")
	c["iss"] = base + "/tenant"
	if w := f.get(keys.sign(t, header("ES256", "ec-1"), c)); w.Code != http.StatusNotFound {
		t.Errorf("status = %d, want the handler's 404: %s", w.Code, w.Body)
	}
}

func eventually(t *testing.T, ok func() bool, message string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal(message)
		}
	}
}
