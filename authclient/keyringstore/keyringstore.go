// Package keyringstore keeps what authclient stores in the system's keyring: the
// Keychain of macOS, the Credential Manager of Windows, the Secret Service of Linux
// and the BSDs. A keyring that cannot be used is an error and never a file.
//
// Keyrings have small places for passwords, so an entry may be several of their
// items. Their names say nothing: who wants to see what is stored uses package
// filestore, or logs out with the program that logged in.
package keyringstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/internal/privatedir"
)

// Options configures New.
type Options struct {
	// Service is the name under which the keyring shows the items: the program's, of
	// letters, digits, space and ".-_". Required.
	Service string
	// LockDir is a directory for lock files, which keep processes apart: keyrings have
	// no locks. It is made when it is missing, and nothing secret is in it. Required;
	// what shares a Service shares it.
	LockDir string
}

// Store keeps entries in the keyring of the user who runs the program. It is safe for
// concurrent use, by several processes too. A call lasts as long as the keyring takes,
// which may ask its user to unlock it.
type Store struct {
	ring    ring
	service string
	dir     *privatedir.Dir
}

// New returns a store, or what is wrong with o. It does not ask the keyring.
func New(o Options) (*Store, error) { return newStore(o, system{}) }

var serviceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$`)

func newStore(o Options, r ring) (*Store, error) {
	var mistakes []error
	if !serviceName.MatchString(o.Service) {
		mistakes = append(mistakes, fmt.Errorf("keyringstore: Service %q is not a name of letters, digits, space and \".-_\"", o.Service))
	}
	d, err := privatedir.Open(o.LockDir)
	if err != nil {
		mistakes = append(mistakes, fmt.Errorf("keyringstore: LockDir: %w", err))
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	return &Store{ring: r, service: o.Service, dir: d}, nil
}

func name(k authclient.Key) string {
	return privatedir.Name(k.Kind, k.Issuer, k.Resource, k.Client, k.Account)
}

// access is the lock that is held while items are written: several of them are one
// entry.
const access = "keyring"

// Load implements authclient.Store.
func (s *Store) Load(ctx context.Context, k authclient.Key) (value []byte, err error) {
	// What is found whole was saved so. Anything else may come of a save that is not
	// at its end: then it is looked at once more, alone.
	if value, err = s.item(k).load(); err == nil {
		return value, nil
	}
	err = s.alone(ctx, "load from the keyring", func() error {
		value, err = s.item(k).load()
		return err
	})
	if errors.Is(err, errNoItem) {
		return nil, authclient.ErrNotFound
	}
	return value, err
}

// Save implements authclient.Store. A process that stops meanwhile leaves the old
// entry or the new one.
func (s *Store) Save(ctx context.Context, k authclient.Key, value []byte) error {
	return s.alone(ctx, "save to the keyring", func() error { return s.item(k).save(value) })
}

// Delete implements authclient.Store.
func (s *Store) Delete(ctx context.Context, k authclient.Key) error {
	return s.alone(ctx, "delete from the keyring", func() error { return s.item(k).delete() })
}

// Lock implements authclient.Store. The lock is a file in Options.LockDir, and ends
// with the process that holds it.
func (s *Store) Lock(ctx context.Context, k authclient.Key) (unlock func() error, err error) {
	return s.dir.Lock(ctx, name(k))
}

func (s *Store) item(k authclient.Key) item { return item{s.ring, s.service, name(k)} }

// alone runs fn while no other process writes here.
func (s *Store) alone(ctx context.Context, what string, fn func() error) error {
	unlock, err := s.dir.Lock(ctx, access)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err = fn(); err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return errors.Join(err, unlock())
}
