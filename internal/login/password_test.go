package login

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func testPasswords(t *testing.T, o PasswordOptions) *Passwords {
	t.Helper()
	o.MemoryKiB, o.Iterations = 64, 1
	p, err := NewPasswords(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPasswordMatch(t *testing.T) {
	t.Parallel()
	p := testPasswords(t, PasswordOptions{})
	phc, err := p.Hash(t.Context(), "pässword with accents")
	if err != nil || !strings.HasPrefix(phc, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("Hash = %q, %v; want an argon2id PHC string", phc, err)
	}
	for _, tt := range []struct {
		name, stored string
		password     oauth.Secret
		want         bool
	}{
		{"right", phc, "pässword with accents", true},
		{"right, decomposed (RFC 8265 section 4.2.2)", phc, "pa\u0308ssword with accents", true},
		{"wrong", phc, "password with accents", false},
		{"empty", phc, "", false},
		{"SL-18 no stored password", "", "", false},
		{"SL-18 no stored password, something typed", "", "pässword with accents", false},
	} {
		if got, err := p.match(tt.stored, tt.password); got != tt.want || err != nil {
			t.Errorf("%s: match = %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
	if _, err := p.match("not a PHC string", "x"); err == nil {
		t.Error("match with a broken stored hash: no error")
	}
	if p.outdated(phc) || !p.outdated(strings.Replace(phc, "m=64", "m=32", 1)) || !p.outdated(strings.Replace(phc, "argon2id", "argon2i", 1)) {
		t.Error("outdated must be true for other parameters, and only then")
	}
}

func TestCheckNewPassword(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		password oauth.Secret
		wantKey  string
	}{
		{"12 characters", "123456789012", ""},
		{"12 characters of 2 bytes", oauth.Secret(strings.Repeat("é", 12)), ""},
		{"11 characters", "12345678901", "problem.password_short"},
		{"11 characters, decomposed to 22", oauth.Secret(strings.Repeat("e\u0301", 11)), "problem.password_short"},
		{"SL-18 empty", "", "problem.password_short"},
		{"1024 bytes", oauth.Secret(strings.Repeat("x", 1024)), ""},
		{"SL-07 1025 bytes", oauth.Secret(strings.Repeat("x", 1025)), "problem.password_long"},
		{"SL-07 one MiB", oauth.Secret(strings.Repeat("x", 1<<20)), "problem.password_long"},
		{"SL-07 NUL", "123456789012\x00", "problem.password_long"},
		{"SL-07 invalid UTF-8", "123456789012\xff", "problem.password_long"},
	} {
		var m *Mistake
		key := ""
		if err := CheckNewPassword(tt.password); errors.As(err, &m) {
			key = m.Key
		}
		if key != tt.wantKey {
			t.Errorf("%s: CheckNewPassword says %q, want %q", tt.name, key, tt.wantKey)
		}
	}
}

// SL-06: one hashes, so many wait, the next is told to come back; who gives up
// waiting leaves the queue.
func TestSL06_PasswordSlots(t *testing.T) {
	t.Parallel()
	p := testPasswords(t, PasswordOptions{AtOnce: 1, Queue: 1})
	release, err := p.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waits, giveUp := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() {
		_, err := p.acquire(waits)
		waiting <- err
	}()
	for len(p.queue) < 2 { // the goroutine above is on its way into the queue
		time.Sleep(time.Millisecond)
	}
	_, err = p.Hash(t.Context(), "123456789012")
	var unavailable *oauth.Error
	if !errors.As(err, &unavailable) || unavailable.HTTPStatus() != http.StatusServiceUnavailable || unavailable.RetryAfter <= 0 {
		t.Errorf("Hash with a full queue = %v, want 503 with Retry-After", err)
	}
	giveUp()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("acquire by somebody who gave up = %v, want context.Canceled", err)
	}
	release()
	if _, err := p.Hash(t.Context(), "123456789012"); err != nil {
		t.Errorf("Hash when the queue is empty again: %v", err)
	}
}

// SL-06: a request that panics or fails while hashing gives its slot back.
func TestSL06_SlotIsGivenBack(t *testing.T) {
	t.Parallel()
	p := testPasswords(t, PasswordOptions{AtOnce: 1, Queue: 1})
	for range 5 {
		func() {
			defer func() { _ = recover() }()
			_ = p.slot(t.Context(), func() error { panic("hash") })
		}()
	}
	if len(p.slots) != 0 || len(p.queue) != 0 {
		t.Errorf("after panics %d slots and %d places are taken, want none", len(p.slots), len(p.queue))
	}
}

func TestWaitAfter(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 0, 0, 0, 0, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute}
	for failures, w := range want {
		if got := waitAfter(failures, freeTries); got != w {
			t.Errorf("waitAfter(%d) = %v, want %v", failures, got, w)
		}
	}
	if got := waitAfter(1<<30, freeTries); got != longestWait {
		t.Errorf("waitAfter(2^30) = %v, want %v", got, longestWait)
	}
}

func TestCheckEmail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		email string
		ok    bool
	}{
		{"ada@fernhill.example", true},
		{"Ada.L+mcp@Fernhill.example", true},
		{"ada@localhost", true},
		{"ädä@fernhill.example", true},
		{"", false},
		{"ada", false},
		{"@fernhill.example", false},
		{"ada@", false},
		{"a@b@c.example", false},
		{"ada l@fernhill.example", false},
		{"Ada <ada@fernhill.example>", false},
		{"ada@.example", false},
		{"ada@a..example", false},
		{"ada@a.example.", false},
		{"ada@fernhill.example\nBcc: eve@evil.example", false},
		{"ada@fern\u202ehill.example", false},
		{"ada@fern\u200bhill.example", false},
		{"ada\x00@fernhill.example", false},
		{strings.Repeat("a", 65) + "@fernhill.example", false},
		{"ada@" + strings.Repeat("a", 260), false},
	} {
		if err := CheckEmail(tt.email); (err == nil) != tt.ok {
			t.Errorf("CheckEmail(%q) = %v, want ok %v", tt.email, err, tt.ok)
		}
	}
}

func TestEmailKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b string }{
		{" Ada@Fernhill.EXAMPLE ", "ada@fernhill.example"},
		{"ÉVA@x.example", "éva@x.example"},
		{"e\u0301va@x.example", "éva@x.example"},
		{"ａｄａ@x.example", "ada@x.example"},
	} {
		if got, want := EmailKey(tt.a), EmailKey(tt.b); got != want {
			t.Errorf("EmailKey(%q) = %q, want that of %q, %q", tt.a, got, tt.b, want)
		}
	}
	if EmailKey("ada@x.example") == EmailKey("a.da@x.example") {
		t.Error("EmailKey must not join addresses that differ in a dot")
	}
}

func FuzzEmail(f *testing.F) {
	for _, s := range []string{"ada@fernhill.example", " ADA@X ", "\u0130@x", "e\u0301@x", "ﬁ@x", "\xff@x", "@", "a\x00@b", "\u1e9e@\u2126", "\u02d8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key := EmailKey(s)
		if again := EmailKey(key); again != key {
			t.Errorf("EmailKey(%q) = %q, and of that %q: not the same", s, key, again)
		}
		if CheckEmail(s) == nil && (len(s) > maxEmailBytes || strings.Count(s, "@") != 1 || strings.ContainsAny(s, "\r\n\x00 ")) {
			t.Errorf("CheckEmail accepts %q", s)
		}
	})
}

func TestRandom(t *testing.T) {
	t.Parallel()
	a, b := newRandom(), newRandom()
	if a == b || !isRandom(a.Reveal()) || len(a.Reveal()) != 43 {
		t.Errorf("newRandom: want two different values of 43 characters")
	}
	for _, s := range []string{"", a.Reveal() + "A", a.Reveal()[:42], strings.Repeat("=", 43), strings.Repeat("A", 42) + "B"} {
		if isRandom(s) {
			t.Errorf("isRandom(%q) = true", s)
		}
	}
	if hashOf("session", a.Reveal()) == hashOf("device", a.Reveal()) {
		t.Error("one value has the same hash for two purposes")
	}
}
