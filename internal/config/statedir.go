package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PrepareStateDir makes the state directory, mode 0700, or checks the one that
// is there. It is refused when the group or others may enter it, or when it or
// one of our files in it belongs to somebody else or may be read by others
// (D2, ST-03).
func PrepareStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("state directory %s is not a directory", dir)
	}
	if err := checkPrivate(dir, info); err != nil {
		return err
	}
	for _, name := range []string{"ostiary.db", "ostiary.db-wal", "ostiary.db-shm", "secret.key"} {
		if err := CheckPrivate(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// FileError is a file or directory with the wrong owner or mode.
type FileError struct {
	Problem string
	// Fix is the command that repairs it.
	Fix string
}

// Error returns the problem.
func (e *FileError) Error() string { return e.Problem }

// Hint says what to run.
func (e *FileError) Hint() string { return "run: " + e.Fix }

// CheckPrivate refuses a file that somebody else than this user owns or may
// read. A missing file is fine.
func CheckPrivate(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return checkPrivate(path, info)
}

func checkPrivate(path string, info fs.FileInfo) error {
	if err := CheckOwner(path, info); err != nil {
		return err
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		want := 0o600
		if info.IsDir() {
			want = 0o700
		}
		return &FileError{Problem: fmt.Sprintf("%s has mode %04o, so others could read it", path, perm),
			Fix: fmt.Sprintf("chmod %o %s", want, path)}
	}
	return nil
}

// CheckOwner refuses to work on another user's file: what we would make beside
// it (the database's -wal and -shm) would lock its owner out (D18).
func CheckOwner(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) != os.Geteuid() {
		return &FileError{Problem: fmt.Sprintf("%s belongs to user id %d, and you are %d", path, st.Uid, os.Geteuid()),
			Fix: fmt.Sprintf("sudo -u '#%d' ostiary …", st.Uid)}
	}
	return nil
}
