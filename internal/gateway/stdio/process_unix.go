//go:build unix && !linux

package stdio

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// isolate gives the child a process group of its own.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns when the process has ended.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// markInheritedFiles keeps from children what this process was started with: Go
// opens files so that they stay here, but does not touch those it finds.
func markInheritedFiles() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
