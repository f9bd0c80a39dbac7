package stdio

import (
	"os/exec"
	"runtime"
	"sync"
)

// launcher starts processes from one thread that lives as long as it does. Linux
// can kill a child when its parent dies, but means the thread that started it, and
// Go's threads come and go (go.dev/issue/27505).
type launcher struct {
	begin, end sync.Once
	jobs       chan func()
	quit       chan struct{}
}

func newLauncher() *launcher { return &launcher{jobs: make(chan func()), quit: make(chan struct{})} }

func (l *launcher) run() {
	runtime.LockOSThread() // never unlocked: the thread ends with this function
	markInheritedFiles()
	for {
		select {
		case job := <-l.jobs:
			job()
		case <-l.quit:
			return
		}
	}
}

// start runs cmd.Start.
func (l *launcher) start(cmd *exec.Cmd) error {
	l.begin.Do(func() { go l.run() })
	result := make(chan error, 1)
	select {
	case l.jobs <- func() { result <- cmd.Start() }:
		return <-result
	case <-l.quit:
		return errClosed
	}
}

// close ends the thread, and on Linux children that are still alive.
func (l *launcher) close() { l.end.Do(func() { close(l.quit) }) }
