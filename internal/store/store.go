// Package store is the contract that every Store interface of the house
// shares: the two errors a caller may test for, and the transaction that nests.
// Each noun's own Store interface lives with the package that owns the noun;
// internal/sqlstore implements them all.
package store

import (
	"context"
	"errors"
)

// ErrNotFound reports that no row matches. Test with errors.Is.
var ErrNotFound = errors.New("not found")

// ErrExists reports that a row with the same unique key is already there. Test
// with errors.Is.
var ErrExists = errors.New("already exists")

// Transactor runs several store calls as one transaction.
type Transactor interface {
	// InTx calls fn with a context that carries a transaction; every store call
	// made with that context joins it. The transaction commits when fn returns
	// nil and rolls back otherwise. Nested calls join the outer transaction. On
	// a serialization failure or a deadlock fn is called again, a bounded number
	// of times, so it must have no effect outside the store.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}
