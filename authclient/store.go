package authclient

import (
	"context"
	"errors"
	"sync"
)

// ErrNotFound is what Store.Load returns when nothing is stored under the key.
var ErrNotFound = errors.New("nothing is stored under this key")

// What a Key.Kind says of the entry.
const (
	// KindServer is which authorization server, resource and client were used last
	// for an MCP server: how a new process finds the grant without asking.
	KindServer = "server"
	// KindClient is a client that dynamic registration made.
	KindClient = "client"
	// KindGrant is tokens.
	KindGrant = "grant"
)

// Key names an entry. Entries with different keys have nothing to do with each
// other, so a credential is never read for another issuer (rule C5). Every part but
// Kind may be empty, and is any text: a store that makes file names of them hashes.
type Key struct {
	// Kind is what the entry is.
	Kind string
	// Issuer is the authorization server's.
	Issuer string
	// Resource is the MCP server: its resource identifier, or for KindServer its URL.
	Resource string
	// Client is the client_id.
	Client string
	// Account is Options.Account.
	Account string
}

// Store keeps entries, which are JSON and hold secrets. It is safe for concurrent
// use. An error that is not ErrNotFound is never taken for absence.
type Store interface {
	// Load returns the entry, ErrNotFound when there is none.
	Load(ctx context.Context, k Key) ([]byte, error)
	// Save makes value the entry. When it returns nil the entry outlives the process,
	// if the store does; when it fails, the entry is the old one.
	Save(ctx context.Context, k Key, value []byte) error
	// Delete removes the entry. None is no error.
	Delete(ctx context.Context, k Key) error
	// Lock waits until nobody else holds the lock of k and takes it: neither another
	// goroutine nor, where the store is shared, another process. The entry need not
	// exist, and Load, Save and Delete work with and without the lock. unlock is
	// called once.
	Lock(ctx context.Context, k Key) (unlock func() error, err error)
}

// NewMemoryStore returns a Store that lives as long as the process.
func NewMemoryStore() Store {
	return &memoryStore{entries: map[Key][]byte{}, locks: map[Key]chan struct{}{}}
}

type memoryStore struct {
	mu      sync.Mutex
	entries map[Key][]byte
	locks   map[Key]chan struct{} // of one place; full while held
}

func (s *memoryStore) Load(_ context.Context, k Key) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.entries[k]
	if !ok {
		return nil, ErrNotFound
	}
	return append([]byte(nil), v...), nil
}

func (s *memoryStore) Save(_ context.Context, k Key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[k] = append([]byte(nil), value...)
	return nil
}

func (s *memoryStore) Delete(_ context.Context, k Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, k)
	return nil
}

func (s *memoryStore) Lock(ctx context.Context, k Key) (func() error, error) {
	held := s.lockOf(k)
	select {
	case held <- struct{}{}:
		return func() error { <-held; return nil }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lockOf returns the lock of k. Locks are few and stay.
func (s *memoryStore) lockOf(k Key) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[k] == nil {
		s.locks[k] = make(chan struct{}, 1)
	}
	return s.locks[k]
}
