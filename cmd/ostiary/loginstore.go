package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/filestore"
	"github.com/ostiary-auth/ostiary/authclient/keyringstore"
)

// Where logins are kept.
const (
	storeFile    = "file"
	storeKeyring = "keyring"
	storeMemory  = "memory"
)

// loginStore opens the store that --store names and says where it is.
func (c *cli) loginStore(kind string) (authclient.Store, string, error) {
	switch kind {
	case storeMemory:
		return authclient.NewMemoryStore(), "memory of this command", nil
	case storeFile, storeKeyring:
	default:
		return nil, "", withHint(usagef("--store %s: there is no such store", kind), "file, keyring or memory")
	}
	dir, err := c.loginDir()
	if err != nil {
		return nil, "", err
	}
	if kind == storeKeyring {
		store, err := keyringstore.New(keyringstore.Options{Service: "ostiary", LockDir: filepath.Join(dir, "keyring-locks")})
		s := hintedStore{store, "unlock or start the keyring of this system, or use --store file"}
		return s, "the keyring of this system", s.hinted(err)
	}
	dir = filepath.Join(dir, "logins")
	store, err := filestore.New(dir)
	s := hintedStore{store, "repair what the message names; --store keyring and --store memory do without these files"}
	return s, dir, s.hinted(err)
}

// loginDir is below the user's configuration directory, because people keep what they
// log in with, and back it up, there.
func (c *cli) loginDir() (string, error) {
	dir := c.variable("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG specification: a relative one does not count
		home := c.variable("HOME")
		if !filepath.IsAbs(home) {
			return "", withHint(errors.New("there is no place for logins: HOME is not set"), "set HOME or XDG_CONFIG_HOME, or use --store memory")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "ostiary"), nil
}

// variable returns a variable of the environment.
func (c *cli) variable(name string) string {
	value := ""
	for _, kv := range c.environ {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			value = v
		}
	}
	return value
}

// hintedStore says of a store that fails what to do about it.
type hintedStore struct {
	authclient.Store
	hint string
}

// Load implements authclient.Store.
func (s hintedStore) Load(ctx context.Context, k authclient.Key) ([]byte, error) {
	v, err := s.Store.Load(ctx, k)
	return v, s.hinted(err)
}

// Save implements authclient.Store.
func (s hintedStore) Save(ctx context.Context, k authclient.Key, value []byte) error {
	return s.hinted(s.Store.Save(ctx, k, value))
}

// Delete implements authclient.Store.
func (s hintedStore) Delete(ctx context.Context, k authclient.Key) error {
	return s.hinted(s.Store.Delete(ctx, k))
}

// Lock implements authclient.Store.
func (s hintedStore) Lock(ctx context.Context, k authclient.Key) (func() error, error) {
	unlock, err := s.Store.Lock(ctx, k)
	return unlock, s.hinted(err)
}

func (s hintedStore) hinted(err error) error {
	if errors.Is(err, authclient.ErrNotFound) || errors.Is(err, context.Canceled) {
		return err
	}
	return withHint(err, "%s", s.hint)
}
