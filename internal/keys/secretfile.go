package keys

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSecretFile bounds a secret file: 255 lines are below it.
const maxSecretFile = 64 << 10

// Load reads the secret file at path. It is refused when the group or others
// may read it (D2). A missing file is fs.ErrNotExist.
func Load(path string) (*Secrets, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSecretFile {
		return nil, fmt.Errorf("secret file %s is not a secret file", path)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("secret file %s has mode %04o, so others can read it: run chmod 600 %s", path, perm, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	s, err := ParseSecrets(data)
	if err != nil {
		return nil, fmt.Errorf("secret file %s: %w", path, err)
	}
	return s, nil
}

// LoadOrCreate reads the secret file at path, or makes it with a new secret when
// it is missing. Of several processes that start at once, one makes it and all
// read the same. Where a database may already hold values made with a secret,
// use LoadForStore instead.
func LoadOrCreate(path string) (*Secrets, error) {
	s, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if err := create(path, GenerateSecrets()); err != nil {
		return nil, fmt.Errorf("make secret file: %w", err)
	}
	return Load(path)
}

// LoadForStore is LoadOrCreate for a database: it makes a file only while the
// database has seen no secret, since a new one could not replace the lost one (D2).
func LoadForStore(ctx context.Context, path string, st ServerStore) (*Secrets, error) {
	s, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	checks, err := st.ListSecretChecks(ctx)
	if err != nil {
		return nil, fmt.Errorf("read secret checks: %w", err)
	}
	if len(checks) > 0 {
		return nil, fmt.Errorf("secret file %s is missing, but the database was used with one: restore the file from a backup, or start with an empty database", path)
	}
	return LoadOrCreate(path)
}

// create writes the file whole or not at all: it is written under another name
// and then linked, which fails when path is there already. That is no error,
// since another process was first.
func create(path string, s *Secrets) (err error) {
	tmp := path + "." + rand.Text()
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp)) }()
	_, err = f.Write(s.Encode())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
