// Package filestore keeps what authclient stores in files that only their owner can
// read: one file for each entry, named by a hash of its key, in one directory. So a
// save touches no other entry, and two programs that use the same directory share
// their logins: a refresh of one is the other's too.
//
// The directory has mode 0700 and its files 0600, and a store refuses to read others.
// The tokens in them are not encrypted: who can read this user's files can use them.
// Package keyringstore leaves them to the system's keyring.
package filestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/internal/privatedir"
)

// ErrUnsafe reports a directory or file that others can read or change, or that is
// none: the text says which and what to do.
var ErrUnsafe = privatedir.ErrUnsafe

// version is that of the files' format.
const version = 1

// Store keeps entries in a directory. It is safe for concurrent use, by several
// processes too. The directory must be on a file system of this machine: locks on
// network file systems hold as well as those make them.
type Store struct {
	dir *privatedir.Dir
}

// New returns the store in the directory dir, which it makes when it is missing.
func New(dir string) (*Store, error) {
	d, err := privatedir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("filestore: %w", err)
	}
	return &Store{dir: d}, nil
}

// entry is a file. The key is in it for people; a program finds the file by its name.
type entry struct {
	Version int             `json:"version"`
	Key     key             `json:"key"`
	Value   json.RawMessage `json:"value"`
}

type key struct {
	Kind     string `json:"kind"`
	Issuer   string `json:"issuer,omitempty"`
	Resource string `json:"resource,omitempty"`
	Client   string `json:"client,omitempty"`
	Account  string `json:"account,omitempty"`
}

// name hashes the key, because no text of a server's may become a file name.
func name(k authclient.Key) string {
	return privatedir.Name(k.Kind, k.Issuer, k.Resource, k.Client, k.Account)
}

func file(k authclient.Key) string { return name(k) + ".json" }

// Load implements authclient.Store. A file that cannot be read, or that others could
// read too, is an error and not absence.
func (s *Store) Load(_ context.Context, k authclient.Key) ([]byte, error) {
	b, err := s.dir.Read(file(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, authclient.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("load from the file store: %w", err)
	}
	var e entry
	if err := json.Unmarshal(b, &e); err != nil || e.Version < 1 || len(e.Value) == 0 {
		return nil, fmt.Errorf("load from the file store: %s is damaged: remove it and log in again", s.dir.Path(file(k)))
	}
	if e.Version != version {
		return nil, fmt.Errorf("load from the file store: %s was written by a newer version of this program", s.dir.Path(file(k)))
	}
	return e.Value, nil
}

// Save implements authclient.Store. When it returns nil the entry is on the disk; a
// process or machine that stops meanwhile leaves the old entry or the new one. value
// is JSON.
func (s *Store) Save(ctx context.Context, k authclient.Key, value []byte) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // value stays as it is
	if err := enc.Encode(entry{version, key(k), value}); err != nil {
		return errors.New("save to the file store: the value is not JSON") // err quotes it
	}
	if err := s.dir.Write(ctx, file(k), b.Bytes()); err != nil {
		return fmt.Errorf("save to the file store: %w", err)
	}
	return nil
}

// Delete implements authclient.Store.
func (s *Store) Delete(ctx context.Context, k authclient.Key) error {
	if err := s.dir.Remove(ctx, file(k)); err != nil {
		return fmt.Errorf("delete from the file store: %w", err)
	}
	return nil
}

// Lock implements authclient.Store. The lock is a file beside the entry's, and ends
// with the process that holds it.
func (s *Store) Lock(ctx context.Context, k authclient.Key) (unlock func() error, err error) {
	return s.dir.Lock(ctx, name(k))
}
