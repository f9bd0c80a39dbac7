// Package launch builds the product's programs and runs them as processes, for
// tests that want the real thing: listeners, files, signals, exit codes.
package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout is how long a process may take to answer; a loaded machine with
// the race detector needs most of it.
const startTimeout = 30 * time.Second

var builds struct {
	sync.Mutex
	done map[string]string
	dir  string
}

// Build compiles a package of this module once for the test binary, and
// returns the program's path. Cleanup removes what Build made: call it from
// TestMain after m.Run.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	return BuildPackage(t, "github.com/ostiary-auth/ostiary/"+pkg)
}

// BuildPackage is Build for a package of any module that go.mod names.
func BuildPackage(t testing.TB, pkg string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if path, ok := builds.done[pkg]; ok {
		return path
	}
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "ostiary-launch-")
		if err != nil {
			t.Fatal(err)
		}
		builds.dir, builds.done = dir, map[string]string{}
	}
	path := filepath.Join(builds.dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", path, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	builds.done[pkg] = path
	return path
}

// Cleanup removes the programs that Build made.
func Cleanup() {
	builds.Lock()
	defer builds.Unlock()
	_ = os.RemoveAll(builds.dir)
}

// Process is a running program.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	output *buffer
}

// Start runs a program until the test ends; its output is shown if the test
// failed.
func Start(t testing.TB, env []string, name string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(name, args...), exited: make(chan struct{}), output: &buffer{}}
	p.cmd.Env = environ(env)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(name), p.Output())
		}
	})
	return p
}

// Output returns what the process has written so far.
func (p *Process) Output() string { return p.output.String() }

// Stop asks the process to end, and makes it end after ten seconds.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		p.Kill()
	}
}

// Kill ends the process at once, as kill -9 does.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Await fails the test unless rawURL answers in time, whatever it answers.
func (p *Process) Await(t testing.TB, rawURL string) {
	t.Helper()
	if err := p.await(rawURL); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(p.cmd.Path), err, p.Output())
	}
}

// await returns when rawURL answers, whatever it answers.
func (p *Process) await(rawURL string) error {
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		select {
		case <-p.exited:
			return fmt.Errorf("it ended: %s", p.cmd.ProcessState)
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
		if err != nil {
			cancel()
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		cancel()
		if err == nil {
			return resp.Body.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, context.DeadlineExceeded) {
			return err // a busy machine may be slow to accept, and to answer
		}
		select {
		case <-p.exited:
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s did not answer within %s", rawURL, startTimeout)
}

// FreePort returns a port that nobody listens on, neither on 127.0.0.1 nor on
// [::1]: a development server binds both (D4).
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := ln.Addr().(*net.TCPAddr).Port
		six, err := net.Listen("tcp", "[::1]:"+strconv.Itoa(port))
		_ = ln.Close()
		if err == nil {
			_ = six.Close()
			return port
		}
		if !errors.Is(err, syscall.EADDRINUSE) { // no IPv6 here
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// buffer is a bytes.Buffer that a process writes while a test reads.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.ToValidUTF8(b.b.String(), "?")
}
