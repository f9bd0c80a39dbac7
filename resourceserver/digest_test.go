package resourceserver

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestDigest(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*digester{"shortened": newDigester(), "whole, in FIPS 140-only mode": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := map[digest]string{}
			base := strings.Repeat("a", 700)
			tokens := []string{"", "a", "a\x00", "a\x00\x00", base, strings.Repeat("a", 16<<10)}
			for i := range base { // each differs from base in one bit
				tokens = append(tokens, base[:i]+"c"+base[i+1:])
			}
			for i := range 100 { // multiples of blocks, and what is beside them
				tokens = append(tokens, strings.Repeat("b", i+1))
			}
			for _, token := range tokens {
				got := d.of(token)
				if other, dup := seen[got]; dup {
					t.Fatalf("JW-26 %q and %q have the same digest", token, other)
				}
				seen[got] = token
			}
			for sum, token := range seen {
				if d.of(token) != sum {
					t.Fatalf("%q has two digests", token)
				}
			}
		})
	}
}

// Nobody can look for tokens that have one digest: it is another one everywhere,
// and not that of what everybody can compute.
func TestDigestIsKeyed(t *testing.T) {
	t.Parallel()
	a, b := newDigester(), newDigester()
	token := strings.Repeat("a", 700)
	if a.mac == nil {
		t.Fatal("the digester has no key")
	}
	if a.of(token) == b.of(token) || a.of(token) == sha256.Sum256([]byte(token)) {
		t.Error("a digest can be computed without the key")
	}
	if (&digester{}).of(token) != sha256.Sum256([]byte(token)) {
		t.Error("without a key the digest is not SHA-256 of the token")
	}
}

func TestDigestKeepsNoToken(t *testing.T) {
	t.Parallel()
	d := newDigester()
	kept := &digestScratch{token: make([]byte, 0, 64)}
	d.scratch.Put(kept)
	for range 100 { // a pool may hand out another one
		d.of("the token itself")
	}
	if s := string(kept.token[:cap(kept.token)]); strings.Trim(s, "\x00") != "" {
		t.Errorf("%q stays in the pool", s)
	}
}

func TestDigestConcurrently(t *testing.T) {
	t.Parallel()
	d := newDigester()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			token := strings.Repeat(strconv.Itoa(g), 300+g)
			want := d.of(token)
			for range 2000 {
				if d.of(token) != want {
					t.Error("JW-26 a token has another digest beside others")
					return
				}
			}
		})
	}
	wg.Wait()
}

// It does not run beside other tests, which allocate too.
func TestDigestAllocatesNothing(t *testing.T) {
	d, token := newDigester(), strings.Repeat("a", 700)
	if n := testing.AllocsPerRun(100, func() { d.of(token) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
