// Package storetest is what every authclient.Store must do, as one test: for the
// stores here and for those that programs write themselves.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/authclient"
)

// Run tests a store. newStorage makes a storage without entries; open returns a
// store on it, each time another one, as another process would. A store whose
// storage is no larger than the store itself returns the same one.
func Run(t *testing.T, newStorage func(t *testing.T) (open func() authclient.Store)) {
	t.Helper()
	for _, tt := range []struct {
		name string
		test func(t *testing.T, open func() authclient.Store)
	}{
		{"nothing stored", testNothing},
		{"save, load, delete", testSave},
		{"values", testValues},
		{"values are copies", testCopies},
		{"each part of a key counts", testKeys},
		{"odd keys", testOddKeys},
		{"what is read was saved whole", testWhole},
		{"C6 one holds the lock", testLock},
		{"C6 who gives up waiting for the lock", testLockCancelled},
		{"C6 locks of other keys are free", testLocksApart},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, newStorage(t))
		})
	}
}

var aKey = authclient.Key{Kind: authclient.KindGrant, Issuer: "https://id.example.com", Resource: "https://mcp.example.com/mcp", Client: "c", Account: "a"}

func testNothing(t *testing.T, open func() authclient.Store) {
	s, ctx := open(), t.Context()
	wantNothing(t, s, aKey)
	if err := s.Delete(ctx, aKey); err != nil {
		t.Errorf("Delete: %v", err)
	}
	wantNothing(t, s, authclient.Key{})
}

func testSave(t *testing.T, open func() authclient.Store) {
	s, ctx := open(), t.Context()
	for _, v := range []string{`{"a":1}`, `{"a":"a longer one than before"}`, `{}`} {
		save(t, s, aKey, v)
		want(t, s, aKey, v)
		want(t, open(), aKey, v)
	}
	if err := open().Delete(ctx, aKey); err != nil {
		t.Errorf("Delete: %v", err)
	}
	wantNothing(t, s, aKey)
	save(t, s, aKey, `[]`)
	want(t, open(), aKey, `[]`)
}

func testValues(t *testing.T, open func() authclient.Store) {
	for name, v := range map[string]string{
		"null": `null`, "HTML": `{"v":"<a href='x'>&amp;</a>"}`, "escapes": `{"v":"\u0000\n\"\\\u2028"}`,
		"other letters": `{"v":"Ünïcødé 鍵 🔑 ` + "\u2028" + `"}`, "large": `{"v":"` + strings.Repeat("0123456789abcdef", 2048) + `"}`,
	} {
		s, k := open(), authclient.Key{Kind: name}
		save(t, s, k, v)
		want(t, open(), k, v)
		save(t, s, k, `1`) // shorter after longer, in stores that cut values in pieces
		want(t, open(), k, `1`)
	}
}

func testCopies(t *testing.T, open func() authclient.Store) {
	s, v := open(), []byte(`{"a":1}`)
	if err := s.Save(t.Context(), aKey, v); err != nil {
		t.Fatal(err)
	}
	v[1] = 'X'
	got, err := s.Load(t.Context(), aKey)
	if err != nil {
		t.Fatal(err)
	}
	got[2] = 'Y'
	want(t, s, aKey, `{"a":1}`)
}

// A credential of one issuer is never read for another (rule C5).
func testKeys(t *testing.T, open func() authclient.Store) {
	keys := []authclient.Key{
		aKey,
		with(aKey, func(k *authclient.Key) { k.Kind = authclient.KindClient }),
		with(aKey, func(k *authclient.Key) { k.Issuer += "/" }),
		with(aKey, func(k *authclient.Key) { k.Resource = "https://MCP.example.com/mcp" }),
		with(aKey, func(k *authclient.Key) { k.Client = "C" }),
		with(aKey, func(k *authclient.Key) { k.Account = "" }),
		// the same texts with the borders between them elsewhere
		{Kind: "ab", Issuer: "c"}, {Kind: "a", Issuer: "bc"}, {Kind: "abc"}, {Issuer: "abc"}, {Account: "abc"},
		{Kind: "a", Issuer: "b", Account: "c"}, {Kind: "a", Resource: "b", Account: "c"},
	}
	s := open()
	for i, k := range keys {
		save(t, s, k, strconv.Itoa(i))
	}
	for i, k := range keys {
		want(t, s, k, strconv.Itoa(i))
	}
	if err := s.Delete(t.Context(), keys[0]); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys[1:] {
		want(t, s, k, strconv.Itoa(i+1))
	}
	wantNothing(t, s, keys[0])
}

func with(k authclient.Key, change func(*authclient.Key)) authclient.Key {
	change(&k)
	return k
}

