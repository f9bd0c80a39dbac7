package privatedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// poll is how often a lock that another process holds is tried. The system's own
// way of waiting cannot be ended by a context.
const poll = 10 * time.Millisecond

// Lock waits until nobody else holds the lock of that name, in this process or
// another, and takes it. The system releases it when the process ends, however it
// ends. Its file is never renamed and never removed: two processes would hold a lock
// each, of the same name.
func (d *Dir) Lock(ctx context.Context, name string) (unlock func() error, err error) {
	held := d.lockOf(name)
	select {
	case held <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l, err := d.lockFile(ctx, name+".lock")
	if err != nil {
		<-held
		return nil, err
	}
	return func() error {
		err := l.Unlock()
		<-held
		return err
	}, nil
}

// lockOf returns this process's lock of that name, so that goroutines hand it over
// without polling. Locks are few and stay.
func (d *Dir) lockOf(name string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locks[name] == nil {
		d.locks[name] = make(chan struct{}, 1)
	}
	return d.locks[name]
}

func (d *Dir) lockFile(ctx context.Context, name string) (*flock.Flock, error) {
	for {
		root, err := d.make()
		if err != nil {
			return nil, err
		}
		l := flock.New(d.Path(name), flock.SetFlag(os.O_CREATE|os.O_RDWR|noFollow), flock.SetPermissions(0o600))
		standing, err := d.lockThere(ctx, root, name, l)
		err = errors.Join(err, root.Close())
		if standing && err == nil {
			return l, nil
		}
		if err = errors.Join(err, l.Unlock()); err != nil {
			return nil, fmt.Errorf("lock the tokens: %w", err)
		}
	}
}

// lockThere takes l and reports whether its file is still the one of that name:
// somebody who empties the directory by hand takes the file from under a lock.
func (d *Dir) lockThere(ctx context.Context, root *os.Root, name string, l *flock.Flock) (bool, error) {
	if _, err := d.look(root, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if _, err := l.TryLockContext(ctx, poll); err != nil {
		return false, err
	}
	named, err := d.look(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	locked, err := l.Stat()
	if err != nil || !os.SameFile(named, locked) {
		return false, err
	}
	return true, private(locked, d.Path(name), "600")
}
