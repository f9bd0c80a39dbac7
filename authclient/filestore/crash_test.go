//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/authclient"
	"github.com/ostiary-auth/ostiary/authclient/filestore"
)

// These variables make the test binary a process of a test.
const (
	roleVariable = "OSTIARY_FILESTORE_ROLE"
	dirVariable  = "OSTIARY_FILESTORE_DIR"
	stepVariable = "OSTIARY_FILESTORE_STEP"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := roles[role](os.Getenv(dirVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// roles are what the test binary can be besides itself.
var roles = map[string]func(dir string) error{"save": saveAndDie, "lock": lockAndDie, "client": runClient}

// again runs the test binary again in a role.
func again(t *testing.T, role, dir string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), append(env, roleVariable+"="+role, dirVariable+"="+dir)...)
	cmd.Stderr = os.Stderr
	return cmd
}

func oldValue() string { return `{"token":"` + strings.Repeat("old", 5000) + `"}` }
func newValue() string { return `{"token":"` + strings.Repeat("new!", 9000) + `"}` }

// saveSteps are the steps of a save, in their order: on the disk first, then with the
// name, then the name on the disk.
var saveSteps = []string{"create", "write", "write the other half", "sync", "rename", "sync directory", "unlock"}

func TestSaveSteps(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir()+"/tokens")
	var steps []string
	s.OnStep(func(step string) { steps = append(steps, step) })
	save(t, s, grant, `1`)
	if got, want := strings.Join(steps, ", "), strings.Join(saveSteps, ", "); got != want {
		t.Errorf("steps = %s, want %s", got, want)
	}
}

// die ends the process before a step of a save, as kill -9 does.
func die(step string) {
	if step == os.Getenv(stepVariable) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// saveAndDie saves the new value and is killed before a step of it.
func saveAndDie(dir string) error {
	s, err := filestore.New(dir)
	if err != nil {
		return err
	}
	s.OnStep(die)
	return s.Save(context.Background(), grant, []byte(newValue()))
}

// A process that is killed between any two steps of a save leaves the old entry or
// the new one, no lock that another must wait for, and nothing that stays.
func TestKilledWhileSaving(t *testing.T) {
	t.Parallel()
	for i, step := range append([]string{"never"}, saveSteps...) {
		t.Run("before "+step, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir() + "/tokens"
			s := newStore(t, dir)
			save(t, s, grant, oldValue())
			err := again(t, "save", dir, stepVariable+"="+step).Run()
			if killed := isKilled(err); killed != (step != "never") {
				t.Fatalf("the process ended with %v", err)
			}
			want := oldValue()
			if i == 0 || i > len(saveSteps)-2 { // after the rename
				want = newValue()
			}
			if got, err := s.Load(t.Context(), grant); err != nil || string(got) != want {
				t.Errorf("Load = %.40s (%d bytes), %v, want %.40s", got, len(got), err, want)
			}
			save(t, s, authclient.Key{Kind: "another"}, `1`)
			for _, name := range sorted(list(t, dir)) {
				if !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".lock") {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

func isKilled(err error) bool {
	exit, ok := err.(*exec.ExitError)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// lockAndDie takes the lock, says so, and is killed with it in its hand.
func lockAndDie(dir string) error {
	s, err := filestore.New(dir)
	if err != nil {
		return err
	}
	if _, err := s.Lock(context.Background(), grant); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin) // until the test ends
	return err
}

func TestC6_LockOfAKilledProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/tokens"
	s := newStore(t, dir)
	cmd := again(t, "lock", dir)
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	var said string
	if _, err := fmt.Fscanln(out, &said); err != nil || said != "locked" {
		t.Fatalf("the process says %q, %v", said, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Lock(ctx, grant); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the lock of a living process: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.Lock(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Another user's directory is theirs, whatever its mode: only root can make one.
func TestDirectoryOfAnotherUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	mkdir(t, path, 0o700)
	err := os.Chown(path, os.Geteuid()+1, -1)
	if os.Geteuid() != 0 {
		if err == nil {
			t.Error("a directory was given away without being root")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err = filestore.New(path); err == nil || !strings.Contains(err.Error(), "belongs to user 1") {
		t.Errorf("New = %v, want the owner named", err)
	}
}
