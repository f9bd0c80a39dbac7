package keys

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestLoadOrCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	made, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, want 0600 (%v)", info.Mode(), err)
	}
	again, err := LoadOrCreate(path)
	if err != nil || !bytes.Equal(made.Encode(), again.Encode()) {
		t.Errorf("second start has another secret (%v)", err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files left behind: %v (%v)", left, err)
	}
}

func TestLoadOrCreateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	var wg sync.WaitGroup
	found := make([]string, 8)
	for i := range found {
		wg.Go(func() {
			s, err := LoadOrCreate(path)
			if err != nil {
				t.Errorf("LoadOrCreate: %v", err)
				return
			}
			found[i] = string(s.Encode())
		})
	}
	wg.Wait()
	for _, s := range found {
		if s != found[0] {
			t.Fatal("processes that start at once have different secrets")
		}
	}
}

func TestLoadRefusesReadableFile(t *testing.T) {
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644} {
		path := filepath.Join(t.TempDir(), "secret.key")
		if err := os.WriteFile(path, GenerateSecrets().Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := LoadOrCreate(path)
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: err = %v, want the command that mends it", mode, err)
		}
	}
}

func TestLoadKeepsBrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	if err := os.WriteFile(path, []byte("1 broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreate(path); err == nil {
		t.Fatal("a broken file was accepted")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "1 broken" {
		t.Errorf("the file was changed to %q (%v)", got, err)
	}
}
