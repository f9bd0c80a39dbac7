//go:build unix

package filestore_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/filestore"
	"github.com/ostiary-auth/ostiary/authclient/storetest"
)

var grant = authclient.Key{Kind: authclient.KindGrant, Issuer: "https://id.example.com", Resource: "https://mcp.example.com/mcp", Client: "c"}

func newStore(t *testing.T, dir string) *filestore.Store {
	t.Helper()
	s, err := filestore.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func save(t *testing.T, s *filestore.Store, k authclient.Key, value string) {
	t.Helper()
	if err := s.Save(t.Context(), k, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() authclient.Store {
		dir := filepath.Join(t.TempDir(), "not", "there")
		return func() authclient.Store { return newStore(t, dir) }
	})
}

// Whatever the umask and the directories above, nobody else reads a token.
func TestModes(t *testing.T) {
	t.Parallel()
	above := filepath.Join(t.TempDir(), "state")
	dir := filepath.Join(above, "tokens")
	s := newStore(t, dir)
	save(t, s, grant, `{"secret":1}`)
	unlock, err := s.Lock(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	for _, path := range []string{above, dir} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v, want mode 0700", path, info.Mode(), err)
		}
	}
	files := list(t, dir)
	for _, name := range files {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v, want a file of mode 0600", name, info.Mode(), err)
		}
		if strings.ContainsAny(name, ":/ ") || strings.Contains(name, "example") {
			t.Errorf("the name %q is made of a server's text", name)
		}
	}
	if len(files) != 3 { // entry, its lock, the lock of writers
		t.Errorf("files = %q", files)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The file says whose it is, to people who look.
func TestFileNamesItsKey(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir()+"/tokens")
	save(t, s, grant, `{"v":"<&>"}`)
	b, err := os.ReadFile(s.File(grant))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"key":{"kind":"grant","issuer":"https://id.example.com","resource":"https://mcp.example.com/mcp","client":"c"},"value":{"v":"<&>"}}` + "\n"
	if string(b) != want {
		t.Errorf("file = %s, want %s", b, want)
	}
}

func TestUnsafeDirectories(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		want    []string // in the error
	}{
		{"read by a group", func(t *testing.T, path string) { mkdir(t, path, 0o750) }, []string{"0750", "chmod 700"}},
		{"searched by others", func(t *testing.T, path string) { mkdir(t, path, 0o701) }, []string{"0701", "chmod 700"}},
		{"a symbolic link", func(t *testing.T, path string) {
			mkdir(t, path+".real", 0o700)
			symlink(t, path+".real", path)
		}, []string{"symbolic link"}},
		{"a symbolic link to nowhere", func(t *testing.T, path string) { symlink(t, path+".nowhere", path) }, nil},
		{"a file", func(t *testing.T, path string) { write(t, path, "", 0o600) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "tokens")
			tt.prepare(t, path)
			_, err := filestore.New(path)
			if err == nil {
				t.Fatal("the directory is accepted")
			}
			for _, text := range append(tt.want, path) {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q lacks %q", err, text)
				}
			}
			if len(tt.want) > 0 && !errors.Is(err, filestore.ErrUnsafe) {
				t.Errorf("error %v is not ErrUnsafe", err)
			}
		})
	}
	if _, err := filestore.New(""); err == nil {
		t.Error("a directory without a name is accepted")
	}
}

// A directory that becomes unsafe later is refused from then on.
func TestDirectoryOpenedToOthersLater(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tokens")
	s := newStore(t, dir)
	save(t, s, grant, `1`)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, loadErr := s.Load(t.Context(), grant)
	_, lockErr := s.Lock(t.Context(), grant)
	for what, err := range map[string]error{"Load": loadErr, "Lock": lockErr, "Save": s.Save(t.Context(), grant, []byte(`2`)), "Delete": s.Delete(t.Context(), grant)} {
		if !errors.Is(err, filestore.ErrUnsafe) || errors.Is(err, authclient.ErrNotFound) {
			t.Errorf("%s = %v, want ErrUnsafe", what, err)
		}
	}
}

// What was not stored by this program is neither read nor taken for absence; a save
// puts a file in its place and touches nothing elsewhere.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	const valid = `{"version":1,"key":{"kind":"grant"},"value":{"planted":true}}`
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		unsafe  bool
		want    string
	}{
		{"a symbolic link to a valid entry", func(t *testing.T, path string) {
			write(t, path+".elsewhere", valid, 0o600)
			symlink(t, path+".elsewhere", path)
		}, true, "symbolic link"},
		{"a symbolic link out of the directory", func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "other")
			write(t, target, valid, 0o600)
			symlink(t, target, path)
		}, true, "symbolic link"},
		{"a symbolic link to nowhere", func(t *testing.T, path string) { symlink(t, "nowhere", path) }, true, "symbolic link"},
		{"read by others", func(t *testing.T, path string) { write(t, path, valid, 0o644) }, true, "chmod 600"},
		{"written by others", func(t *testing.T, path string) { write(t, path, valid, 0o602) }, true, "chmod 600"},
		{"a pipe", mkfifo, true, "is not a file"},
		{"empty", func(t *testing.T, path string) { write(t, path, "", 0o600) }, false, "damaged"},
		{"half", func(t *testing.T, path string) { write(t, path, valid[:40], 0o600) }, false, "damaged"},
		{"two", func(t *testing.T, path string) { write(t, path, valid+valid, 0o600) }, false, "damaged"},
		{"no value", func(t *testing.T, path string) { write(t, path, `{"version":1}`, 0o600) }, false, "damaged"},
		{"not ours", func(t *testing.T, path string) { write(t, path, `{"access_token":"s3cret"}`, 0o600) }, false, "damaged"},
		{"of a later version", func(t *testing.T, path string) { write(t, path, strings.Replace(valid, "1", "2", 1), 0o600) }, false, "newer version"},
		{"huge", func(t *testing.T, path string) { write(t, path, strings.Repeat(" ", 1<<20)+valid, 0o600) }, false, "too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, t.TempDir()+"/tokens")
			tt.prepare(t, s.File(grant))
			target, _ := os.Readlink(s.File(grant))
			b, err := s.Load(t.Context(), grant)
			if err == nil || errors.Is(err, authclient.ErrNotFound) || b != nil {
				t.Fatalf("Load = %s, %v, want an error", b, err)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), s.File(grant)) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %q, want it to name the file and %q", err, tt.want)
			}
			if errors.Is(err, filestore.ErrUnsafe) != tt.unsafe {
				t.Errorf("error %v: ErrUnsafe = %t", err, !tt.unsafe)
			}
			save(t, s, grant, `2`)
			if got, err := s.Load(t.Context(), grant); err != nil || string(got) != `2` {
				t.Errorf("after Save: %s, %v", got, err)
			}
			if filepath.IsAbs(target) {
				if b, err := os.ReadFile(target); err != nil || string(b) != valid {
					t.Errorf("the target of the link is now %q, %v", b, err)
				}
			}
		})
	}
}

// A lock file that somebody made a link would be opened, or made, elsewhere.
func TestForeignLockFile(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir()+"/tokens")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	symlink(t, elsewhere, strings.TrimSuffix(s.File(grant), ".json")+".lock")
	if _, err := s.Lock(t.Context(), grant); !errors.Is(err, filestore.ErrUnsafe) {
		t.Errorf("Lock = %v, want ErrUnsafe", err)
	}
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("the link was followed")
	}
}

// Somebody empties the directory by hand while a program runs: that is a logout,
// and locks still exclude.
func TestDirectoryRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/tokens"
	s := newStore(t, dir)
	save(t, s, grant, `1`)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), grant); !errors.Is(err, authclient.ErrNotFound) {
		t.Errorf("Load = %v, want ErrNotFound", err)
	}
	save(t, s, grant, `2`)
	unlock, err := newStore(t, dir).Lock(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestSaveRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir()+"/tokens")
	save(t, s, grant, `1`)
	for _, v := range []string{"s3cret", `{"s3cret":`, "1 2", strings.Repeat("1", 2<<20)} {
		if err := s.Save(t.Context(), grant, []byte(v)); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Save(%.20q) = %v, want an error without the value", v, err)
		}
	}
	if got, err := s.Load(t.Context(), grant); err != nil || string(got) != `1` {
		t.Errorf("the entry is %s, %v, want the old one", got, err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"version":1,"key":{},"value":{}}`))
	f.Add([]byte(`{"version":1,"value":`))
	f.Add([]byte(``))
	s, err := filestore.New(filepath.Join(f.TempDir(), "tokens"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(s.File(grant), b, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := s.Load(t.Context(), grant)
		if err == nil && !json.Valid(v) || errors.Is(err, authclient.ErrNotFound) {
			t.Errorf("Load = %q, %v", v, err)
		}
	})
}

func mkdir(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func sorted(names []string) []string { slices.Sort(names); return names }
