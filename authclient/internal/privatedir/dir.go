// Package privatedir keeps small files with secrets in a directory that is one
// user's alone: nobody else can read or change them, no symbolic link is followed,
// and a file is the old one or the new one whenever the process or the machine
// stops. Its locks hold between processes and end with the process that has them.
// What the files mean is the business of the stores above.
package privatedir

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ErrUnsafe reports a directory or file that others can read or change, or that is
// not what it should be: a symbolic link, a file of another user.
var ErrUnsafe = errors.New("not safe to keep tokens in")

// MaxFile bounds a file, in bytes.
const MaxFile = 1 << 20

// temporary ends the name of a file that is being written. It is only found while
// the write lock is held, or after a writer died.
const temporary = ".tmp"

// writeLock is held while a file is written or removed.
const writeLock = "write"

// Dir is a directory. It is safe for concurrent use, by processes too.
type Dir struct {
	path string

	mu    sync.Mutex
	locks map[string]chan struct{} // of one place; full while held

	// Step, when set, is told each step of a Write before it is made: for tests that
	// end the process there.
	Step func(step string)
}

// Open returns the directory at path, which is made when it is missing.
func Open(path string) (*Dir, error) {
	if path == "" {
		return nil, errors.New("the directory for tokens has no name")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("directory for tokens: %w", err)
	}
	d := &Dir{path: absolute, locks: map[string]chan struct{}{}}
	root, err := d.make()
	if err != nil {
		return nil, err
	}
	return d, root.Close()
}

// Name makes a file name of any texts: different lists have different names, and
// nothing of a text is in it.
func Name(parts ...string) string {
	h := sha256.New()
	for _, p := range append([]string{"ostiary authclient entry v1"}, parts...) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Path returns where the file is, for messages.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// Read returns a file; the error of one that is not there is fs.ErrNotExist.
func (d *Dir) Read(name string) ([]byte, error) {
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := d.openFile(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(b) > MaxFile {
		return nil, fmt.Errorf("%s is too large to be one of ours", d.Path(name))
	}
	return b, err
}

// Write makes b the file. The new file is on the disk before it takes the old one's
// name, and the name before Write returns.
func (d *Dir) Write(ctx context.Context, name string, b []byte) error {
	if len(b) > MaxFile {
		return fmt.Errorf("%d bytes are too many for a file of tokens", len(b))
	}
	return d.change(ctx, func(root *os.Root) error {
		tmp := name + temporary
		if err := d.create(root, tmp, b); err != nil {
			return errors.Join(err, ignoreMissing(root.Remove(tmp)))
		}
		d.step("rename")
		if err := root.Rename(tmp, name); err != nil {
			return errors.Join(err, ignoreMissing(root.Remove(tmp)))
		}
		d.step("sync directory")
		return syncDir(root)
	})
}

// Remove removes a file. None is no error.
func (d *Dir) Remove(ctx context.Context, name string) error {
	return d.change(ctx, func(root *os.Root) error {
		if err := ignoreMissing(root.Remove(name)); err != nil {
			return err
		}
		return syncDir(root)
	})
}

// change runs fn while nobody else writes here. What is half written then was left
// by a process that died: it goes, since it has a secret in it.
func (d *Dir) change(ctx context.Context, fn func(*os.Root) error) error {
	unlock, err := d.Lock(ctx, writeLock)
	if err != nil {
		return err
	}
	root, err := d.open()
	if err != nil {
		return errors.Join(err, unlock())
	}
	if err = sweep(root); err == nil {
		err = fn(root)
	}
	d.step("unlock")
	return errors.Join(err, root.Close(), unlock())
}

// create writes a new file and waits until it is on the disk.
func (d *Dir) create(root *os.Root, name string, b []byte) error {
	d.step("create")
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	d.step("write")
	_, err = f.Write(b[:len(b)/2])
	if err == nil {
		d.step("write the other half")
		_, err = f.Write(b[len(b)/2:])
	}
	if err == nil {
		d.step("sync")
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (d *Dir) step(name string) {
	if d.Step != nil {
		d.Step(name)
	}
}

func sweep(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if strings.HasSuffix(name, temporary) {
			err = errors.Join(err, ignoreMissing(root.Remove(name)))
		}
	}
	return errors.Join(err, dir.Close())
}

// make opens the directory, and makes it first where it is missing.
func (d *Dir) make() (*os.Root, error) {
	root, err := d.open()
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for tokens: %w", err)
	}
	return d.open()
}

// open opens the directory and checks that it is this user's alone. It is opened
// for each operation: one that somebody removed and made again is a new one.
func (d *Dir) open() (*os.Root, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, fmt.Errorf("directory for tokens: %w", err)
	}
	if err := d.check(root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

func (d *Dir) check(root *os.Root) error {
	named, err := os.Lstat(d.path)
	if err != nil {
		return fmt.Errorf("directory for tokens: %w", err)
	}
	opened, err := root.Stat(".")
	if err != nil {
		return fmt.Errorf("directory for tokens: %w", err)
	}
	// Equal: what was opened is what stands there, and no link to it.
	if !named.IsDir() || !os.SameFile(named, opened) {
		return fmt.Errorf("%w: %s is a symbolic link: name the directory itself", ErrUnsafe, d.path)
	}
	return private(opened, d.path, "700")
}

// look describes a file without following it, and refuses what is no file.
func (d *Dir) look(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%w: %s is a symbolic link: remove it", ErrUnsafe, d.Path(name))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a file: remove it", ErrUnsafe, d.Path(name))
	}
	return info, nil
}

// openFile opens a file for reading. What was opened must be what has the name,
// and no link to it. Another process may save meanwhile, and then it looks again.
func (d *Dir) openFile(root *os.Root, name string) (*os.File, error) {
	for range 100 {
		// Looked at first, since opening a pipe waits for who writes to it.
		before, err := d.look(root, name)
		if err != nil {
			return nil, err
		}
		f, err := root.Open(name)
		if err != nil {
			return nil, err
		}
		same, err := d.isNamed(root, name, f, before)
		if same && err == nil {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s changes all the time", d.Path(name))
}

// isNamed reports whether an opened file is the one that had the name before it was
// opened or has it now, and refuses one that is not this user's alone.
func (d *Dir) isNamed(root *os.Root, name string, f *os.File, before fs.FileInfo) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !os.SameFile(before, opened) {
		after, err := d.look(root, name)
		if err != nil || !os.SameFile(after, opened) {
			return false, err
		}
	}
	return true, private(opened, d.Path(name), "600")
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
