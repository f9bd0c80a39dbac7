package keyringstore

import (
	"errors"

	"github.com/zalando/go-keyring"
)

// ring is a keyring. The error of Get and Delete for an item that is not there is
// errNoItem.
type ring interface {
	Get(service, name string) (string, error)
	Set(service, name, secret string) error
	Delete(service, name string) error
}

var errNoItem = errors.New("not in the keyring")

// system is the keyring of this system.
type system struct{}

func (system) Get(service, name string) (string, error) {
	v, err := keyring.Get(service, name)
	return v, explain(err)
}

func (system) Set(service, name, secret string) error {
	return explain(keyring.Set(service, name, secret))
}

func (system) Delete(service, name string) error { return explain(keyring.Delete(service, name)) }

// unusable says what to do about a keyring that does not answer as one.
type unusable struct{ err error }

func (e unusable) Error() string {
	return "the system's keyring cannot be used: " + e.err.Error() +
		" (is one running and unlocked? A file store needs none)"
}

func (e unusable) Unwrap() error { return e.err }

func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return errNoItem
	}
	return unusable{err}
}
