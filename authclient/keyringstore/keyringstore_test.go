package keyringstore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/storetest"
)

// sessionVariable marks a process in a session whose keyring is the test's own.
const sessionVariable = "OSTIARY_KEYRINGSTORE_SESSION"

// fakeRing is a keyring with the limits of the Credential Manager. It can stop
// working after some writes, as a process does that is killed.
type fakeRing struct {
	mu     sync.Mutex
	items  map[string]string
	writes int // how many are left; negative: as many as one likes
	fails  error
}

var errStopped = errors.New("the keyring stopped")

func newFakeRing() *fakeRing { return &fakeRing{items: map[string]string{}, writes: -1} }

func (r *fakeRing) Get(service, name string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.items[service+":"+name]
	switch {
	case r.fails != nil:
		return "", r.fails
	case !ok:
		return "", errNoItem
	}
	return v, nil
}

func (r *fakeRing) Set(service, name, secret string) error {
	if len(secret) > 2560 || len(service)+len(name) > 500 {
		return fmt.Errorf("%d bytes under a name of %d are too many", len(secret), len(service)+len(name))
	}
	return r.write(func() error {
		r.items[service+":"+name] = secret
		return nil
	})
}

func (r *fakeRing) Delete(service, name string) error {
	return r.write(func() error {
		if _, ok := r.items[service+":"+name]; !ok {
			return errNoItem
		}
		delete(r.items, service+":"+name)
		return nil
	})
}

func (r *fakeRing) write(fn func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes == 0 {
		r.fails = errStopped
	}
	if r.fails != nil {
		return r.fails
	}
	r.writes--
	return fn()
}

// repair makes the ring work again, for n writes.
func (r *fakeRing) repair(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes, r.fails = n, nil
}

func open(t *testing.T, dir string, r ring) *Store {
	t.Helper()
	s, err := newStore(Options{Service: "test", LockDir: dir}, r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() authclient.Store {
		o, r := Options{Service: rand.Text(), LockDir: filepath.Join(t.TempDir(), "locks")}, ring(newFakeRing())
		if os.Getenv(sessionVariable) != "" {
			r = system{}
		}
		return func() authclient.Store {
			s, err := newStore(o, r)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}

// An entry is the old one or the new one wherever a save stops, and the next save
// leaves nothing of either behind.
func TestStoppedWhileSaving(t *testing.T) {
	t.Parallel()
	small, large, huge := `"small"`, `"`+strings.Repeat("large", 1000)+`"`, `"`+strings.Repeat("huge", 5000)+`"`
	for _, tt := range []struct{ name, before, after string }{
		{"small to large", small, large}, {"large to huge", large, huge}, {"huge to large", huge, large},
		{"large to small", large, small}, {"large to large", large, strings.ReplaceAll(large, "large", "LARGE")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			saved := false
			for stop := 0; !saved; stop++ {
				saved = stopAfter(t, stop, tt.before, tt.after)
			}
		})
	}
}

// stopAfter stops a save after some writes and reports whether it was saved.
func stopAfter(t *testing.T, writes int, before, after string) bool {
	t.Helper()
	k, ring, ctx := authclient.Key{Kind: "grant"}, newFakeRing(), t.Context()
	s := open(t, filepath.Join(t.TempDir(), "locks"), ring)
	if err := s.Save(ctx, k, []byte(before)); err != nil {
		t.Fatal(err)
	}
	ring.repair(writes)
	err := s.Save(ctx, k, []byte(after))
	ring.repair(-1)
	want := before
	if err == nil {
		want = after
	} else if !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	if got, err := s.Load(ctx, k); err != nil || string(got) != want {
		t.Errorf("stopped after %d writes: %.30s (%d bytes), %v, want %.30s", writes, got, len(got), err, want)
	}
	if err := errors.Join(s.Save(ctx, k, []byte(after)), s.Save(ctx, k, []byte(`"last"`))); err != nil {
		t.Error(err)
	}
	if len(ring.items) != 1 {
		t.Errorf("stopped after %d writes: %d items are left", writes, len(ring.items))
	}
	return err == nil
}

func TestDeleteLeavesNothing(t *testing.T) {
	t.Parallel()
	k, ring := authclient.Key{Kind: "grant"}, newFakeRing()
	s := open(t, filepath.Join(t.TempDir(), "locks"), ring)
	for _, v := range []string{`1`, `"` + strings.Repeat("x", 20000) + `"`} {
		if err := errors.Join(s.Save(t.Context(), k, []byte(v)), s.Delete(t.Context(), k)); err != nil || len(ring.items) != 0 {
			t.Errorf("%v; %d items are left", err, len(ring.items))
		}
	}
}

// A keyring that fails is an error, whatever is asked: not absence, and no file.
func TestFailingKeyring(t *testing.T) {
	t.Parallel()
	dir, ring := filepath.Join(t.TempDir(), "locks"), newFakeRing()
	s, k, ctx := open(t, dir, ring), authclient.Key{Kind: "grant"}, t.Context()
	if err := s.Save(ctx, k, []byte(`"s3cret"`)); err != nil {
		t.Fatal(err)
	}
	ring.fails = unusable{errStopped}
	_, loadErr := s.Load(ctx, k)
	for what, err := range map[string]error{"Load": loadErr, "Save": s.Save(ctx, k, []byte(`"s3cret"`)), "Delete": s.Delete(ctx, k)} {
		if !errors.Is(err, errStopped) || errors.Is(err, authclient.ErrNotFound) || !strings.Contains(err.Error(), "keyring") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s = %v, want the keyring's error", what, err)
		}
	}
	for _, pattern := range []string{"*.json", "*.tmp"} {
		if files, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(files) > 0 {
			t.Errorf("files = %q, %v", files, err)
		}
	}
}

func TestDamagedEntries(t *testing.T) {
	t.Parallel()
	k, dir := authclient.Key{Kind: "grant"}, filepath.Join(t.TempDir(), "locks")
	large := []byte(`"` + strings.Repeat("x", 5000) + `"`)
	for what, damage := range map[string]func(*fakeRing){
		"no JSON":      func(r *fakeRing) { r.items["test:"+name(k)] = "secret" },
		"empty":        func(r *fakeRing) { r.items["test:"+name(k)] = "{}" },
		"many parts":   func(r *fakeRing) { r.items["test:"+name(k)] = `{"slot":"a","parts":1000000}` },
		"part missing": func(r *fakeRing) { delete(r.items, "test:"+name(k)+".a.1") },
		"part changed": func(r *fakeRing) { r.items["test:"+name(k)+".a.1"] = "y" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ring := newFakeRing()
			s := open(t, dir+what, ring)
			if err := s.Save(t.Context(), k, large); err != nil {
				t.Fatal(err)
			}
			damage(ring)
			if b, err := s.Load(t.Context(), k); !errors.Is(err, errDamaged) {
				t.Errorf("Load = %.20q, %v, want errDamaged", b, err)
			}
			if err := s.Save(t.Context(), k, large); err != nil {
				t.Fatal(err)
			}
			if b, err := s.Load(t.Context(), k); err != nil || string(b) != string(large) {
				t.Errorf("after Save: %.20q, %v", b, err)
			}
		})
	}
}

func TestSaveRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "locks"), newFakeRing())
	for name, v := range map[string][]byte{"nothing": nil, "too much": make([]byte, maxItem*maxParts+1), "no text": {0xff}} {
		if err := s.Save(t.Context(), authclient.Key{}, v); err == nil {
			t.Errorf("%s is saved", name)
		}
	}
}

func TestNewChecksOptions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "locks")
	for _, service := range []string{"", "-a", "a'b", "a\nb", "$(id)", strings.Repeat("x", 101)} {
		if _, err := New(Options{Service: service, LockDir: dir}); err == nil {
			t.Errorf("Service %q is accepted", service)
		}
	}
	if _, err := New(Options{Service: "ostiary"}); err == nil {
		t.Error("no LockDir is accepted")
	}
	if _, err := New(Options{Service: "ostiary login", LockDir: dir}); err != nil {
		t.Error(err)
	}
}

func FuzzHead(f *testing.F) {
	for _, s := range []string{`{"value":"1"}`, `{"slot":"a","parts":2,"sum":"00"}`, `{"slot":"a","parts":-1}`, `{`} {
		f.Add(s)
	}
	k, dir := authclient.Key{Kind: "grant"}, filepath.Join(f.TempDir(), "locks")
	f.Fuzz(func(t *testing.T, text string) {
		ring := newFakeRing()
		s := open(t, dir, ring)
		ring.items["test:"+name(k)] = text
		if b, err := s.Load(t.Context(), k); err == nil && len(b) == 0 || errors.Is(err, authclient.ErrNotFound) {
			t.Errorf("Load = %q, %v", b, err)
		}
	})
}

// lateRing fails for one name when it has written.
type lateRing struct {
	*fakeRing
	name string
}

func (r *lateRing) Set(service, name, secret string) error {
	err := r.fakeRing.Set(service, name, secret)
	if err == nil && name == r.name {
		err = errStopped
	}
	return err
}

// TestC6_FailedAfterItWasWritten: the entry is then the new one, and whole.
func TestC6_FailedAfterItWasWritten(t *testing.T) {
	t.Parallel()
	ring := &lateRing{fakeRing: newFakeRing()}
	s := open(t, filepath.Join(t.TempDir(), "locks"), ring)
	key := authclient.Key{Kind: authclient.KindGrant}
	before, after := strings.Repeat("1", 5000), strings.Repeat("2", 5000)
	if err := s.Save(t.Context(), key, []byte(before)); err != nil {
		t.Fatal(err)
	}
	ring.name = name(key)
	if err := s.Save(t.Context(), key, []byte(after)); !errors.Is(err, errStopped) {
		t.Errorf("Save = %v, want the ring's error", err)
	}
	if got, err := s.Load(t.Context(), key); err != nil || string(got) != after {
		t.Errorf("Load = %d bytes, %v", len(got), err)
	}
}