func testOddKeys(t *testing.T, open func() authclient.Store) {
	s := open()
	odd := []string{"", ".", "../../../../tmp/x", "/etc/passwd", "a\x00b", "a\nb", "C:\\x", "$(id)", "-rf", "\xff\xfe", "\xff", strings.Repeat("x", 5000), "CON", "a%2fb"}
	for i, text := range odd {
		save(t, s, authclient.Key{Kind: authclient.KindGrant, Issuer: text}, strconv.Itoa(i))
		save(t, s, authclient.Key{Kind: authclient.KindGrant, Account: text}, strconv.Itoa(-1-i))
	}
	for i, text := range odd[1:] {
		want(t, open(), authclient.Key{Kind: authclient.KindGrant, Issuer: text}, strconv.Itoa(i+1))
		want(t, open(), authclient.Key{Kind: authclient.KindGrant, Account: text}, strconv.Itoa(-2-i))
	}
}

// Readers and writers without the lock, as the contract permits: what is read is
// one of the values that were saved, from its beginning to its end.
func testWhole(t *testing.T, open func() authclient.Store) {
	value := func(i int) string { return `{"v":"` + strings.Repeat(strconv.Itoa(i), 200+3000*i) + `"}` }
	valid := map[string]bool{value(0): true, value(1): true, value(2): true}
	save(t, open(), aKey, value(0))
	var writers, readers sync.WaitGroup
	written := make(chan struct{})
	for i := range 3 {
		s := open()
		writers.Go(func() {
			for range 10 {
				if err := s.Save(t.Context(), aKey, []byte(value(i))); err != nil {
					t.Errorf("Save: %v", err)
				}
			}
		})
	}
	for range 2 {
		s := open()
		readers.Go(func() {
			for {
				if b, err := s.Load(t.Context(), aKey); err != nil || !valid[string(b)] {
					t.Errorf("Load = %d bytes, %v", len(b), err)
				}
				select {
				case <-written:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(written)
	readers.Wait()
}

func testLock(t *testing.T, open func() authclient.Store) {
	const goroutines, times = 4, 10
	var wg sync.WaitGroup
	for range goroutines {
		s := open()
		wg.Go(func() {
			for range times {
				if err := increment(t.Context(), s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want(t, open(), aKey, strconv.Itoa(goroutines*times))
}

// increment reads and writes under the lock: a number is lost if two hold it.
func increment(ctx context.Context, s authclient.Store) (err error) {
	unlock, err := s.Lock(ctx, aKey)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	b, err := s.Load(ctx, aKey)
	if errors.Is(err, authclient.ErrNotFound) {
		b, err = []byte("0"), nil
	}
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return err
	}
	return s.Save(ctx, aKey, []byte(strconv.Itoa(n+1)))
}

func testLockCancelled(t *testing.T, open func() authclient.Store) {
	s := open()
	unlock := lock(t, s, aKey)
	for _, other := range []authclient.Store{s, open()} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		if _, err := other.Lock(ctx, aKey); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock = %v, want context.DeadlineExceeded", err)
		}
		cancel()
	}
	unlock()
	lock(t, open(), aKey)()
	lock(t, s, aKey)()
}

func testLocksApart(t *testing.T, open func() authclient.Store) {
	s := open()
	defer lock(t, s, aKey)()
	other := with(aKey, func(k *authclient.Key) { k.Account = "b" })
	defer lock(t, s, other)()
	defer lock(t, open(), authclient.Key{})()
	// who holds no lock is not stopped
	save(t, open(), aKey, `1`)
	want(t, s, aKey, `1`)
	if err := s.Delete(t.Context(), aKey); err != nil {
		t.Errorf("Delete under the lock: %v", err)
	}
}

func lock(t *testing.T, s authclient.Store, k authclient.Key) func() {
	t.Helper()
	unlock, err := s.Lock(t.Context(), k)
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	return func() {
		if err := unlock(); err != nil {
			t.Errorf("unlock: %v", err)
		}
	}
}

func save(t *testing.T, s authclient.Store, k authclient.Key, value string) {
	t.Helper()
	if err := s.Save(t.Context(), k, []byte(value)); err != nil {
		t.Fatalf("Save %+.80q: %v", k, err)
	}
}

func want(t *testing.T, s authclient.Store, k authclient.Key, value string) {
	t.Helper()
	b, err := s.Load(t.Context(), k)
	if err != nil || !bytes.Equal(b, []byte(value)) {
		t.Errorf("Load %+.80q = %.80q, %v, want %.80q", k, b, err, value)
	}
}

func wantNothing(t *testing.T, s authclient.Store, k authclient.Key) {
	t.Helper()
	if b, err := s.Load(t.Context(), k); !errors.Is(err, authclient.ErrNotFound) {
		t.Errorf("Load %+v = %.80q, %v, want ErrNotFound", k, b, err)
	}
}
