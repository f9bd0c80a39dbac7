//go:build linux

package keyringstore

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/authclient"
)

const dirVariable = "OSTIARY_KEYRINGSTORE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		os.Exit(askSystem(dir))
	}
	os.Exit(m.Run())
}

// askSystem asks the system's keyring and prints what it says.
func askSystem(dir string) int {
	s, err := New(Options{Service: "ostiary test", LockDir: dir})
	if err != nil {
		println(err.Error())
		return 1
	}
	if _, err = s.Load(context.Background(), authclient.Key{}); err == nil || errors.Is(err, authclient.ErrNotFound) {
		println("no error")
		return 1
	}
	println(err.Error())
	return 0
}

// The real library, in a session that has no keyring.
func TestSystemWithoutKeyring(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), dirVariable+"="+filepath.Join(t.TempDir(), "locks"), "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent/bus")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the system's keyring cannot be used") {
		t.Errorf("%v: %s", err, out)
	}
}
