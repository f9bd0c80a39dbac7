//go:build unix

package privatedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a symbolic link an error.
const noFollow = syscall.O_NOFOLLOW

// private wants this user to own what info describes, and nobody else to have any
// right to it; mode is what the message advises.
func private(info fs.FileInfo, path, mode string) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%w: nobody can say who owns %s", ErrUnsafe, path)
	}
	if int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d and this program runs as user %d: run it as the owner, or use a directory of its own",
			ErrUnsafe, path, stat.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: others can use %s (mode %04o): run chmod %s %s", ErrUnsafe, path, info.Mode().Perm(), mode, path)
	}
	return nil
}

// syncDir waits until the names in the directory are on the disk. File systems that
// cannot say so write them at their own time.
func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
