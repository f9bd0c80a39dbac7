//go:build !unix

package stdio

import (
	"os"
	"os/exec"
)

// isolate does nothing: there are no process groups here, so what a child starts
// itself outlives it.
func isolate(*exec.Cmd) {}

// awaitExit returns when the process has ended.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

func terminateGroup(pid int) { killGroup(pid) }

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func markInheritedFiles() {}
