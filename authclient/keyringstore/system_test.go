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

// inSession starts GNOME's Secret Service, unlocked with the password on its standard
// input, and then the command in its arguments.
const inSession = `echo secret | gnome-keyring-daemon --unlock --components=secrets >"$HOME/daemon.log" 2>&1 && exec "$0" "$@"`

// The real library with a real Secret Service: TestStore once more, in a session of its
// own.
func TestSecretService(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil && os.Getenv("CI") != "true" {
			t.Skipf("Secret Service not tried: no %s (Debian: apt-get install dbus gnome-keyring)", program)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "dbus-run-session", "--", "sh", "-c", inSession, exe, "-test.run=^TestStore$", "-test.v")
	cmd.Env = append(os.Environ(), sessionVariable+"=yes", "HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_DATA_HOME=", "XDG_CACHE_HOME=")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestStore/") {
		t.Errorf("%v: %s", err, out)
	}
}
