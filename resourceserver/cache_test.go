package resourceserver

import (
	"crypto/sha256"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	c := newCache[int](1000)
	for i := range 20_000 {
		c.put(named(strconv.Itoa(i)), i, now.Add(time.Hour), now)
	}
	if n := count(c); n > 1000*6/5 || n < 1000 {
		t.Errorf("%d entries, want 1000 and not many more", n)
	}
	wrong := 0
	for i := range 20_000 {
		if v, ok := c.get(named(strconv.Itoa(i)), now); ok && v != i {
			wrong++
		}
	}
	if wrong != 0 {
		t.Errorf("%d entries have another one's value", wrong)
	}
}

// named is any digest that belongs to s alone.
func named(s string) digest { return sha256.Sum256([]byte(s)) }

func count[V any](c *cache[V]) int {
	n := 0
	for i := range c.shards {
		n += len(c.shards[i].entries)
	}
	return n
}

func TestCacheTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	c := newCache[string](shards) // one entry in each shard
	d := named("a")
	c.put(d, "past", now, now)
	if _, ok := c.get(d, now); ok {
		t.Error("a value whose time is over was remembered")
	}
	c.put(d, "far", time.Unix(1<<40, 0), now) // beyond what nanoseconds can say
	if v, ok := c.get(d, now.Add(time.Hour)); !ok || v != "far" {
		t.Errorf("get = %q, %v", v, ok)
	}
	c.put(d, "near", now.Add(time.Second), now)
	if v, ok := c.get(d, now.Add(999*time.Millisecond)); !ok || v != "near" {
		t.Errorf("get = %q, %v", v, ok)
	}
	if _, ok := c.get(d, now.Add(time.Second)); ok {
		t.Error("a value outlived its time")
	}
	c.drop(d)
	if _, ok := c.get(d, now); ok {
		t.Error("a value was dropped and is there")
	}
}

// A full cache forgets what is over before what is not.
func TestCachePrefersLiveEntries(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	c := newCache[int](shards * 4)
	for i := range 10_000 { // dead by the time the others come
		c.put(named("dead"+strconv.Itoa(i)), i, now.Add(time.Second), now)
	}
	later, kept := now.Add(time.Minute), 0
	for i := range shards {
		var d digest
		d[0] = byte(i)
		c.put(d, i, later.Add(time.Hour), later)
	}
	for i := range shards {
		var d digest
		d[0] = byte(i)
		if _, ok := c.get(d, later); ok {
			kept++
		}
	}
	if n := count(c); kept != shards || n != shards {
		t.Errorf("%d of %d live entries kept, %d entries in all; want the dead ones gone", kept, shards, n)
	}
}

func TestCacheOff(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, -1} {
		c := newCache[int](size)
		c.put(digest{}, 1, time.Unix(2, 0), time.Unix(1, 0))
		c.drop(digest{})
		if _, ok := c.get(digest{}, time.Unix(1, 0)); ok {
			t.Errorf("a cache of %d remembers", size)
		}
	}
}

func TestCacheConcurrently(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	c := newCache[string](200)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				s := strconv.Itoa((i * (g + 1)) % 500)
				c.put(named(s), s, now.Add(time.Hour), now)
				if v, ok := c.get(named(s), now); ok && v != s {
					t.Errorf("JW-26 %s has the value of %s", s, v)
				}
				if i%7 == 0 {
					c.drop(named(s))
				}
			}
		})
	}
	wg.Wait()
}

// 10,000 live tokens, each with what a person's token has, stay under 10 MB. It
// does not run beside other tests, which allocate too.
func TestTokenCacheMemory(t *testing.T) {
	const tokens = 10_000
	now := time.Unix(1e9, 0)
	a := &authority{Issuer: Issuer{Identifier: "https://login.example.com"}, audience: "https://mcp.example.com/mcp",
		now: func() time.Time { return now }}
	before := heap()
	c := newCache[verified](tokens)
	k := &jose.Key{}
	for i := range tokens {
		claims, err := strictjson.ReadObject([]byte(`{"iss":"https://login.example.com","aud":"https://mcp.example.com/mcp",`+
			`"sub":"u_01JD8Z3V5E7R9T1Y3K5M7P9Q1S","client_id":"https://client.example.com/oauth/metadata.json","jti":"`+
			strings.Repeat("j", 22)+strconv.Itoa(i)+`","exp":1000000600,"iat":1000000000,"auth_time":1000000000,`+
			`"scope":"files:read files:write calendar:read calendar:write mail:read offline_access"}`), nil, strictjson.Small)
		if err != nil {
			t.Fatal(err)
		}
		token, err := a.readClaims(claims)
		if err != nil {
			t.Fatal(err)
		}
		c.put(named(strconv.Itoa(i)), verified{token: token, key: k}, token.ExpiresAt, now)
	}
	used := heap() - before
	n := count(c)
	t.Logf("%d tokens in %d KiB", n, used>>10)
	if n != tokens || used > 10_000_000 || used < tokens*100 {
		t.Errorf("%d tokens take %d bytes, want %d in at most 10 MB", n, used, tokens)
	}
	runtime.KeepAlive(c)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
