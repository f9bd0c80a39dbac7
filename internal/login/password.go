package login

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-crypt/crypt/algorithm/argon2"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/web"
	"golang.org/x/text/unicode/norm"
)

// Limits of a password, in bytes before hashing and in characters at creation.
const (
	maxPasswordBytes      = 1024
	minPasswordCharacters = 12
)

// busyRetry is what a browser is told to wait when the queue for hashing is full.
const busyRetry = 2 * time.Second

// PasswordOptions configures NewPasswords. The zero value is the safe default.
type PasswordOptions struct {
	// MemoryKiB, Iterations and Parallelism are argon2id's. Default 19456, 2, 1:
	// the least that OWASP's cheat sheet names for argon2id.
	MemoryKiB, Iterations, Parallelism int
	// AtOnce is how many passwords are hashed at the same time. Default: one less
	// than the processors, so that /token stays fast; at least 1.
	AtOnce int
	// Queue is how many more may wait; beyond it the answer is 503. Default 32.
	Queue int
}

// Passwords hashes and checks passwords with argon2id, so many at once and no
// more, because each costs MemoryKiB of memory (SL-06). It is safe for
// concurrent use.
type Passwords struct {
	hasher *argon2.Hasher
	params string        // "m=19456,t=2,p=1" as it stands in a PHC string
	dummy  string        // the hash of nothing anybody can type (SL-05)
	slots  chan struct{} // who is hashing
	queue  chan struct{} // who is hashing or waiting to
}

// NewPasswords checks the options and makes the dummy hash.
func NewPasswords(o PasswordOptions) (*Passwords, error) {
	o = o.withDefaults()
	hasher, err := argon2.New(argon2.WithVariantID(), argon2.WithM(uint32(o.MemoryKiB)),
		argon2.WithT(o.Iterations), argon2.WithP(o.Parallelism))
	if err != nil {
		return nil, fmt.Errorf("password hashing: %w", err)
	}
	p := &Passwords{hasher: hasher,
		params: fmt.Sprintf("m=%d,t=%d,p=%d", o.MemoryKiB, o.Iterations, o.Parallelism),
		slots:  make(chan struct{}, o.AtOnce), queue: make(chan struct{}, o.AtOnce+o.Queue)}
	if p.dummy, err = p.hash(newRandom()); err != nil {
		return nil, err
	}
	return p, nil
}

func (o PasswordOptions) withDefaults() PasswordOptions {
	if o.MemoryKiB == 0 {
		o.MemoryKiB = 19456
	}
	if o.Iterations == 0 {
		o.Iterations = 2
	}
	if o.Parallelism == 0 {
		o.Parallelism = 1
	}
	if o.AtOnce == 0 {
		o.AtOnce = max(1, runtime.GOMAXPROCS(0)-1)
	}
	if o.Queue == 0 {
		o.Queue = 32
	}
	return o
}

// Hash returns the argon2id PHC string of a new password; a password that
// CheckNewPassword refuses is refused here too.
func (p *Passwords) Hash(ctx context.Context, password oauth.Secret) (string, error) {
	if err := CheckNewPassword(password); err != nil {
		return "", err
	}
	var phc string
	err := p.slot(ctx, func() (err error) {
		phc, err = p.hash(password)
		return err
	})
	return phc, err
}

// slot runs fn while holding one of the places for hashing, or returns
// oauth.Unavailable when too many wait already (SL-06).
func (p *Passwords) slot(ctx context.Context, fn func() error) error {
	release, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return fn()
}

func (p *Passwords) acquire(ctx context.Context) (release func(), err error) {
	select {
	case p.queue <- struct{}{}:
	default:
		return nil, oauth.Unavailable(busyRetry, errors.New("too many passwords wait to be hashed"))
	}
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots; <-p.queue }, nil
	case <-ctx.Done():
		<-p.queue
		return nil, ctx.Err()
	}
}

// match reports whether password belongs to the stored hash, and does the same
// work when there is no hash to compare with: an unknown account, or one
// without a password, which never matches (SL-05, SL-18). The caller holds a slot.
func (p *Passwords) match(stored string, password oauth.Secret) (bool, error) {
	phc := stored
	if phc == "" {
		phc = p.dummy
	}
	digest, err := argon2.Decode(phc)
	if err != nil {
		return false, fmt.Errorf("stored password hash: %w", err)
	}
	ok := digest.Match(normalize(password))
	return ok && stored != "", nil
}

// outdated reports whether a stored hash was made with other parameters.
func (p *Passwords) outdated(stored string) bool {
	return !strings.HasPrefix(stored, "$argon2id$") || !strings.Contains(stored, "$"+p.params+"$")
}

func (p *Passwords) hash(password oauth.Secret) (string, error) {
	digest, err := p.hasher.Hash(normalize(password))
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return digest.Encode(), nil
}

// normalize makes the same password typed on two systems the same bytes (RFC
// 8265 §4.2.2: NFC).
func normalize(password oauth.Secret) string { return norm.NFC.String(password.Reveal()) }

// checkPasswordSize refuses what no person types, before anything is hashed or
// normalised (SL-07).
func checkPasswordSize(password oauth.Secret) error {
	raw := password.Reveal()
	switch {
	case len(raw) > maxPasswordBytes:
		return oauth.InvalidRequest("password is longer than %d bytes", maxPasswordBytes)
	case !utf8.ValidString(raw), strings.ContainsRune(raw, 0):
		return oauth.InvalidRequest("password is not valid UTF-8 or contains NUL")
	}
	return nil
}

// CheckNewPassword returns a *Mistake when the password may not be chosen.
func CheckNewPassword(password oauth.Secret) error {
	if err := checkPasswordSize(password); err != nil {
		return &Mistake{Field: "password", Key: web.ProblemPasswordLong,
			Text: fmt.Sprintf("the password must have at most %d bytes of valid text", maxPasswordBytes)}
	}
	if utf8.RuneCountInString(normalize(password)) < minPasswordCharacters {
		return &Mistake{Field: "password", Key: web.ProblemPasswordShort,
			Text: fmt.Sprintf("the password must have at least %d characters", minPasswordCharacters)}
	}
	return nil
}
